"""The figures, each from benchmark.csv alone, as PDF for the paper and SVG and PNG for the report.

All show float32, a cold cache and outputs that were allocated beforehand.

    python -m experiment.figures --benchmark B.csv --out DIR
"""

import argparse
import os
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns

from experiment import command, tables, views

FORMATS = ("pdf", "svg", "png")
# Okabe and Ito's colours, told apart with any colour vision; a marker each, for grey printers.
STYLE = {
    "naive": ("#D55E00", "s"),
    "online": ("#0072B2", "o"),
    "warp": ("#56B4E9", "v"),
    "block": ("#009E73", "D"),
    "split": ("#CC79A7", "<"),
    "gang": ("#7A5195", ">"),
    "auto": ("#000000", "*"),
    "torch": ("#E69F00", "^"),
    "torch_compile": ("#A6761D", "P"),
    "triton": ("#666666", "X"),
    "copy": ("#999999", "_"),
}
PAPER_WIDTH = 6.6  # inches
MOST_SHAPES = 10  # side by side, so that their names do not touch


def bandwidth(timed):
    """Effective bandwidth at each shape, with its spread and the copy as the roof.

    Many shapes go on below each other, in panels of one scale.
    """
    shapes = views.shapes(timed)
    panels = np.array_split(np.arange(len(shapes)), -(-len(shapes) // MOST_SHAPES))
    figure, axes = plt.subplots(
        len(panels), figsize=(PAPER_WIDTH, 2.6 * len(panels) + 1.0), sharey=True, squeeze=False
    )
    for panel, among in zip(axes[:, 0], panels, strict=True):
        draw_bandwidth(panel, timed, [shapes[i] for i in among])
    axes[0, 0].set_ylim(bottom=0)
    axes[-1, 0].set_xlabel("columns (above) and rows (below)")
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False
    )
    return figure


def draw_bandwidth(axes, timed, shapes):
    """The panel of these shapes."""
    providers = [name for name in views.ordered(timed.provider) if name != "copy"]
    position = {shape: x for x, shape in enumerate(shapes)}
    timed = timed.assign(x=[position.get(shape) for shape in zip(timed.rows, timed.cols)])
    timed = timed.dropna(subset="x").sort_values("x")

    roof = timed[timed.provider == "copy"]
    colour, _ = STYLE["copy"]
    for x, level in zip(roof.x, roof.gb_per_s):
        axes.plot([x - 0.45, x + 0.45], [level, level], color=colour, lw=2.5, zorder=1)
    axes.plot([], [], color=colour, lw=2.5, label=views.PROVIDERS["copy"])
    # Beside each other, not on top of each other: close times are the common case.
    offsets = np.linspace(-0.3, 0.3, len(providers)) if len(providers) > 1 else [0.0]
    for offset, name in zip(offsets, providers):
        rows = timed[timed.provider == name]
        slowest, fastest = (
            rows.useful_bytes / rows[column] / 1e3 for column in ("time_us_p80", "time_us_p20")
        )
        colour, marker = STYLE[name]
        axes.errorbar(
            rows.x + offset,
            rows.gb_per_s,
            yerr=[(rows.gb_per_s - slowest).clip(0), (fastest - rows.gb_per_s).clip(0)],
            color=colour,
            marker=marker,
            markersize=7 if marker == "*" else 5,
            markeredgewidth=0,
            lw=0,
            elinewidth=1.2,
            label=views.PROVIDERS[name],
        )
    for x in range(1, len(shapes)):
        axes.axvline(x - 0.5, color="0.92", lw=0.8, zorder=0)
    axes.set_xticks(range(len(shapes)), [f"{cols}\n{rows}" for rows, cols in shapes])
    axes.set_ylabel("effective bandwidth (GB/s)")
    axes.set_xlim(-0.6, len(shapes) - 0.4)
    axes.grid(axis="x", visible=False)


def speedup(timed):
    """How many times faster than torch.softmax, shape by provider."""
    providers = [name for name in views.ordered(timed.provider) if name not in ("torch", "copy")]
    table = views.pivot(timed, "speedup_vs_torch").reindex(columns=providers)
    figure, axes = plt.subplots(figsize=(PAPER_WIDTH, 0.26 * len(table) + 1.0))
    # The colours span at least half to twice and at most an eighth to eightfold.
    reach = float(np.clip(np.nanmax(np.abs(np.log2(table.to_numpy()))), 1, 3))
    sns.heatmap(
        np.log2(table),
        annot=table.to_numpy(),
        fmt=".2f",
        cmap=sns.color_palette("PuOr", as_cmap=True),
        center=0,
        vmin=-reach,
        vmax=reach,
        linewidths=1,
        ax=axes,
        cbar_kws={"label": "torch's time / its time", "pad": 0.02},
    )
    bar = axes.collections[0].colorbar
    ticks = np.arange(np.ceil(-reach), np.floor(reach) + 1)
    bar.set_ticks(ticks, labels=[f"{2.0**tick:g}×" for tick in ticks])
    names = [views.PROVIDERS[name].replace(".", ".\n") for name in providers]
    axes.set_xticks(np.arange(len(providers)) + 0.5, names, rotation=0)
    axes.set_yticks(
        np.arange(len(table)) + 0.5, [views.shape_name(*shape) for shape in table.index], rotation=0
    )
    axes.set_xlabel("")
    axes.set_ylabel("rows × columns")
    axes.grid(visible=False)
    return figure


def traffic(timed, units):
    """Time over the copy's time against the accesses a rung issues over the copy's two.

    units: {rung: accesses issued per element} of this device's kind.
    """
    time = views.pivot(timed, "time_us_median")
    rungs = [name for name in views.ordered(timed.provider) if name in units]
    figure, axes = plt.subplots(figsize=(PAPER_WIDTH, 3.6))
    cols = np.log2(time.index.get_level_values("cols").to_numpy(dtype=float))
    reach = np.array([1.0, max(units[name] for name in rungs) / 2]) + [-0.15, 0.3]
    axes.plot(reach, reach, color="0.5", ls="--", lw=1, label="time as the accesses", zorder=1)
    # Shapes keep their order in every cluster (narrow to wide); rungs that share a place part.
    spread = np.linspace(-0.06, 0.06, len(time)) if len(time) > 1 else np.zeros(1)
    clusters = {}
    for name in rungs:
        sharing = [other for other in rungs if units[other] == units[name]]
        place = units[name] / 2 + 0.17 * (sharing.index(name) - (len(sharing) - 1) / 2)
        clusters[place] = views.PROVIDERS[name]
        relative = time[name] / time["copy"]
        points = axes.scatter(
            place + spread,
            relative,
            c=cols,
            cmap="viridis",
            vmin=cols.min(),
            vmax=cols.max(),
            s=28,
            edgecolor="white",
            lw=0.4,
            zorder=3,
        )
        axes.plot([place - 0.07, place + 0.07], [relative.median()] * 2, color="black", lw=1.6)
    axes.plot([], [], color="black", lw=1.6, label="median over shapes")
    bar = figure.colorbar(points, ax=axes, label="columns", pad=0.02)
    ticks = np.unique(np.linspace(cols.min(), cols.max(), 5).round())
    bar.set_ticks(ticks, labels=[f"{2.0**tick:.0f}" for tick in ticks])
    places = sorted({units[name] for name in rungs})
    # Two rows of labels: the rungs' names, and below them where they stand.
    axes.xaxis.remove_overlapping_locs = False
    axes.set_xticks(list(clusters), list(clusters.values()), minor=True, weight="bold")
    axes.set_xticks([p / 2 for p in places], [f"{p:g}/2" for p in places])
    axes.tick_params(axis="x", which="major", pad=18)
    axes.set_xlabel("accesses issued an element / the copy's two")
    axes.set_ylabel("time / the copy's time")
    axes.set_ylim(bottom=0)
    axes.grid(axis="x", visible=False)
    axes.legend(frameon=False, loc="upper left")
    return figure


def draw(benchmark, units, folder):
    """Writes every figure in every format into `folder`."""
    prepare()
    timed = views.timed(benchmark)
    kind = views.kind(benchmark.device.iloc[0])
    for name, figure in (
        ("bandwidth", bandwidth(timed)),
        ("speedup", speedup(timed)),
        ("traffic", traffic(timed, units[kind])),
    ):
        save_all(figure, folder, name)


def prepare():
    """One look for all figures, and the same data gives the same file."""
    sns.set_theme(context="paper", style="whitegrid")
    plt.rcParams["figure.constrained_layout.use"] = True
    plt.rcParams["savefig.dpi"] = 160
    plt.rcParams["svg.hashsalt"] = "online-softmax"


def save_all(figure, folder, name):
    """Writes a figure in every format, and closes it."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for extension in FORMATS:
        save(figure, Path(folder, f"{name}.{extension}"))
    plt.close(figure)


def save(figure, path):
    """Writes one file, whole or not at all."""
    dated = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
    temporary = path.with_name(f".{path.name}.tmp")
    figure.savefig(temporary, format=path.suffix[1:], metadata=dated.get(path.suffix[1:]))
    os.replace(temporary, path)


def main(arguments=None):
    from online_softmax import UNITS

    parser = argparse.ArgumentParser(prog="experiment.figures", description=__doc__.split("\n")[0])
    parser.add_argument("--benchmark", required=True, help="the benchmark.csv to read")
    parser.add_argument("--out", required=True, help="the folder to draw into")
    options = parser.parse_args(arguments)
    draw(tables.read(options.benchmark, "benchmark"), UNITS, options.out)


if __name__ == "__main__":
    command(main)
