"""What AMD GPUs should reach, before any has been measured: a model that a measurement can refute.

A softmax is limited by memory, so

    time = launches · LAUNCH_US + moved bytes / (EFFICIENCY · published bandwidth)

with the accesses that the rung issues which `auto` takes there (dispatch.h is asked, as it would
be on that GPU). A run on the GPU refutes the model where its median, with a cold cache and the
output given, lies outside [low, high]: below, fewer bytes came from memory than the rung issues;
above, something else than memory costs.

    python -m experiment.predicted --gpus reference/amd-gpus.csv --out predicted.csv
"""

import argparse

import pandas as pd
import torch

import online_softmax
from experiment import InputError, claims, command, tables

#: The part of its published bandwidth that a GPU's copy reaches: low, expected, high. The H200 of
#: reference/ reaches 0.88 (8192 × 50257); MI300X, by the figures that others publish, about 0.8.
EFFICIENCY = (0.70, 0.80, 0.90)
#: Microseconds that a launch takes beside its bytes, likewise; on the H200 about 3.
LAUNCH_US = (10.0, 5.0, 2.0)
LAUNCHES = {"split": 2, "gang": 2}  # gang clears its words first
COLUMNS = ["gpu", "arch", "compute_units", "units", "peak_gb_per_s", "llc_mib", "source"]


def gpus(path):
    """The table of published facts."""
    found = pd.read_csv(path)
    if list(found.columns) != COLUMNS:
        raise InputError(f"{path}: columns {', '.join(found.columns)}; expected {COLUMNS}")
    return found


def predict(found, shapes=claims.POST_SHAPES):
    """predicted.csv as a table: a row a GPU and shape."""
    rows = [row(gpu, *shape) for gpu in found.itertuples() for shape in shapes]
    return tables.frame(rows, "predicted")


def row(gpu, rows, cols):
    """The prediction for one GPU and shape, in float32."""
    rung, blocks = online_softmax.planned(rows, cols, torch.float32, gpu.units, False)
    useful = 2 * rows * cols * 4
    moved = online_softmax.UNITS["gpu"][rung] * rows * cols * 4
    high, expected, low = (
        LAUNCHES.get(rung, 1) * launch + moved / (part * gpu.peak_gb_per_s * 1e3)
        for launch, part in zip(LAUNCH_US, EFFICIENCY)
    )
    return {
        "gpu": gpu.gpu,
        "arch": gpu.arch,
        "rows": rows,
        "cols": cols,
        "rung": rung,
        "blocks_a_row": blocks,
        "moved_bytes": int(moved),
        "predicted_us": expected,
        "low_us": low,
        "high_us": high,
        "peak_fraction": useful / (expected * gpu.peak_gb_per_s * 1e3),
        "fits_cache": useful <= gpu.llc_mib * 2**20,
    }


def implied(published, units):
    """The bandwidth in GB/s that the post's times imply, by what its two kernels issue."""
    moved = published.rows * published.cols * 4
    return published[["rows", "cols"]].assign(**{
        rung: units[rung] * moved / (published[f"{rung}_ms"] * 1e6) for rung in ("naive", "online")
    })  # fmt: skip


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m experiment.predicted", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--gpus", required=True, help="the table of published facts")
    parser.add_argument("--out", required=True, help="the CSV to write")
    options = parser.parse_args(arguments)
    tables.write(predict(gpus(options.gpus)), options.out, "predicted")


if __name__ == "__main__":
    command(main)
