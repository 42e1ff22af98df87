"""CSV tables that match their schema, and files that are whole or absent.

A schema (workflow/schemas/<name>.schema.yaml) describes one row; the order of its properties is
the order of the columns. A missing number is an empty cell.
"""

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd

from experiment import InputError, schema


def columns(name):
    """The column names of table `name`, in order."""
    return list(schema.load(name)["properties"])


def frame(rows, name):
    """A table from a list of dicts, with the columns of `name` also when there are no rows."""
    return pd.DataFrame(rows, columns=columns(name))


def write(table, path, name):
    """Check `table` against schema `name` and write it as CSV; raises InputError."""
    accept(table, path, name)
    for key, rule in schema.load(name)["properties"].items():
        if schema.types(rule) == ["boolean"]:
            table = table.assign(**{key: np.where(table[key].astype(bool), "true", "false")})
    write_text(path, table[columns(name)].to_csv(index=False, float_format="%.8g"))


def read(path, name):
    """Read a CSV file, give each column its type and check it against schema `name`."""
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; expected a {name} table") from None
    except ValueError as error:
        raise InputError(f"{path}: not a {name} table: {error}") from None
    for key, rule in schema.load(name)["properties"].items():
        if key in table:
            table[key] = typed(table[key], rule)
    accept(table, path, name)
    return table


def merge(paths, name):
    """The tables at `paths`, one under the other."""
    parts = [read(path, name) for path in paths]
    return pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)


def typed(texts, rule):
    """A column of texts as its schema's type; what cannot be converted stays and is refused."""
    kind = (schema.types(rule) or ["string"])[0]
    try:
        if kind == "integer":
            return texts.astype("int64")
        if kind == "number":
            return texts.replace("", "nan").astype("float64")
    except ValueError:
        return texts
    if kind == "boolean":
        known = {"true": True, "false": False}
        return texts.map(lambda text: known.get(text, text)).infer_objects()
    return texts


def accept(table, path, name):
    """Raise InputError naming the file and everything in `table` that breaks schema `name`."""
    found = problems(table, name)
    if found:
        raise InputError(f"{path}: not a {name} table:\n  " + "\n  ".join(found))


def problems(table, name):
    """What breaks schema `name`, a sentence a column; whole columns at once, as they are long."""
    rules = schema.load(name)["properties"]
    unknown = [
        f"column {key}: unknown{schema.choices(key, list(rules))}"
        for key in table.columns
        if key not in rules
    ]
    missing = [f"column {key}: missing" for key in rules if key not in table]
    wrong = [
        message
        for key, rule in rules.items()
        if key in table
        for message in column_problems(table[key], rule)
    ]
    return unknown + missing + wrong


def column_problems(column, rule):
    """What breaks one column's rule: the first value of it, and in which row."""
    kinds = schema.types(rule) or ["string"]
    absent = column.isna()
    if absent.any() and "null" not in kinds:
        yield f"column {column.name}, row {first(absent)}: empty; expected {schema.article(kinds)}"
    values = column[~absent]
    # A long column is reduced to what may break its rule: the distinct texts, one low number.
    if kinds[0] in ("integer", "number"):
        fits = {"integer": pd.api.types.is_integer_dtype, "number": pd.api.types.is_numeric_dtype}
        if len(values) and not fits[kinds[0]](values.infer_objects().dtype):
            shown = values.astype(object).iloc[0]
            yield f"column {column.name}: {shown!r} is not {schema.article(kinds)}"
            return
        values = values[values < rule.get("minimum", -np.inf)][:1]
    for value in values.unique():
        value = value.item() if isinstance(value, np.generic) else value
        for message in schema.problems(value, rule, f"column {column.name}"):
            yield f"{message}, row {first(column == value)}"


def first(mask):
    """The place of the first True, counted as lines of data from 1."""
    return int(np.flatnonzero(mask.to_numpy())[0]) + 1


def write_text(path, text):
    """Write a text file so that a reader sees all of it or nothing: temporary name, then rename."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path, value):
    """Write `value` as indented JSON, whole or not at all."""
    write_text(path, json.dumps(value, indent=2) + "\n")


def read_json(path):
    """Read a JSON file; raises InputError that names the file."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except json.JSONDecodeError as error:
        raise InputError(f"{path}: not JSON: {error}") from None
