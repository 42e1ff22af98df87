"""Time every provider at every declared shape, in rounds, on verified code only.

    python -m experiment.benchmark --config config/experiment.yaml --environment environment.json
        --verify verify.csv --out benchmark.csv [--samples samples.csv]
    python -m experiment.benchmark --entry JSON --sampling JSON --seed 1805 --device cpu
        --environment environment.json --verify part.csv --out part.csv --samples samples-part.csv
    python -m experiment.benchmark --merge PART.csv ... --out benchmark.csv
    python -m experiment.benchmark --merge-samples PART.csv ... --out samples.csv

In a round every provider is timed once, in shuffled order, so that two providers can be compared
inside a round, where the machine was in one state.
"""

import argparse
import math
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from experiment import (
    CheckFailed,
    InputError,
    command,
    config,
    environment,
    inputs,
    peers,
    tables,
    timing,
)

SMALL_US = 20  # where the fastest provider takes less, launch costs show: graphs are timed too


@dataclass
class Plan:
    """One row to be: a provider's sampler in one (cache, measure), and what it has given."""

    provider: str
    output: str
    cache: str
    measure: str
    sampler: object = None
    per_round: int = 0
    times_us: list = field(default_factory=list)  # (round, i, time)
    sensors: list = field(default_factory=list)  # (clock MHz, temperature °C)
    status: str = ""
    note: str = ""

    @property
    def keys(self):
        names = ("provider", "output", "cache", "measure")
        return {name: getattr(self, name) for name in names}


def benchmark(entry, device, clock, sampling, seed, checked):
    """Time one entry on a torch.device; returns rows of benchmark.csv and of samples.csv.

    clock: timing.Cpu or timing.Gpu; checked: the table of verify.csv. The rows are dicts that lack
    run_id and device. Raises CheckFailed on one of our own that is not verified.
    """
    rows, samples = [], []
    for dtype in entry["dtypes"]:
        shape = {key: entry[key] for key in ("group", "rows", "cols")}
        shape |= {"direction": "forward", "dtype": dtype}
        plans = prepare(entry, dtype, device, clock, sampling, seed, checked)
        run_rounds(plans, clock, sampling["rounds"], np.random.default_rng(seed))
        rows += summarise(plans, shape)
        samples += [
            shape | plan.keys | {"round": r, "i": i, "time_us": us}
            for plan in plans
            for r, i, us in plan.times_us
        ]
        del plans  # and with them the tensors
    return rows, samples


def prepare(entry, dtype, device, clock, sampling, seed, checked):
    """The plans of all providers at one shape: warmed up, verified, and cut to the time limit."""
    ready, plans = [], []
    runs = [(name, output) for name in entry["providers"] for output in peers.outputs(name)]
    shortage = inputs.shortage(entry["rows"], entry["cols"], device)
    if shortage:
        return [plan for run in runs for plan in without_time(*run, "skipped", shortage)]
    x = inputs.normal(entry["rows"], entry["cols"], getattr(torch, dtype), device, seed)
    out = torch.empty_like(x)  # one for all: the same memory for each of them
    for provider, output in runs:
        try:
            into = out if output == "preallocated" else None
            call = warmed_up(provider, x, into, sampling["warmup"])
            require_verified(provider, dtype, x, checked)
            quick = np.median(clock.samplers(call)["cold", "device"](3))
            ready.append((provider, output, call, quick))
        except peers.Unavailable as reason:
            plans += without_time(provider, output, "skipped", str(reason))
        except CheckFailed as reason:
            if provider in peers.OURS:
                raise
            plans += without_time(provider, output, "failed", str(reason))
        except Exception as error:  # noqa: BLE001 (a peer may raise anything)
            plans += without_time(provider, output, "failed", one_line(error))
    small = min((quick for *_, quick in ready), default=math.inf) < SMALL_US
    for provider, output, call, _ in ready:
        try:
            samplers = clock.samplers(call, small)
        except Exception as error:  # noqa: BLE001 (a call that cannot be captured in a graph)
            plans += without_time(provider, output, "failed", one_line(error), [("warm", "graph")])
            samplers = clock.samplers(call)
        plans += [planned(provider, output, *key, samplers[key], sampling) for key in samplers]
    return plans


