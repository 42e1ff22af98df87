"""What the paper says of AMD GPUs, none of which was measured: tables, macros and a figure.

From codeobjects.csv (what the compiler made), predicted.csv (what a model expects) and the post's
published times (what bandwidth they imply).

    python -m experiment.amd --codeobjects C.csv --predicted P.csv --published PUB.csv --tex DIR \
        --figures DIR
"""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns

from experiment import command, figures, predicted, tables, tex, views

WAVES = {64: "CDNA and GCN", 32: "RDNA"}


def by_rung(codeobjects):
    """codeobjects.csv with a rung a row instead of a kernel's parameters; in the ladder's order."""
    rung = codeobjects.kernel.str.partition("<")[0]
    order = {name: place for place, name in enumerate(views.PROVIDERS)}
    place = rung.str.partition("_")[0].map(order)
    return codeobjects.assign(rung=rung, place=place).sort_values(["place", "rung"], kind="stable")


def codeobjects_table(codeobjects):
    """A row a rung: registers and occupancy by wave size, LDS, spills, the widths of accesses."""
    rows = []
    for rung, own in by_rung(codeobjects).groupby("rung", sort=False):
        cells = [tex.escape(rung), str(len(own))]
        for wave in WAVES:
            of_wave = own[own.wave_size == wave]
            cells += [str(of_wave.vgprs.max()), str(of_wave.waves_per_simd.min())]
        spilled = own.vgpr_spills.sum() + own.sgpr_spills.sum() + own.scratch_bytes.sum()
        widths = [own[own[kind] > 0][kind].min() for kind in ("load_bytes", "store_bytes")]
        cells += [str(own.lds_bytes.max()), str(spilled)]
        cells += ("--" if pd.isna(w) else f"{w:.0f}" for w in widths)
        rows.append(cells)
    head = ["rung", "kernels", "VGPRs", "waves", "VGPRs", "waves", "LDS", "spills", "load", "store"]
    groups = ["", "", *map(tex.two_columns, WAVES.values()), "", "", "", ""]
    return tex.tabular("lrrrrrrrrr", head, rows, groups)


def predicted_table(found):
    """A row a GPU and shape: the rung, the predicted time and the band that refutes it."""
    rows = [
        [
            tex.escape(row.gpu), tex.shape(row.rows, row.cols), tex.escape(row.rung),
            tex.significant(row.predicted_us), tex.significant(row.low_us),
            tex.significant(row.high_us), tex.number(row.peak_fraction),
            "yes" if row.fits_cache else "no",
        ]
        for row in found.itertuples()
    ]  # fmt: skip
    head = [
        "GPU",
        r"rows $\times$ columns",
        "rung",
        r"$\mu$s",
        "low",
        "high",
        "of peak",
        "in cache",
    ]
    return tex.tabular("lllrrrrl", head, rows)


def implied_table(published, units):
    """A row a shape of the post: the bandwidth that its times imply."""
    rows = [
        [tex.shape(row.rows, row.cols), tex.significant(row.naive), tex.significant(row.online)]
        for row in predicted.implied(published, units).sort_values(["rows", "cols"]).itertuples()
    ]
    return tex.tabular("lrr", [r"rows $\times$ columns", "naive", "online"], rows)


def macros(codeobjects, published, units):
    """Macros for the prose."""
    large = predicted.implied(published, units).assign(size=published.rows * published.cols)
    large = large.sort_values("size").iloc[-1]
    low, expected, high = (f"{100 * part:g}" for part in predicted.EFFICIENCY)
    return {
        "AmdArchs": ", ".join(codeobjects.arch.unique()),
        "AmdKernels": f"{len(codeobjects):,}",
        "AmdCompiler": tex.escape("; ".join(sorted(codeobjects.compiler.unique()))),
        "ImpliedLow": tex.significant(min(large.naive, large.online)),
        "ImpliedHigh": tex.significant(max(large.naive, large.online)),
        "EfficiencyLow": low,
        "EfficiencyExpected": expected,
        "EfficiencyHigh": high,
    }


def occupancy(codeobjects):
    """Waves per SIMD, as a part of what the arch can hold: the fullest kernel of each rung."""
    from experiment.codeobjects import ARCHS

    part = by_rung(codeobjects)
    part = part.assign(part=part.waves_per_simd / part.arch.map(lambda arch: ARCHS[arch].waves))
    least = part.pivot_table(index="rung", columns="arch", values="part", aggfunc="min", sort=False)
    waves = part.pivot_table(
        index="rung", columns="arch", values="waves_per_simd", aggfunc="min", sort=False
    )
    figure, axes = plt.subplots(figsize=(figures.PAPER_WIDTH, 2.8))
    sns.heatmap(
        least, annot=waves, fmt="g", vmin=0, vmax=1, cmap="viridis", ax=axes,
        cbar_kws={"label": "part of the most"},
    )  # fmt: skip
    axes.set(xlabel="", ylabel="")
    return figure


def main(arguments=None):
    from online_softmax import UNITS

    parser = argparse.ArgumentParser(
        prog="python -m experiment.amd", description=__doc__.split("\n")[0]
    )
    for name in ("codeobjects", "predicted", "published"):
        parser.add_argument(f"--{name}", required=True, help=f"the {name} table to read")
    parser.add_argument("--tex", required=True, help="the folder for tables and macros")
    parser.add_argument("--figures", required=True, help="the folder for the figure")
    options = parser.parse_args(arguments)

    codeobjects = tables.read(options.codeobjects, "codeobjects")
    found = tables.read(options.predicted, "predicted")
    published = pd.read_csv(options.published)
    units = UNITS["gpu"]
    made = {
        "amd": tex.commands(macros(codeobjects, published, units)),
        "tables/codeobjects": codeobjects_table(codeobjects),
        "tables/predicted": predicted_table(found),
        "tables/implied": implied_table(published, units),
    }
    for name, text in made.items():
        tables.write_text(Path(options.tex, f"{name}.tex"), text)
    figures.prepare()
    figures.save_all(occupancy(codeobjects), options.figures, "occupancy")


if __name__ == "__main__":
    command(main)
