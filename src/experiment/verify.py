"""Hold every provider against float64, on what is timed and on inputs made to break it.

    python -m experiment.verify --config config/experiment.yaml --out results/cpu/verify.csv
    python -m experiment.verify --entry JSON --device cpu --seed 1805 --out part.csv
    python -m experiment.verify --cases --device cpu --seed 1805 --out cases.csv
    python -m experiment.verify --merge cases.csv part.csv ... --out verify.csv

A timed shape gives, for each provider and dtype, the cases `timed` (the very input that is timed),
`timed_allocated` (where the allocating call is timed as well) and `planted`; in float32 also the
post's three differences diff_online_torch, diff_naive_torch and diff_online_naive. When one of our
own fails, the table goes to OUT.failed.csv instead of OUT and the exit status is 1.
"""

import argparse
import math
import sys
from pathlib import Path

import torch

from experiment import CheckFailed, InputError, command, config, environment, inputs, peers, tables
from experiment.reference import Errors, K, chunks, compare

POST_BOUND = 1e-6  # the post's kernels differ from torch by less, on inputs from N(0, 10²)
SUMMARY = __doc__.partition("\n")[0]


def check(call, x, output="preallocated"):
    """Errors of call(x, out) on the 2-D tensor `x`, with the output's memory poisoned before.

    preallocated: `out` holds NaN and is what is judged, so an element not written shows.
    allocated: a freed tensor of NaN is what the allocator has at hand for the result.
    """
    out = torch.full_like(x, math.nan)
    if output == "preallocated":
        call(x, out)
        return compare(out, x)
    del out
    return compare(call(x, None), x)


def check_copy(call, x):
    """Errors of a copy: none, or all of them."""
    out = torch.full_like(x, math.nan)
    call(x, out)
    error = 0.0 if torch.equal(out, x) else math.inf
    return Errors(error, error, error, tolerance=0.0)


def judge(provider, x, output):
    """Errors of a provider on `x`; one that raises has all of them. May raise Unavailable."""
    call = peers.prepare(provider, x)
    try:
        return check_copy(call, x) if provider == "copy" else check(call, x, output)
    except Exception as error:  # noqa: BLE001 (a peer may raise anything)
        if isinstance(error, ValueError) and provider in peers.OURS and provider != "auto":
            raise peers.Unavailable(str(error)) from None  # an algorithm may refuse a shape
        report(f"{provider} {x.shape[0]}x{x.shape[1]}: {type(error).__name__}: {error}")
        return Errors(math.inf, math.inf, math.inf, K[x.dtype])


def verify_entry(entry, device, seed):
    """The rows of verify.csv for one timed shape, as dicts without the device's name."""
    rows = []
    shortage = inputs.shortage(entry["rows"], entry["cols"], device)
    if shortage:
        report(f"skipped {config.entry_id(entry)}: {shortage}")
        return rows
    for dtype in entry["dtypes"]:
        x = inputs.normal(entry["rows"], entry["cols"], getattr(torch, dtype), device, seed)
        for provider in entry["providers"]:
            for case, output in zip(("timed", "timed_allocated"), peers.outputs(provider)):
                rows += verified(provider, case, x, output)
        inputs.plant(x)
        for provider in entry["providers"]:
            if provider != "copy":
                rows += verified(provider, "planted", x, peers.outputs(provider)[0])
        if dtype == "float32" and {"naive", "online", "torch"} <= set(entry["providers"]):
            rows += post_differences(entry["rows"], entry["cols"], device, seed)
    return rows


def verify_cases(device, seed, dtypes):
    """The rows of verify.csv for the list of cases: our algorithms, and torch for comparison."""
    rows = []
    for dtype in dtypes:
        for case in inputs.CASES:
            x = case.make(getattr(torch, dtype), device, seed)
            for provider in (*peers.algorithms(device), "torch"):
                rows += verified(provider, case.name, x, "preallocated")
    return rows


def verified(provider, case, x, output):
    """One row in a list, or none where the provider does not serve this input."""
    try:
        errors = judge(provider, x, output)
    except peers.Unavailable as reason:
        report(f"skipped {provider} {case} {x.shape[0]}x{x.shape[1]}: {reason}")
        return []
    return [row(provider, case, x, vars(errors) | {"passed": errors.passed})]


