"""The declared experiment: read, checked once for every user of it, and cut into entries.

An entry is one shape of one group, what a single job runs:
    {"group": str, "rows": int, "cols": int, "dtypes": [str], "providers": [str]}
"""

import json
from pathlib import Path

import yaml

from experiment import InputError, schema


class ConfigError(InputError):
    """The configuration breaks its schema; the message lists every problem."""


def load(path):
    """Read and check a YAML file; returns the configuration with defaults filled in."""
    try:
        mapping = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not YAML: {error}") from None
    try:
        return check(mapping)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def check(mapping):
    """Returns `mapping` with defaults filled in; raises ConfigError listing each problem."""
    rules = schema.load("config")
    filled = schema.with_defaults(mapping, rules)
    found = schema.problems(filled, rules) or [*repeated_shapes(filled), *half_placed(filled)]
    if found:
        raise ConfigError("bad configuration\n  " + "\n  ".join(found))
    return filled


def repeated_shapes(config):
    """A sentence for each shape that a kind of device would run twice."""
    seen, found = {}, []
    for name, group in config["groups"].items():
        for rows, cols in group["shapes"]:
            shape = (group["runs_on"], rows, cols)
            if shape in seen:
                found.append(
                    f"groups.{name}.shapes: [{rows}, {cols}] is in group {seen[shape]!r} already"
                )
            seen[shape] = name
    return found


def half_placed(config):
    """A sentence for each device without a partition where another has one: the profile's would
    not serve it, as Snakemake takes a resource that a rule names from the rule alone."""
    key, devices = "slurm_partition", config["devices"]
    named = [name for name, place in devices.items() if key in place]
    return [
        f"devices.{name}: no {key}, and {named[0]} has one; give each device its own, or none"
        for name in devices
        if named and name not in named
    ]


def kind(device):
    """The kind of a device by its name: "cpu" or "gpu"; raises ConfigError for "auto"."""
    if device == "auto":
        raise ConfigError("device 'auto' has no kind yet; resolve it on the machine that runs")
    return "cpu" if device == "cpu" else "gpu"


def entries(config, device):
    """The entries of a checked configuration for a named device, in the order declared."""
    on = kind(device)
    return [
        {
            "group": name,
            "rows": rows,
            "cols": cols,
            "dtypes": group["dtypes"],
            "providers": group.get("providers", config["providers"][on]),
        }
        for name, group in config["groups"].items()
        if group["runs_on"] == on
        for rows, cols in group["shapes"]
    ]


def entry_id(entry):
    """The name of an entry's files: group-<rows>x<cols>."""
    return f"{entry['group']}-{entry['rows']}x{entry['cols']}"


def parse(text, part):
    """An entry or the sampling (`part`) from its JSON text, checked; raises ConfigError."""
    rules = schema.load("config")
    rule = rules["$defs"][part]
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigError(f"--{part}: not JSON: {error}") from None
    value = schema.with_defaults(value, rule, rules)
    found = schema.problems(value, rule, part, rules)
    if found:
        raise ConfigError(f"--{part}: " + "; ".join(found))
    return value