def warmed_up(provider, x, out, calls):
    """The provider's call(x, out) as a function of nothing, after some calls; or Unavailable."""
    call = peers.prepare(provider, x)
    try:
        for _ in range(calls):
            call(x, out)
    except ValueError as error:
        if provider in peers.OURS and provider != "auto":
            raise peers.Unavailable(str(error)) from None  # an algorithm may refuse a shape
        raise
    return lambda: call(x, out)


def require_verified(provider, dtype, x, checked):
    """Raise CheckFailed unless verify.csv holds this provider, dtype and shape as passed.

    Ours has to pass whatever was tried at this shape, a peer on the very input that is timed.
    """
    rows, cols = x.shape
    found = checked[
        (checked.provider == provider)
        & (checked.dtype == dtype)
        & (checked.rows == rows)
        & (checked.cols == cols)
        & ~checked.case.str.startswith(inputs.DIFFERENCE)
    ]
    if provider not in peers.OURS:
        found = found[found.case.str.startswith("timed")]
    if found.empty or not found.passed.all():
        how = "is not in the table of verify" if found.empty else "did not pass verify"
        raise CheckFailed(f"{provider} {dtype} {rows}x{cols} {how}, so it is not timed")


def without_time(provider, output, status, note, keys=(("cold", "device"), ("warm", "device"))):
    """The plans of a provider that is not timed; its rows stay in the table, with the reason."""
    return [Plan(provider, output, *key, status=status, note=note) for key in keys]


def planned(provider, output, cache, measure, sampler, sampling):
    """A plan that takes about max_seconds at most; the rounds stay, samples in a round give."""
    start = time.perf_counter()
    sampler(1)
    affordable = sampling["max_seconds"] / sampling["rounds"] / (time.perf_counter() - start)
    wanted = sampling["samples_per_round"]
    per_round = max(1, min(wanted, int(affordable)))
    limited = f"{per_round} of {wanted} samples a round: limit of {sampling['max_seconds']} s"
    note = limited if per_round < wanted else ""
    return Plan(provider, output, cache, measure, sampler, per_round, note=note)


def run_rounds(plans, clock, rounds, random):
    """Fill the plans with samples; in each round each provider has one turn, in shuffled order."""
    turns = {}
    for plan in plans:
        turns.setdefault((plan.provider, plan.output), []).append(plan)
    turns = list(turns.values())
    for round_ in range(rounds):
        for turn in random.permutation(len(turns)):
            for plan in turns[turn]:
                if plan.status:  # skipped or failed
                    continue
                try:
                    times = plan.sampler(plan.per_round)
                except Exception as error:  # noqa: BLE001 (a peer may raise anything)
                    plan.status, plan.note = "failed", one_line(error)
                    continue
                plan.times_us += [(round_, i, us) for i, us in enumerate(times)]
            seen = clock.sensors()  # once a turn: asking takes milliseconds
            for plan in turns[turn]:
                plan.sensors.append(seen)


def summarise(plans, shape):
    """The rows of benchmark.csv of one shape, with the roof and torch taken from the same run."""
    useful_bytes = 2 * shape["rows"] * shape["cols"] * getattr(torch, shape["dtype"]).itemsize
    medians = {
        tuple(plan.keys.values()): np.median([us for *_, us in plan.times_us])
        for plan in plans
        if not plan.status
    }

    def ratio(provider, output, plan):
        """How long `provider` takes over what `plan` takes, under the same conditions."""
        other = medians.get((provider, output, plan.cache, plan.measure), math.nan)
        return other / medians[tuple(plan.keys.values())]

    rows = []
    for plan in plans:
        row = shape | plan.keys | {"samples": 0, "useful_bytes": useful_bytes}
        row |= {"status": plan.status, "note": plan.note}
        if not plan.status:
            row |= timing.statistics([us for *_, us in plan.times_us])
            clock, temperature = zip(*plan.sensors)
            row |= {
                "gb_per_s": useful_bytes / row["time_us_median"] / 1e3,
                "copy_fraction": ratio("copy", "preallocated", plan),
                "speedup_vs_torch": ratio("torch", plan.output, plan),
                "clock_mhz_min": min(clock),
                "temp_c_max": max(temperature),
            }
        rows.append(row)
    return rows