def row(provider, case, x, found):
    """The keys of a row and what was found."""
    keys = {"provider": provider, "direction": "forward", "dtype": str(x.dtype).split(".")[1]}
    return keys | {"rows": x.shape[0], "cols": x.shape[1], "case": case} | found


def post_differences(rows, cols, device, seed):
    """The post's largest absolute differences between online, naive and torch, three rows."""
    x = inputs.normal(rows, cols, torch.float32, device, seed, scale=inputs.POST_SCALE)
    calls = {name: peers.prepare(name, x) for name in ("online", "naive", "torch")}
    one, other = torch.full_like(x, math.nan), torch.full_like(x, math.nan)
    found = []
    # In this order two buffers do: each step runs only what changed.
    for first, second in (("online", "torch"), ("naive", "torch"), ("online", "naive")):
        calls[first](x, one)
        calls[second](x, other)
        differences = [(one[part] - other[part]).abs().max().item() for part in chunks(x)]
        largest = max(math.inf if math.isnan(value) else value for value in differences)
        bound = {"tolerance": POST_BOUND, "passed": largest < POST_BOUND}
        case = f"{inputs.DIFFERENCE}{first}_{second}"
        found.append(row(first, case, x, {"max_abs_err": largest} | bound))
    return found


def failures(table):
    """The rows in which one of our own fails a check."""
    ours = table.provider.isin(peers.OURS) & ~table.case.str.startswith(inputs.DIFFERENCE)
    return table[ours & ~table.passed.astype(bool)]


def save(table, out):
    """Write verify.csv; if one of our own fails, write OUT.failed.csv and raise CheckFailed."""
    failed, refused = failures(table), Path(out).with_suffix(".failed.csv")
    if failed.empty:
        refused.unlink(missing_ok=True)
        tables.write(table, out, "verify")
        return
    Path(out).unlink(missing_ok=True)  # an older pass must not stand in for this failure
    tables.write(table, refused, "verify")
    first = failed.iloc[0].to_dict()
    raise CheckFailed(
        "{} checks failed, first {provider} {rows}x{cols} {dtype} {case}: scaled error"
        " {scaled_err:.3g}, row sum error {row_sum_err:.3g}, tolerance {tolerance:.3g};"
        " all of them: {}".format(len(failed), refused, **first)
    )


def report(line):
    print(line, file=sys.stderr, flush=True)


def run(options):
    """The table that the options ask for, computed on this machine."""
    declared = config.load(options.config) if options.config else {}
    seed = declared.get("seed") if options.seed is None else options.seed
    if seed is None:
        raise InputError("--entry and --cases need --seed")
    name, device = environment.open_device(options.device or declared.get("device", "auto"))
    if options.entry:
        entries, dtypes = [config.parse(options.entry, "entry")], []
    elif options.cases:
        entries, dtypes = [], ["float32"]
    else:
        entries = config.entries(declared, name)
        dtypes = sorted({dtype for entry in entries for dtype in entry["dtypes"]})
    rows = verify_cases(device, seed, dtypes)
    for i, entry in enumerate(entries, 1):
        report(f"[{i}/{len(entries)}] verify {config.entry_id(entry)}")
        rows += verify_entry(entry, device, seed)
    return tables.frame([{"device": name} | found for found in rows], "verify")


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m experiment.verify", description=SUMMARY)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--config", help="verify the cases and everything that this file declares")
    what.add_argument("--entry", metavar="JSON", help="verify one shape")
    what.add_argument("--cases", action="store_true", help="verify the list of cases")
    what.add_argument("--merge", nargs="+", metavar="CSV", help="put parts together")
    parser.add_argument("--device", help="auto, or the name of this machine's device")
    parser.add_argument("--seed", type=int, help="seed of the inputs (default: the config's)")
    parser.add_argument("--out", required=True, help="the CSV file to write")
    options = parser.parse_args(arguments)
    save(tables.merge(options.merge, "verify") if options.merge else run(options), options.out)


if __name__ == "__main__":
    command(main)
