"""The part of JSON Schema that the project's schemas use, with messages for people.

A bare GPU machine has no `jsonschema` package, and a misspelt key deserves a suggestion; so the
schemas stay standard (tests hold this module against `jsonschema`) and the check is here.
"""

import difflib
import functools
import re
from pathlib import Path

import yaml

FOLDER = Path(__file__).parents[2] / "workflow" / "schemas"
TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "null": type(None),
}


@functools.cache
def load(name):
    """The schema workflow/schemas/<name>.schema.yaml."""
    return yaml.safe_load((FOLDER / f"{name}.schema.yaml").read_text())


def types(schema):
    """The types a schema names, as a list; empty where it names none."""
    named = schema.get("type", [])
    return [named] if isinstance(named, str) else named


def resolve(schema, root):
    """Follow a reference into `$defs`."""
    if "$ref" in schema:
        return root["$defs"][schema["$ref"].rpartition("/")[2]]
    return schema


def with_defaults(value, schema, root=None):
    """A copy of `value` in which absent keys take their schema's default."""
    root = root or schema
    rule = resolve(schema, root)
    if not isinstance(value, dict):
        return value
    known, extra = rule.get("properties", {}), rule.get("additionalProperties") or {}
    filled = {key: with_defaults(item, known.get(key, extra), root) for key, item in value.items()}
    for key, inner in known.items():
        if key not in value and "default" in inner:
            filled[key] = with_defaults(inner["default"], inner, root)
    return filled


def problems(value, schema, path="", root=None):
    """A sentence for each way in which `value` breaks `schema`; an empty list when it does not."""
    root = root or schema
    schema = resolve(schema, root)
    name = path or "the file"
    expected = types(schema)
    if expected and not any(is_a(value, kind) for kind in expected):
        return [f"{name}: {value!r} is not {article(expected)}{hint(schema)}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{name}: unknown {value!r}{choices(value, schema['enum'])}"]
    return [*limits(value, schema, name), *inside(value, schema, path, root)]


def limits(value, schema, name):
    """Problems of a single value with its bounds."""
    if is_a(value, "number"):
        if value < schema.get("minimum", value):
            yield f"{name}: {value} is less than {schema['minimum']}{hint(schema)}"
        if "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"]:
            yield f"{name}: {value} is not above {schema['exclusiveMinimum']}{hint(schema)}"
    if isinstance(value, str):
        if len(value) < schema.get("minLength", 0):
            yield f"{name}: {value!r} is too short{hint(schema)}"
        if not re.search(schema.get("pattern", ""), value):
            yield f"{name}: {value!r} is not accepted; expected {schema_words(schema)}"
    if isinstance(value, list):
        low, high = schema.get("minItems", 0), schema.get("maxItems", len(value))
        if not low <= len(value) <= high:
            yield f"{name}: {value} has {len(value)} items{hint(schema)}"
        if schema.get("uniqueItems") and any(value.count(item) > 1 for item in value):
            yield f"{name}: {value} repeats an item"
    if isinstance(value, dict) and len(value) < schema.get("minProperties", 0):
        yield f"{name}: is empty{hint(schema)}"


def inside(value, schema, path, root):
    """Problems of what a list or a mapping holds."""
    if isinstance(value, list) and "items" in schema:
        for i, item in enumerate(value):
            yield from problems(item, schema["items"], f"{path}[{i}]", root)
    if not isinstance(value, dict):
        return
    known = schema.get("properties", {})
    for key in schema.get("required", []):
        if key not in value:
            yield f"{at(path, key)}: missing{hint(known[key])}"
    for key, item in value.items():
        if key in known:
            yield from problems(item, known[key], at(path, key), root)
            continue
        extra = schema.get("additionalProperties", True)
        if extra is False:
            yield f"{at(path, key)}: unknown key{choices(key, list(known))}"
            continue
        if "propertyNames" in schema:
            yield from problems(key, schema["propertyNames"], at(path, key), root)
        if isinstance(extra, dict):
            yield from problems(item, extra, at(path, key), root)


def is_a(value, kind):
    """Whether a value is of a JSON type; a bool is no number."""
    return isinstance(value, TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))


def at(path, key):
    """The path of a key inside `path`."""
    return f"{path}.{key}" if path else str(key)


def article(kinds):
    """Types in words: an integer, a list."""
    words = {"array": "list", "object": "mapping"}
    names = [words.get(kind, kind) for kind in kinds]
    return " or ".join(("an " if name[0] in "aeiou" else "a ") + name for name in names)


def hint(schema):
    """What a schema says it is for, in brackets."""
    return f" ({schema['description']})" if "description" in schema else ""


def schema_words(schema):
    """What a pattern accepts: its description, else the pattern itself."""
    return schema.get("description", f"the pattern {schema['pattern']}")


def choices(value, accepted):
    """The accepted values, and the one that was probably meant."""
    close = difflib.get_close_matches(str(value), [str(item) for item in accepted], n=1)
    meant = f"; did you mean {close[0]!r}?" if close else ""
    return f"{meant} (accepted: {', '.join(str(item) for item in accepted)})"
