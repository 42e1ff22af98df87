"""What figures, tables and the summary share: names, order and the rows they read.

Every reader goes through `timed`, so a figure and a table never disagree on which rows they show.
"""

import numpy as np
import pandas as pd

# One order and one readable name for every provider, wherever it is shown.
PROVIDERS = {
    "naive": "naive",
    "online": "online",
    "warp": "warp",
    "block": "block",
    "split": "split",
    "gang": "gang",
    "auto": "auto",
    "torch": "torch.softmax",
    "torch_compile": "torch.compile",
    "triton": "Triton",
    "copy": "copy",
}
MEASURED = ("ok", "noisy")
DTYPES = ("float32", "float16", "bfloat16")


def kind(device):
    """The device kind a rung's units are counted for: "cpu" or "gpu"."""
    return "cpu" if device.startswith("cpu") else "gpu"


def timed(frame, dtype="float32", cache="cold", output="preallocated"):
    """The measured forward rows of benchmark.csv or samples.csv, as timed on the device.

    torch.compile always allocates its output, and stands beside the others with it.
    """
    where = {"direction": "forward", "measure": "device", "dtype": dtype, "cache": cache}
    chosen = np.logical_and.reduce([frame[key] == value for key, value in where.items()])
    chosen &= (frame.output == output) | (frame.provider == "torch_compile")
    if "status" in frame:
        chosen &= frame.status.isin(MEASURED)
    return frame[chosen]


def ordered(providers):
    """These providers in the one order; an unknown one is an error, not a silent omission."""
    unknown = sorted(set(providers) - set(PROVIDERS))
    if unknown:
        raise ValueError(f"no name for provider {unknown[0]!r}; known: {', '.join(PROVIDERS)}")
    return [name for name in PROVIDERS if name in set(providers)]


def shapes(frame):
    """The (rows, cols) present, narrowest rows first, then fewest rows."""
    pairs = frame[["rows", "cols"]].drop_duplicates().itertuples(index=False)
    return sorted(((int(rows), int(cols)) for rows, cols in pairs), key=lambda s: (s[1], s[0]))


def at(frame, rows, cols):
    """The rows of `frame` for one shape."""
    return frame[(frame.rows == rows) & (frame.cols == cols)]


def shape_name(rows, cols):
    """A shape as people read it: 256 × 8192."""
    return f"{rows} × {cols}"


def pivot(frame, values):
    """`values` as a table, (rows, cols) down and providers across; missing stays NaN."""
    table = frame.pivot_table(index=["rows", "cols"], columns="provider", values=values)
    return table.reindex(index=pd.MultiIndex.from_tuples(shapes(frame), names=["rows", "cols"]))


def geomean(values):
    """The geometric mean of positive numbers; NaNs are left out, none at all gives NaN."""
    values = np.asarray(values, dtype=float)
    values = values[~np.isnan(values)]
    return float(np.exp(np.log(values).mean())) if len(values) else float("nan")


def described(facts):
    """The facts of environment.json that a reader needs, as (name, text); unknown ones left out."""
    device, cpu, git = facts["device_facts"], facts["cpu"], facts["git"]
    units = {"cpu": "logical cores", "gpu": "compute units"}[device["kind"]]
    unclean = " with local changes" if git["dirty"] else ""
    told = {
        "device": f"{device['name']} ({device['arch']}, {device['units']} {units})",
        "memory": size(device["memory_bytes"]),
        "last-level cache": size(device["llc_bytes"]),
        "peak bandwidth": device["peak_gb_per_s"] and f"{device['peak_gb_per_s']:g} GB/s",
        "host": f"{cpu['name']}, torch uses {cpu['threads']} threads",
        "system": facts["os"],
        "container": facts["container_image"],
        "driver": facts["driver"] if device["kind"] == "gpu" else None,
        "ROCm": facts["rocm"],
        "CUDA": facts["cuda"],
        "torch": facts["torch"],
        "Python": facts["python"],
        "compiler": facts["operator"]["compiler"],
        "flags": " ".join(facts["operator"]["flags"]),
        "commit": git["commit"] and git["commit"][:12] + unclean,
        "seed": str(facts["seed"]),
        "run": facts["run_id"],
    }
    return [(name, text) for name, text in told.items() if text]


def size(number):
    """Bytes as people read them, in powers of 1024; None stays None."""
    if number is None:
        return None
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024 or unit == "GiB":
            return f"{number:.4g} {unit}"
        number /= 1024
