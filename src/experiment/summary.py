"""The answer in one page of Markdown: a sentence, a table, the claims, and where the rest is.

    python -m experiment.summary --environment E.json --benchmark B.csv --claims C.csv \
        --out summary.md
"""

import argparse
from pathlib import Path

import pandas as pd

from experiment import command, tables, views

METHOD = (
    "A figure is the median over rounds of a ratio of times, with a 95% bootstrap interval; an"
    " interval that holds the bound leaves a claim undecided."
)
FILES = {
    "paper.pdf": "the paper, where TeX is installed",
    "report.html": "figures and tables with the code that made them, in one file",
    "figures/": "each figure as PDF, SVG and PNG",
    "claims.csv": "each claim with its interval, verdict and evidence",
    "benchmark.csv": "a row a measurement: every provider, cache state and output",
    "samples.csv": "a row a sample",
    "verify.csv": "a row a check against float64",
    "environment.json": "the machine and the software",
}


def number(value, digits=2):
    return "–" if pd.isna(value) else f"{value:.{digits}f}"


def figure(claim):
    """A claim's figure and interval; errors are small, ratios are not."""
    if pd.isna(claim.measured):
        return "–"
    form = "{:.2f}" if claim.measured > 1e-3 else "{:.1e}"
    measured, low, high = (form.format(v) for v in (claim.measured, claim.low, claim.high))
    return measured if low == high else f"{measured} [{low}, {high}]"


def answer(device, timed, claims):
    """The first line: online against naive, and auto against torch."""
    wide = claims.set_index("id").loc["C1"]
    auto = timed[timed.provider == "auto"]
    sentences = []
    if not pd.isna(wide.measured):
        where = wide.evidence.split(" at ")[1].split(",")[0]
        sentences.append(f"online softmax is {figure(wide)} times as fast as naive at {where}")
    if len(auto):
        mean = number(views.geomean(auto.speedup_vs_torch))
        sentences.append(
            f"auto is {mean} times as fast as torch.softmax"
            f" (geometric mean over {len(auto)} shapes)"
        )
    return f"On {device}, " + "; ".join(sentences or ["nothing was measured"]) + "."


def grid(head, rows):
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def times(timed):
    """Median milliseconds, a row a shape, and auto against torch."""
    providers = views.ordered(timed.provider)
    time = views.pivot(timed, "time_us_median") / 1e3
    speedup = views.pivot(timed, "speedup_vs_torch")
    head = ["rows × columns", *(views.PROVIDERS[name] for name in providers), "torch/auto"]
    rows = [
        [
            views.shape_name(*key),
            *(number(time.loc[key, name], 4) for name in providers),
            number(speedup.loc[key].get("auto")),
        ]
        for key in time.index
    ]
    return grid(head, rows)


def summary(facts, benchmark, claims):
    """The page as Markdown."""
    timed = views.timed(benchmark)
    verdicts = [
        [c.id, c.statement, c.expected, figure(c), c.verdict, c.evidence]
        for c in claims.itertuples()
    ]
    lines = [
        answer(facts["device"], timed, claims),
        "",
        "Median milliseconds in float32, cold cache, output allocated beforehand:",
        "",
        times(timed),
        "",
        "## Claims",
        "",
        grid(["", "claim", "bound", "measured", "verdict", "evidence"], verdicts),
        "",
        METHOD,
        "",
        "## Machine",
        "",
        *(f"- {name}: {value}" for name, value in views.described(facts)),
        "",
        "## Files",
        "",
        *(f"- `{name}`: {what}" for name, what in FILES.items()),
        "",
    ]
    return "\n".join(lines)


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m experiment.summary", description=__doc__.split("\n")[0]
    )
    for name in ("environment", "benchmark", "claims"):
        parser.add_argument(f"--{name}", required=True, help=f"the run's {name} file")
    parser.add_argument("--out", required=True, help="the Markdown file to write")
    options = parser.parse_args(arguments)
    page = summary(
        tables.read_json(options.environment),
        tables.read(options.benchmark, "benchmark"),
        tables.read(options.claims, "claims"),
    )
    tables.write_text(Path(options.out), page)


if __name__ == "__main__":
    command(main)
