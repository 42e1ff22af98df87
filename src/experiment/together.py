"""One comparison of several devices, from the results folder of each.

python -m experiment.together results/cpu reference/cuda-nvidia-h200 --out results/all
"""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns

from experiment import InputError, claims, command, figures, tables, tex, views


def read(folders):
    """The results of each folder: (facts, benchmark, claims) by device; refuses a device twice."""
    found = {}
    for folder in folders:
        facts = tables.read_json(folder / "environment.json")
        device = facts["device"]
        if device in found:
            raise InputError(f"{folder}: {device!r} is in another folder too; name one of them")
        found[device] = (
            facts,
            tables.read(folder / "benchmark.csv", "benchmark"),
            tables.read(folder / "claims.csv", "claims"),
        )
    if len(found) < 2:
        raise InputError(f"{len(found)} device; a comparison takes two or more results folders")
    return found


def fractions(found):
    """A row a device and shape: the copy's bandwidth, auto's part of its speed, torch's over auto's
    time. Cold cache, output given, float32."""
    rows = []
    for device, (_, benchmark, _) in found.items():
        timed = views.timed(benchmark)
        time = views.pivot(timed, "time_us_median")
        copied = views.pivot(timed, "gb_per_s")["copy"]
        rows += [
            {
                "device": device,
                "rows": key[0],
                "cols": key[1],
                "copy_gb_per_s": copied[key],
                "fraction": time.loc[key, "copy"] / time.loc[key, "auto"],
                "speedup": time.loc[key, "torch"] / time.loc[key, "auto"],
            }
            for key in time.index
        ]
    return pd.DataFrame(rows)


def devices_table(found, table):
    """A row a device: what it is, its copy's best bandwidth, and auto's means over its shapes."""
    rows = []
    for device, (facts, *_) in found.items():
        own = table[table.device == device]
        rows.append([
            tex.escape(device), tex.escape(facts["device_facts"]["name"]),
            tex.escape(facts["torch"]), str(len(own)), tex.significant(own.copy_gb_per_s.max()),
            tex.number(views.geomean(own.fraction)), tex.number(views.geomean(own.speedup)),
        ])  # fmt: skip
    head = ["device", "name", "torch", "shapes", "copy", "of copy", "torch/auto"]
    return tex.tabular(r"lp{0.28\linewidth}lrrrr", head, rows)


def fractions_table(table):
    """A row a shape: for each device auto's part of the copy's speed, and torch's time over auto's."""
    devices = list(table.device.unique())
    at = table.set_index(["rows", "cols", "device"])
    rows = [
        [
            tex.shape(*key),
            *(
                tex.number(at[column].get((*key, device)))
                for device in devices
                for column in ("fraction", "speedup")
            ),
        ]
        for key in views.shapes(table)
    ]
    groups = ["", *(tex.two_columns(tex.escape(device)) for device in devices)]
    head = [r"rows $\times$ columns", *["of copy", "torch/auto"] * len(devices)]
    return tex.tabular("l" + "rr" * len(devices), head, rows, groups)


def verdicts_table(found):
    """A row a claim: its verdict and figure on each device."""
    rows = [
        [name, tex.bound(claims.EXPECTED[name]), *(cell(own, name) for *_, own in found.values())]
        for name in claims.STATEMENTS
    ]
    head = ["", "bound", *(tex.escape(device) for device in found)]
    return tex.tabular("ll" + "l" * len(found), head, rows)


def cell(own, name):
    """A claim's verdict on a device, with its figure where it has one."""
    claim = own[own.id == name].iloc[0]
    if pd.isna(claim.measured):
        return claim.verdict.capitalize()
    return f"{claim.verdict.capitalize()} ({tex.figure(claim.measured)})"


def figure(table):
    """auto's part of the copy's speed against the size of the input, a series a device."""
    table = table.assign(megabytes=table.rows * table.cols * 4 / 1e6)
    drawn, axes = plt.subplots(figsize=(figures.PAPER_WIDTH, 3.0))
    sns.scatterplot(table, x="megabytes", y="fraction", hue="device", style="device", s=45, ax=axes)
    axes.axhline(1, color="#999999", lw=1, zorder=0)
    axes.set(
        xscale="log", xlabel="input, megabytes", ylabel="copy's time / auto's time", ylim=(0, None)
    )
    axes.legend(title=None)
    return drawn


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m experiment.together", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("results", nargs="+", type=Path, help="results folders, one a device")
    parser.add_argument("--out", required=True, type=Path, help="the folder to write into")
    options = parser.parse_args(arguments)
    found = read(options.results)
    table = fractions(found)
    made = {
        "values": tex.commands({
            "DeviceCount": str(len(found)),
            "LeastFraction": tex.number(table.fraction.min()),
            "MeanSpeedup": tex.number(views.geomean(table.speedup)),
        }),
        "tables/devices": devices_table(found, table),
        "tables/fractions": fractions_table(table),
        "tables/verdicts": verdicts_table(found),
    }  # fmt: skip
    for name, text in made.items():
        tables.write_text(options.out / "tex" / f"{name}.tex", text)
    figures.prepare()
    figures.save_all(figure(table), options.out / "figures", "fractions")


if __name__ == "__main__":
    command(main)
