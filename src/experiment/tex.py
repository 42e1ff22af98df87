"""Every number of the paper: macros in values.tex and a file a table, from the run's CSVs.

    python -m experiment.tex --environment E.json --benchmark B.csv --samples S.csv \
        --verify V.csv --claims C.csv --published P.csv --seconds N.txt ... --out DIR
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from experiment import claims, command, tables, views

SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"$<$",
    ">": r"$>$",
    "×": r"$\times$",
    "²": r"$^2$",
}
LAUNCH = (8, 2048)  # a shape with next to nothing to move
LONG_COLS = 131072  # from here on a row is too long for a block in every type
WORDS = dict(zip("12345", ["One", "Two", "Three", "Four", "Five"]))  # a macro's name has letters


def escape(text):
    """Text that TeX prints as it stands."""
    plain = "".join(SPECIAL.get(c, c) for c in str(text))
    return plain.replace("--", "-{}-")  # not a dash


def bound(expected):
    """A claim's bound: "<= 1" or "< 1e-6" as TeX prints it."""
    sense, value = expected.split()
    printed = scientific(float(value)) if float(value) < 1e-3 else value
    return {"<=": r"$\leq$"}.get(sense, f"${sense}$") + " " + printed


def shape(rows, cols):
    return escape(views.shape_name(rows, cols))


def number(value, digits=2):
    """A number with `digits` decimals; a dash where there is none."""
    return "--" if pd.isna(value) else f"{value:,.{digits}f}"


def significant(value):
    """Three digits that count, thousands apart: 5.12, 51.2, 512, 5,120."""
    if pd.isna(value):
        return "--"
    digits = 2 - int(np.floor(np.log10(value))) if value > 0 else 0
    return f"{round(value, digits):,.{max(digits, 0)}f}"


def scientific(value):
    """A small number as TeX's product with a power of ten; zero stays zero."""
    if pd.isna(value):
        return "--"
    if value == 0:
        return "0"
    mantissa, exponent = f"{value:.1e}".split("e")
    return rf"${mantissa}\cdot 10^{{{int(exponent)}}}$"


def figure(value):
    """A claim's figure: a ratio, or an error, which is small."""
    return scientific(value) if 0 < value < 1e-3 else number(value)


def interval(claim):
    """A claim's figure with its interval, where it has one."""
    if pd.isna(claim.measured):
        return "--"
    if claim.low == claim.high:
        return figure(claim.measured)
    return f"{figure(claim.measured)} [{figure(claim.low)}, {figure(claim.high)}]"


def tabular(columns, head, rows, groups=()):
    """A booktabs table, with a head or None, and cells above it for groups of columns; every cell
    is TeX already."""
    lines = [
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        *([" & ".join(groups) + r" \\"] if groups else []),
        *([" & ".join(head) + r" \\", r"\midrule"] if head else []),
        *(" & ".join(cells) + r" \\" for cells in rows),
        r"\bottomrule",
        r"\end{tabular}",
        "",
    ]
    return "\n".join(lines)


def units_table(units):
    """What each rung moves: units is {rung: accesses issued per element}."""
    rows = [
        [escape(views.PROVIDERS[name]), f"{units[name]:g}", number(units[name] / 2),
         number(units["naive"] / units[name])]
        for name in views.ordered(units)
    ]  # fmt: skip
    head = ["rung", "accesses an element", "over the copy's two", "naive's over its own"]
    return tabular("lrrr", head, rows)


def shapes_table(benchmark):
    """A row a shape: the copy's bandwidth, each provider's median time, auto against torch."""
    timed = views.timed(benchmark)
    providers = [name for name in views.ordered(timed.provider) if name != "copy"]
    time = views.pivot(timed, "time_us_median")
    copied = views.pivot(timed, "gb_per_s")["copy"]
    speedups = [auto_speedup(benchmark, output) for output in ("preallocated", "allocated")]
    rows = []
    for key in time.index:
        fastest = time.loc[key, providers].min()
        times = [
            rf"\textbf{{{significant(value)}}}" if value == fastest else significant(value)
            for value in time.loc[key, providers]
        ]
        ratios = [number(speedup.get(key)) for speedup in speedups]
        rows.append([shape(*key), significant(copied[key]), *times, *ratios])
    names = [rf"\texttt{{{escape(name)}}}" for name in providers]
    head = [r"rows $\times$ columns", "copy", *names, "given", "made"]
    return tabular("l" + "r" * (len(providers) + 3), head, rows)


def auto_speedup(benchmark, output):
    """torch's time over auto's at each shape, with the output given beforehand or made."""
    timed = views.timed(benchmark, output=output)
    return timed[timed.provider == "auto"].set_index(["rows", "cols"]).speedup_vs_torch


