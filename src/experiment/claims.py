"""The post's claims, each one a number with an interval, a bound and a verdict.

A time ratio is taken inside a round, where both providers ran within the same moment, as the ratio
of their median times; the median over rounds is the figure, and resampling the rounds gives the
interval. An interval that holds the bound decides nothing: UNDECIDED.

    python -m experiment.claims --benchmark B.csv --samples S.csv --verify V.csv --out claims.csv
"""

import argparse
from dataclasses import dataclass

import numpy as np
import pandas as pd

from experiment import command, tables, views

RESAMPLES = 4000
COVERAGE = 95  # per cent
SEED = 1805
NARROW = (256, 2048)
FEW = (256, 8192)
POST_ROWS = 256
POST_SHAPES = [(256, 2048), (256, 8192), (256, 2097152), (4096, 262144)]
STATEMENTS = {
    "C1": "Where rows are wide, two passes beat three: online is faster than naive.",
    "C2": "Where rows are narrow, the saved read does not pay for the extra exponentials: online"
    " is no faster than naive, and torch is no faster than naive either.",
    "C3": "With few rows a block a row leaves compute units idle: torch is faster than online.",
    "C4": "With many rows and many columns online is faster than torch.",
    "C5": "Both kernels agree with torch in float32 on inputs drawn from N(0, 10²).",
}
EXPECTED = {"C1": "> 1", "C2": "<= 1", "C3": "< 1", "C4": "> 1", "C5": "< 1e-6"}


class NotTested(Exception):
    """The device or the data at hand cannot decide a claim; the message says why."""


@dataclass(frozen=True)
class Finding:
    """A number, the interval around it and where both come from."""

    measured: float
    low: float
    high: float
    evidence: str


def verdict(low, high, expected):
    """PASS or FAIL when the interval lies on one side of the bound, else UNDECIDED."""
    sense, bound = expected.split()
    bound = float(bound)
    if low <= bound <= high:
        return "UNDECIDED"
    return "PASS" if (low > bound) == (sense[0] == ">") else "FAIL"


def round_ratios(samples, shape, pairs):
    """Time ratios at one shape, an array (rounds, pairs); a pair is (over, under)."""
    times = views.at(samples, *shape).pivot_table(
        index="round", columns="provider", values="time_us", aggfunc="median"
    )
    absent = {name for pair in pairs for name in pair} - set(times.columns)
    if absent:
        names = ", ".join(views.ordered(absent))
        raise NotTested(f"{views.shape_name(*shape)} was not measured for {names}")
    return np.column_stack([times[over] / times[under] for over, under in pairs])


def ratio(samples, shape, pairs):
    """The finding that the largest of the pairs' ratios makes: all are below a bound if it is."""
    ratios = round_ratios(samples, shape, pairs)
    rounds = len(ratios)
    chosen = np.random.default_rng(SEED).integers(rounds, size=(RESAMPLES, rounds))
    each = np.median(ratios, axis=0)
    tail = (100 - COVERAGE) / 2
    low, high = np.percentile(np.median(ratios[chosen], axis=1).max(axis=1), [tail, 100 - tail])
    named = " and ".join(f"{over}/{under} {value:.2f}" for (over, under), value in zip(pairs, each))
    evidence = f"{named} at {views.shape_name(*shape)}, {rounds} rounds"
    return Finding(float(each.max()), float(low), float(high), evidence)


def wide_rows(benchmark, samples, verify):
    """C1: naive over online at the widest shape with at least as many rows as the post's."""
    candidates = [shape for shape in views.shapes(benchmark) if shape[0] >= POST_ROWS]
    if not candidates:
        raise NotTested(f"no declared shape has {POST_ROWS} rows or more")
    return ratio(samples, candidates[-1], [("naive", "online")])


def narrow_rows(benchmark, samples, verify):
    """C2: naive over online and naive over torch where rows are narrow; the larger decides."""
    return ratio(samples, NARROW, [("naive", "online"), ("naive", "torch")])


def few_rows(benchmark, samples, verify):
    """C3: torch over online where rows are few; a claim about a GPU's idle compute units."""
    if views.kind(benchmark.device.iloc[0]) == "cpu":
        raise NotTested("a claim about GPUs; on a CPU few rows are split over the threads")
    return ratio(samples, FEW, [("torch", "online")])


def large(benchmark, samples, verify):
    """C4: torch over online at the shape with the most elements; of two equals, the more rows."""
    shape = max(views.shapes(benchmark), key=lambda s: (s[0] * s[1], s[0]))
    return ratio(samples, shape, [("torch", "online")])


def agreement(benchmark, samples, verify):
    """C5: the largest difference from torch over the post's shapes and both its kernels."""
    posts = [shape in POST_SHAPES for shape in zip(verify.rows, verify.cols)]
    compared = verify.case.isin(["diff_online_torch", "diff_naive_torch"])
    against_torch = verify[compared & pd.Series(posts, index=verify.index)]
    if against_torch.empty:
        raise NotTested("none of the post's shapes was verified against torch")
    largest = float(against_torch.max_abs_err.max())
    names = ", ".join(views.shape_name(*shape) for shape in views.shapes(against_torch))
    return Finding(largest, largest, largest, f"largest absolute difference at {names}")


TESTS = {"C1": wide_rows, "C2": narrow_rows, "C3": few_rows, "C4": large, "C5": agreement}


def claims(benchmark, samples, verify):
    """The claims table, a row a claim, from the three tables as they are read."""
    benchmark, samples = views.timed(benchmark), views.timed(samples)
    rows = []
    for name, test in TESTS.items():
        row = {"id": name, "statement": STATEMENTS[name], "expected": EXPECTED[name]}
        try:
            found = test(benchmark, samples, verify)
        except NotTested as reason:
            row |= {"verdict": "NOT TESTED", "evidence": str(reason)}
        else:
            row |= dict(vars(found), verdict=verdict(found.low, found.high, EXPECTED[name]))
        rows.append(row)
    columns = ["id", "statement", "expected", "measured", "low", "high", "verdict", "evidence"]
    return pd.DataFrame(rows, columns=columns)


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="experiment.claims", description=__doc__.split("\n")[0])
    for name in ("benchmark", "samples", "verify"):
        parser.add_argument(f"--{name}", required=True, help=f"the {name}.csv to read")
    parser.add_argument("--out", required=True, help="the claims.csv to write")
    options = parser.parse_args(arguments)
    read = [
        tables.read(getattr(options, name), name) for name in ("benchmark", "samples", "verify")
    ]
    tables.write(claims(*read), options.out, "claims")


if __name__ == "__main__":
    command(main)
