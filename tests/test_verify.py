"""verify passes what is right, catches what is wrong, and stops the run for one of our own."""

import json

import pytest
import torch
import wrong_kernels

from experiment import CheckFailed, InputError, inputs, peers, tables, verify

CPU = torch.device("cpu")
ENTRY = {
    "group": "one",
    "rows": 8,
    "cols": 96,
    "dtypes": ["float32"],
    "providers": ["naive", "online", "auto", "torch", "copy", "warp", "triton"],
}
SMALL = [case for case in inputs.CASES if case.rows * case.cols < 300_000]


def attacks():
    """Inputs as verify makes them: a timed shape, the same planted, and the small cases."""
    x = inputs.normal(64, 1000, torch.float32, CPU, 1)
    yield x
    inputs.plant(x)
    yield x
    yield from (case.make(torch.float32, CPU, 1) for case in SMALL)


@pytest.mark.parametrize("kernel", wrong_kernels.WRONG, ids=lambda kernel: kernel.__name__)
def test_a_wrong_kernel_is_caught(kernel):
    usable = (x for x in attacks() if x.numel())
    assert any(not verify.check(kernel, x).passed for x in usable)


def test_the_right_kernel_passes():
    assert all(verify.check(wrong_kernels.right, x).passed for x in attacks())


@pytest.mark.parametrize(
    "kernel",
    [
        wrong_kernels.all_zeros,
        wrong_kernels.stale_output,
        wrong_kernels.one_row_off,
        wrong_kernels.last_column_missed,
        wrong_kernels.one_element_off,
        wrong_kernels.half_precision,
    ],
    ids=lambda kernel: kernel.__name__,
)
@pytest.mark.parametrize("cols", [128, 8192, 131072])
def test_a_timed_shape_alone_catches_what_its_cases_can(kernel, cols):
    x = inputs.normal(8, cols, torch.float32, CPU, 1)
    timed = verify.check(kernel, x)
    inputs.plant(x)
    assert not (timed.passed and verify.check(kernel, x).passed)


def test_a_kernel_that_ignores_the_given_output_is_caught():
    x = inputs.normal(4, 64, torch.float32, CPU, 1)
    assert not verify.check(lambda x, out: torch.softmax(x, -1), x).passed


def test_an_allocated_output_is_judged_by_what_is_returned():
    x = inputs.normal(4, 64, torch.float32, CPU, 1)
    assert verify.check(lambda x, out: torch.softmax(x, -1), x, "allocated").passed
    assert not verify.check(lambda x, out: torch.zeros_like(x), x, "allocated").passed


def test_a_copy_is_compared_with_its_input():
    x = torch.randn(4, 8)
    assert verify.check_copy(lambda x, out: out.copy_(x), x).passed
    assert not verify.check_copy(lambda x, out: out.copy_(x + 1), x).passed


def test_an_entry_holds_every_check_of_every_provider():
    table = tables.frame(
        [{"device": "cpu"} | row for row in verify.verify_entry(ENTRY, CPU, 1)], "verify"
    )
    assert tables.problems(table, "verify") == []
    assert table.passed.all()
    found = set(zip(table.provider, table.case))
    for provider in ("naive", "online", "auto", "torch"):
        assert {(provider, "timed"), (provider, "planted")} <= found
    assert {("auto", "timed_allocated"), ("torch", "timed_allocated"), ("copy", "timed")} <= found
    assert {
        ("online", "diff_online_torch"),
        ("naive", "diff_naive_torch"),
        ("online", "diff_online_naive"),
    } <= found
    assert not {"warp", "triton"} & set(table.provider)  # a CPU has neither


def test_the_differences_are_those_of_the_kernels():
    rows = {row["case"]: row for row in verify.post_differences(8, 96, CPU, 1)}
    x = inputs.normal(8, 96, torch.float32, CPU, 1, scale=10)
    online = peers.prepare("online", x)(x)
    expected = (online - torch.softmax(x, -1)).abs().max().item()
    assert rows["diff_online_torch"]["max_abs_err"] == expected < verify.POST_BOUND
    assert len(rows) == 3


def plant(monkeypatch, provider, kernel):
    prepare = peers.prepare
    monkeypatch.setattr(
        peers, "prepare", lambda name, x: kernel if name == provider else prepare(name, x)
    )


def run(tmp_path, *arguments):
    verify.main([*arguments, "--device", "cpu", "--out", str(tmp_path / "verify.csv")])


def test_one_of_our_own_that_fails_stops_the_run(tmp_path, monkeypatch):
    arguments = ("--entry", json.dumps(ENTRY), "--seed", "1")
    run(tmp_path, *arguments)
    assert (tmp_path / "verify.csv").exists()
    plant(monkeypatch, "online", wrong_kernels.all_zeros)
    with pytest.raises(CheckFailed, match=r"online 8x96 float32 timed: .*verify.failed.csv"):
        run(tmp_path, *arguments)
    assert not (tmp_path / "verify.csv").exists()
    failed = tables.read(tmp_path / "verify.failed.csv", "verify")
    assert set(failed[~failed.passed].provider) == {"online"}


def test_a_kernel_that_raises_fails(tmp_path, monkeypatch):
    def broken(x, out):
        raise RuntimeError("illegal memory access")

    plant(monkeypatch, "auto", broken)
    with pytest.raises(CheckFailed, match="auto"):
        run(tmp_path, "--entry", json.dumps(ENTRY), "--seed", "1")


def test_an_algorithm_that_refuses_a_shape_is_skipped_and_auto_is_not(tmp_path, monkeypatch):
    def refuses(x, out):
        raise ValueError("online serves at most 64 columns")

    plant(monkeypatch, "online", refuses)
    entry = {**ENTRY, "providers": ["naive", "online", "auto"]}
    run(tmp_path, "--entry", json.dumps(entry), "--seed", "1")
    assert "online" not in set(tables.read(tmp_path / "verify.csv", "verify").provider)
    plant(monkeypatch, "auto", refuses)
    with pytest.raises(CheckFailed):
        run(tmp_path, "--entry", json.dumps(entry), "--seed", "1")


def test_a_peer_that_fails_is_recorded_and_stops_nothing(tmp_path, monkeypatch):
    plant(monkeypatch, "torch", wrong_kernels.one_row_off)
    run(tmp_path, "--entry", json.dumps(ENTRY), "--seed", "1")
    table = tables.read(tmp_path / "verify.csv", "verify")
    assert set(table[~table.passed & ~table.case.str.startswith("diff_")].provider) == {"torch"}


def test_our_algorithms_pass_every_case(tmp_path):
    run(tmp_path, "--cases", "--seed", "1805")
    table = tables.read(tmp_path / "verify.csv", "verify")
    assert set(table.case) == {case.name for case in inputs.CASES}
    assert set(peers.algorithms(CPU)) <= set(table.provider)


def test_parts_are_put_together_and_judged_again(tmp_path):
    run(tmp_path, "--entry", json.dumps(ENTRY), "--seed", "1")
    part, out = tmp_path / "verify.csv", tmp_path / "all.csv"
    verify.main(["--merge", str(part), str(part), "--out", str(out)])
    assert len(tables.read(out, "verify")) == 2 * len(tables.read(part, "verify"))


def test_entries_and_cases_need_a_seed(tmp_path):
    with pytest.raises(InputError, match="--seed"):
        run(tmp_path, "--cases")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_an_entry_passes_on_the_gpu():
    rows = verify.verify_entry(ENTRY, torch.device("cuda", 0), 1)
    assert all(row["passed"] for row in rows)