def bounds_table(benchmark):
    """A row a long shape and type: the part of the copy's speed that auto reaches, and the part
    that it would reach if it lost to the copy what a gang loses with nothing to move."""
    rows = []
    for dtype in views.DTYPES:
        time = views.pivot(views.timed(benchmark, dtype=dtype), "time_us_median")
        if LAUNCH not in time.index:
            continue
        cost = meeting_cost(benchmark, dtype)
        for key in (key for key in time.index if key[1] >= LONG_COLS):
            copied, taken = time.loc[key, ["copy", "auto"]]
            alone = copied / (copied + cost)
            rows.append([
                shape(*key), dtype, significant(copied), significant(taken),
                number(copied / taken), number(alone),
            ])  # fmt: skip
    head = [r"rows $\times$ columns", "type", "copy", "auto", "reached", "meeting alone"]
    missing = [r"\multicolumn{6}{c}{not measured on this device}"]
    return tabular("llrrrr", head, rows or [missing])


def meeting_cost(benchmark, dtype="float32"):
    """Microseconds that a gang takes beyond the copy where there is next to nothing to move."""
    time = views.pivot(views.timed(benchmark, dtype=dtype), "time_us_median")
    if LAUNCH not in time.index:
        return np.nan
    return time.loc[LAUNCH, "gang"] - time.loc[LAUNCH, "copy"]


def errors_table(verify):
    """A row a provider: how many checks, how many held, and its largest errors."""
    checks = verify[~verify.case.str.startswith("diff_") & (verify.dtype == "float32")]
    rows = []
    for name in views.ordered(checks.provider):
        own = checks[checks.provider == name]
        rows.append([
            escape(views.PROVIDERS[name]),
            str(len(own)),
            str(int(own.passed.sum())),
            *(scientific(own[error].replace(np.inf, np.nan).max())
              for error in ("max_abs_err", "scaled_err", "row_sum_err")),
        ])  # fmt: skip
    head = ["provider", "checks", "passed", "absolute", "scaled", "row sum"]
    return tabular("lrrrrr", head, rows)


def claims_table(found, published):
    """A row a claim, with the post's own figure."""
    rows = [
        [
            claim.id,
            escape(claim.statement),
            bound(claim.expected),
            interval(claim),
            figure(post_figure(claim.id, published)),
            claim.verdict.capitalize(),
        ]
        for claim in found.itertuples()
    ]
    head = ["", "claim", "bound", "measured", "post", "verdict"]
    return tabular(r"lp{0.40\linewidth}llrl", head, rows)


def post_figure(name, published):
    """The post's figure for a claim, from its published times."""
    at = published.set_index(["rows", "cols"])
    widest = published.sort_values(["rows", "cols"]).iloc[-1]
    narrow, few = at.loc[claims.NARROW], at.loc[claims.FEW]
    return {
        "C1": widest.naive_ms / widest.online_ms,
        "C2": narrow.naive_ms / min(narrow.online_ms, narrow.torch_ms),
        "C3": few.torch_ms / few.online_ms,
        "C4": widest.torch_ms / widest.online_ms,
        "C5": published.max_abs_diff_torch.max(),
    }[name]


def published_table(published, benchmark):
    """The post's times and ratios, and ours where this device measured the shape."""
    time = views.pivot(views.timed(benchmark), "time_us_median") / 1e3
    rows = []
    for post in published.sort_values(["rows", "cols"]).itertuples():
        key = (post.rows, post.cols)
        rows.append([shape(*key), "post", *times(post.torch_ms, post.online_ms, post.naive_ms)])
        if key in time.index:
            ours = time.loc[key]
            rows.append(["", "here", *times(ours["torch"], ours["online"], ours["naive"])])
        else:
            missing = r"\multicolumn{5}{c}{not measured on this device}"
            rows.append(["", "here", missing])
    head = [
        r"rows $\times$ columns", "", "torch", "online", "naive", "naive/online", "torch/online"
    ]  # fmt: skip
    return tabular("llrrrrr", head, rows)


def times(torch, online, naive):
    """Three times in milliseconds and the two ratios the post gives."""
    return [
        *(significant(value) for value in (torch, online, naive)),
        number(naive / online),
        number(torch / online),
    ]


def artifact_table(found, folder):
    """A row a claim: the command that shows its result, what to expect, and what this run gave."""
    rows = [
        [
            claim.id,
            rf"\texttt{{snakemake claims \&\& grep {claim.id} {escape(folder)}/claims.csv}}",
            bound(claim.expected),
            interval(claim),
        ]
        for claim in found.itertuples()
    ]
    return tabular("lllr", ["", "command", "expected", "this run"], rows)


def environment_table(facts):
    """The machine and the software, as environment.json has them."""
    rows = [[escape(name), escape(value)] for name, value in views.described(facts)]
    return tabular(r"lp{0.68\linewidth}", None, rows)


