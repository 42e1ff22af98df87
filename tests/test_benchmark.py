"""What benchmark times, what it refuses, and what it writes about the rest."""

import json
import math

import numpy as np
import pytest
import torch

from experiment import (
    CheckFailed,
    InputError,
    benchmark,
    environment,
    inputs,
    peers,
    tables,
    timing,
    verify,
)

CPU = torch.device("cpu")
ENTRY = {
    "group": "one",
    "rows": 8,
    "cols": 96,
    "dtypes": ["float32"],
    "providers": ["naive", "online", "auto", "torch", "copy", "warp", "triton"],
}
SAMPLING = {"warmup": 1, "rounds": 3, "samples_per_round": 2, "max_seconds": 60}


@pytest.fixture(scope="module")
def checked():
    rows = verify.verify_entry(ENTRY, CPU, 1)
    return tables.frame([{"device": "cpu"} | row for row in rows], "verify")


def measured(checked, sampling=SAMPLING, entry=ENTRY):
    clock = timing.Cpu(2**20)
    rows, samples = benchmark.benchmark(entry, CPU, clock, sampling, 1, checked)
    keys = {"run_id": "r", "device": "cpu"}
    return (
        tables.frame([keys | row for row in rows], "benchmark"),
        tables.frame([keys | row for row in samples], "samples"),
    )


def test_every_provider_has_its_rows(checked):
    rows, samples = measured(checked)
    assert tables.problems(rows, "benchmark") == []
    assert tables.problems(samples, "samples") == []
    keys = ["provider", "output", "cache"]
    assert not rows.duplicated(keys).any()
    expected = {
        (p, o, c) for p in ENTRY["providers"] for o in peers.outputs(p) for c in ("cold", "warm")
    }
    assert set(rows[keys].itertuples(index=False, name=None)) == expected
    timed = rows[rows.status.isin(["ok", "noisy"])]
    assert set(timed.provider) == {"naive", "online", "auto", "torch", "copy"}
    assert (timed.samples == 6).all()
    assert (timed.useful_bytes == 2 * 8 * 96 * 4).all()
    assert len(samples) == 6 * len(timed)
    assert set(samples["round"]) == {0, 1, 2}


def test_what_a_machine_lacks_is_skipped_with_the_reason(checked):
    rows, _ = measured(checked)
    skipped = rows[rows.status == "skipped"].set_index("provider").note
    assert "online_softmax has no warp on cpu" in skipped["warp"].iloc[0]
    assert "needs a GPU" in skipped["triton"].iloc[0]


def test_one_of_our_own_that_is_not_verified_is_refused(checked):
    failed = checked.assign(passed=(checked.provider != "online") | (checked.case != "planted"))
    with pytest.raises(CheckFailed, match="online float32 8x96 did not pass verify"):
        measured(failed)
    with pytest.raises(CheckFailed, match="naive float32 8x96 is not in the table of verify"):
        measured(checked[checked.provider != "naive"])


def test_a_peer_that_is_not_verified_keeps_its_row(checked):
    rows, _ = measured(checked[checked.provider != "torch"])
    torch_rows = rows[rows.provider == "torch"]
    assert (torch_rows.status == "failed").all()
    assert torch_rows.note.str.contains("not in the table of verify").all()
    assert rows.speedup_vs_torch.isna().all()


def test_a_peer_is_judged_on_the_timed_input_only(checked):
    rows, _ = measured(
        checked.assign(passed=(checked.provider != "torch") | (checked.case != "planted"))
    )
    assert rows[rows.provider == "torch"].status.isin(["ok", "noisy"]).all()


def test_a_peer_that_raises_keeps_its_row(checked, monkeypatch):
    def broken(x):
        raise RuntimeError("no\ncompiler")

    monkeypatch.setitem(peers.PEERS, "torch", broken)
    rows, _ = measured(checked)
    assert set(rows[rows.provider == "torch"].note) == {"RuntimeError: no compiler"}


def test_a_provider_that_fails_midway_keeps_its_row(checked, monkeypatch):
    calls = []

    def fails_late(x, out):
        calls.append(1)
        if len(calls) > 12:
            raise RuntimeError("lost")
        return out.copy_(x)

    monkeypatch.setitem(peers.PEERS, "copy", lambda x: fails_late)
    rows, _ = measured(checked)
    row = rows[(rows.provider == "copy") & (rows.cache == "warm")].iloc[0]
    assert (row.status, row.note) == ("failed", "RuntimeError: lost")
    assert math.isnan(row.time_us_median)