def one_line(error):
    """An exception as a note: its type and the start of its message."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:300]


def describe(row):
    """A row as people read it."""
    name = f"{row['rows']}x{row['cols']} {row['dtype']}: {row['provider']}"
    if row["output"] == "allocated":
        name += " allocating"
    if row["status"] in ("skipped", "failed"):
        return f"{name} {row['status']}: {row['note'][:100]}"
    us, speedup = row["time_us_median"], row["speedup_vs_torch"]
    told = f"{us:.1f} µs" if us < 1000 else f"{us / 1000:.2f} ms"
    return f"{name} {told}" + ("" if math.isnan(speedup) else f" ({speedup:.2f}x torch)")


def run(options):
    """Time what the options ask for; returns the tables of benchmark.csv and samples.csv."""
    facts = tables.read_json(options.environment)
    checked = tables.read(options.verify, "verify")
    name, device = environment.open_device(options.device or facts["device"])
    if name != facts["device"]:
        raise InputError(f"{options.environment} describes {facts['device']!r}, not {name!r}")
    if options.entry:
        entries = [config.parse(options.entry, "entry")]
        sampling = config.parse(options.sampling or "{}", "sampling")
    else:
        declared = config.load(options.config)
        entries, sampling = config.entries(declared, name), declared["sampling"]
    seed = facts["seed"] if options.seed is None else options.seed

    timer = timing.Cpu if device.type == "cpu" else timing.Gpu
    facts_of_device = facts["device_facts"]
    clock = timer(timing.flush_bytes(facts_of_device["kind"], facts_of_device["llc_bytes"]))
    rows, samples = [], []
    for i, entry in enumerate(entries, 1):
        report(f"[{i}/{len(entries)}] timing {config.entry_id(entry)}, {sampling['rounds']} rounds")
        found, times = benchmark(entry, device, clock, sampling, seed, checked)
        for row in found:
            if (row["cache"], row["measure"]) == ("cold", "device"):
                report(f"[{i}/{len(entries)}] {describe(row)}")
        rows, samples = rows + found, samples + times
    keys = {"run_id": facts["run_id"], "device": name}
    return (
        tables.frame([keys | row for row in rows], "benchmark"),
        tables.frame([keys | row for row in samples], "samples"),
    )


def report(line):
    print(line, file=sys.stderr, flush=True)


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m experiment.benchmark", description=__doc__.partition("\n")[0]
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--config", help="time everything that this file declares")
    what.add_argument("--entry", metavar="JSON", help="time one shape")
    what.add_argument("--merge", nargs="+", metavar="CSV", help="put benchmark.csv together")
    what.add_argument("--merge-samples", nargs="+", metavar="CSV", help="the same for samples.csv")
    parser.add_argument("--sampling", metavar="JSON", help="how often, with --entry")
    parser.add_argument("--device", help="the name of this machine's device (default: environment)")
    parser.add_argument("--seed", type=int, help="seed of the inputs (default: environment)")
    parser.add_argument("--environment", help="environment.json of this run")
    parser.add_argument("--verify", help="the table that says what may be timed")
    parser.add_argument("--out", required=True, help="the CSV file to write")
    parser.add_argument("--samples", help="CSV of single samples (default: samples.csv beside OUT)")
    options = parser.parse_args(arguments)
    for name in ("merge", "merge_samples"):
        if getattr(options, name):
            table = "samples" if name == "merge_samples" else "benchmark"
            tables.write(tables.merge(getattr(options, name), table), options.out, table)
            return
    if not options.environment or not options.verify:
        parser.error("--config and --entry need --environment and --verify")
    rows, samples = run(options)
    tables.write(samples, options.samples or Path(options.out).with_name("samples.csv"), "samples")
    tables.write(rows, options.out, "benchmark")


if __name__ == "__main__":
    command(main)