def values(facts, benchmark, samples, verify, found, published, seconds, units, disk):
    """The macros of values.tex: {name: TeX}."""
    device = facts["device"]
    timed = views.timed(benchmark)
    own = verify[verify.provider.isin(units) & ~verify.case.str.startswith("diff_")]
    largest = max(views.shapes(timed), key=lambda s: s[0] * s[1])
    headline = views.timed(samples)
    macros = {
        "Device": escape(device),
        "RunDate": facts["date"][:10],
        "Seed": str(facts["seed"]),
        "ShapeCount": str(len(views.shapes(timed))),
        "Rounds": str(headline["round"].nunique()),
        "SamplesPerRound": str(headline.i.nunique()),
        "CopyPeak": significant(timed[timed.provider == "copy"].gb_per_s.max()),
        "TrafficBound": number(units["naive"] / units["online"]),
        "NaiveUnits": f"{units['naive']:g}",
        "OnlineUnits": f"{units['online']:g}",
        "MeetingCost": significant(meeting_cost(benchmark)),
        "LaunchShape": shape(*LAUNCH),
        "LongColumns": f"{LONG_COLS:,}",
        "Resamples": f"{claims.RESAMPLES:,}",
        "Coverage": str(claims.COVERAGE),
        "Checks": str(len(own)),
        "ChecksPassed": str(int(own.passed.sum())),
        "Tolerance": scientific(own[own.dtype == "float32"].tolerance.max()),
        "WorstError": scientific(own[own.scaled_err < np.inf].scaled_err.max()),
        "BenchmarkMinutes": number(sum(seconds) / 60, 1),
        "MemoryMegabytes": number(largest[0] * largest[1] * 4 / 1e6, 0),
        "ResultMegabytes": significant(disk / 1e6),
        "NoisyRows": str(int((benchmark.status == "noisy").sum())),
        "MeasuredRows": str(int(benchmark.status.isin(views.MEASURED).sum())),
    }
    for name, output in (("Given", "preallocated"), ("Made", "allocated")):
        macros |= extremes(f"Auto{name}", auto_speedup(benchmark, output))
    for claim in found.itertuples():
        prefix = f"Claim{WORDS[claim.id[1]]}"
        macros |= {
            f"{prefix}Figure": interval(claim),
            f"{prefix}Bound": bound(claim.expected),
            f"{prefix}Verdict": escape(claim.verdict),
            f"{prefix}Evidence": escape(claim.evidence),
            f"{prefix}Post": figure(post_figure(claim.id, published)),
        }
    return macros


def extremes(prefix, speedups):
    """Macros for speedups indexed by shape: their geometric mean, the least and the most."""
    known = speedups.dropna()
    macros = {f"{prefix}Mean": number(views.geomean(known))}
    for name, place in (("Least", known.idxmin), ("Most", known.idxmax)):
        macros[f"{prefix}{name}"] = number(known[place()]) if len(known) else "--"
        macros[f"{prefix}{name}Shape"] = shape(*place()) if len(known) else "--"
    return macros


def definitions(macros, device):
    """values.tex: a macro a value, and switches for prose that depends on the device."""
    gpu = views.kind(device) == "gpu"
    switches = [r"\newif\ifgpu", r"\gputrue" if gpu else r"\gpufalse", ""]
    return "\n".join(switches) + commands(macros)


def two_columns(name):
    """The cell of a group of two columns."""
    return rf"\multicolumn{{2}}{{c}}{{{name}}}"


def commands(macros):
    """A \\newcommand a macro."""
    lines = [rf"\newcommand{{\{name}}}{{{value}}}" for name, value in sorted(macros.items())]
    return "\n".join([*lines, ""])


def main(arguments=None):
    from online_softmax import UNITS

    parser = argparse.ArgumentParser(
        prog="python -m experiment.tex", description=__doc__.split("\n")[0]
    )
    for name in ("environment", "benchmark", "samples", "verify", "claims", "published"):
        parser.add_argument(f"--{name}", required=True, help=f"the {name} file to read")
    parser.add_argument("--seconds", nargs="+", required=True, help="what each shape took")
    parser.add_argument("--out", required=True, help="the folder to write into")
    options = parser.parse_args(arguments)

    facts = tables.read_json(options.environment)
    benchmark, samples, verify, found = (
        tables.read(getattr(options, name), name)
        for name in ("benchmark", "samples", "verify", "claims")
    )
    published = pd.read_csv(options.published)
    seconds = [float(Path(path).read_text()) for path in options.seconds]
    units = UNITS[views.kind(facts["device"])]
    results = Path(options.claims).parent
    disk = sum(path.stat().st_size for path in results.rglob("*") if path.is_file())
    macros = values(facts, benchmark, samples, verify, found, published, seconds, units, disk)
    made = {
        "values": definitions(macros, facts["device"]),
        "tables/environment": environment_table(facts),
        "tables/units": units_table(units),
        "tables/shapes": shapes_table(benchmark),
        "tables/bounds": bounds_table(benchmark),
        "tables/errors": errors_table(verify),
        "tables/claims": claims_table(found, published),
        "tables/published": published_table(published, benchmark),
        "tables/artifact": artifact_table(found, results),
    }
    for name, text in made.items():
        tables.write_text(Path(options.out, f"{name}.tex"), text)


if __name__ == "__main__":
    command(main)