def test_a_shape_that_does_not_fit_is_skipped(checked, monkeypatch):
    monkeypatch.setattr(inputs, "shortage", lambda rows, cols, device: "needs 99 GB")
    rows, samples = measured(checked)
    assert set(rows.status) == {"skipped"}
    assert set(rows.note) == {"needs 99 GB"}
    assert samples.empty


def test_max_seconds_takes_samples_and_leaves_rounds(checked):
    tight = SAMPLING | {"samples_per_round": 50, "max_seconds": 1e-9}
    rows, _ = measured(checked, tight)
    timed = rows[rows.status.isin(["ok", "noisy"])]
    assert (timed.samples == 3).all()
    assert timed.note.str.startswith("1 of 50 samples a round: limit of 1e-09 s").all()


def test_ratios_are_taken_under_the_same_conditions():
    def plan(provider, output, cache, us):
        times = [(0, i, us) for i in range(3)]
        return benchmark.Plan(
            provider, output, cache, "device", times_us=times, sensors=[(900, 50)]
        )

    plans = [
        plan("copy", "preallocated", "cold", 1.0),
        plan("torch", "preallocated", "cold", 4.0),
        plan("torch", "allocated", "cold", 8.0),
        plan("auto", "preallocated", "cold", 2.0),
        plan("auto", "allocated", "cold", 5.0),
        plan("auto", "preallocated", "warm", 2.0),
    ]
    plans[-1].sensors.append((800, 60))
    shape = {"rows": 1000, "cols": 250, "dtype": "float32"}
    rows = benchmark.summarise(plans, shape)
    auto, allocating, warm = rows[3:]
    assert auto["copy_fraction"] == 0.5
    assert auto["speedup_vs_torch"] == 2
    assert auto["gb_per_s"] == pytest.approx(2e6 / 2e-6 / 1e9)
    assert allocating["speedup_vs_torch"] == 1.6
    assert math.isnan(warm["speedup_vs_torch"])
    assert (warm["clock_mhz_min"], warm["temp_c_max"]) == (800, 60)


def test_every_round_times_everyone_in_an_order_of_its_own():
    turns = []

    def sampler(name):
        return lambda samples: turns.append(name) or [1.0] * samples

    plans = [
        benchmark.Plan(name, "preallocated", "cold", "device", sampler(name), per_round=1)
        for name in "abcdef"
    ]
    benchmark.run_rounds(plans, timing.Cpu(2**20), 8, np.random.default_rng(1))
    rounds = ["".join(turns[i : i + 6]) for i in range(0, 48, 6)]
    assert all(sorted(order) == list("abcdef") for order in rounds)
    assert len(set(rounds)) > 4


@pytest.fixture
def files(tmp_path, checked):
    facts = environment.collect("cpu", CPU, 1)
    tables.write_json(tmp_path / "environment.json", facts)
    tables.write(checked, tmp_path / "verify.csv", "verify")
    return tmp_path


def run(files, *arguments):
    known = ["--environment", files / "environment.json", "--verify", files / "verify.csv"]
    known += ["--out", files / "benchmark.csv"]
    benchmark.main([str(argument) for argument in [*arguments, *known]])


def test_the_command_writes_both_tables_and_parts_merge(files):
    sampling = json.dumps({"warmup": 1, "rounds": 3, "samples_per_round": 1})
    run(files, "--entry", json.dumps(ENTRY), "--sampling", sampling, "--seed", 1, "--device", "cpu")
    rows = tables.read(files / "benchmark.csv", "benchmark")
    samples = tables.read(files / "samples.csv", "samples")
    assert set(rows.run_id) == set(samples.run_id)
    for option, name in (("--merge", "benchmark"), ("--merge-samples", "samples")):
        part, out = str(files / f"{name}.csv"), str(files / "all.csv")
        benchmark.main([option, part, part, "--out", out])
        assert len(tables.read(out, name)) == 2 * len(tables.read(part, name))


def test_an_environment_of_another_device_is_refused(files):
    facts = tables.read_json(files / "environment.json") | {"device": "rocm-gfx942-304cu"}
    tables.write_json(files / "environment.json", facts)
    with pytest.raises(InputError, match=r"describes 'rocm-gfx942-304cu', not 'cpu'"):
        run(files, "--entry", json.dumps(ENTRY), "--device", "cpu")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_small_shapes_are_timed_in_graphs_on_the_gpu():
    device = torch.device("cuda", 0)
    found = verify.verify_entry(ENTRY, device, 1)
    checked = tables.frame([{"device": "gpu"} | row for row in found], "verify")
    clock = timing.Gpu(256 * timing.MIB)
    rows, _ = benchmark.benchmark(ENTRY, device, clock, SAMPLING, 1, checked)
    measures = {row["measure"] for row in rows if row["provider"] == "online"}
    assert measures == {"device", "graph", "call"}
