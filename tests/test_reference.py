"""The reference and its measure of error."""

import math

import pytest
import torch

from experiment import inputs, reference

DTYPES = list(reference.K)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", inputs.CASES, ids=lambda case: f"{case.name}-{case.cols}")
def test_torch_passes_every_case(case, dtype):
    x = case.make(dtype, torch.device("cpu"), 1)
    errors = reference.compare(torch.softmax(x, -1), x)
    assert errors.passed, errors


def test_the_reference_is_torch_in_float64():
    x = inputs.normal(7, 1001, torch.float32, torch.device("cpu"), 1, scale=10)
    x[2], x[4, 5] = -math.inf, math.nan
    expected = torch.softmax(x.double(), -1)
    torch.testing.assert_close(reference.softmax(x), expected, rtol=1e-13, atol=0, equal_nan=True)


def test_the_input_is_left_alone():
    x = torch.randn(3, 5, dtype=torch.float64)
    before = x.clone()
    reference.softmax(x)
    assert torch.equal(x, before)


def test_the_bound_is_k_times_the_row_maximum():
    x = torch.zeros(2, 64)
    right = torch.softmax(x, -1)
    k = reference.K[torch.float32]
    for factor, passes in ((0.9, True), (1.1, False)):
        y = right.clone()
        y[1, 3] += factor * k / 64
        y[1, 4] -= factor * k / 64  # so that the row's sum stays
        errors = reference.compare(y, x)
        assert errors.passed is passes
        assert errors.scaled_err == pytest.approx(factor * k, rel=0.02)
        assert errors.max_abs_err == pytest.approx(factor * k / 64, rel=0.02)


def test_a_subnormal_is_allowed_for():
    x = torch.zeros(1, 2**15, dtype=torch.float16)  # 2^-15 is a subnormal of float16
    y = torch.softmax(x, -1)
    y[0, 0] += 2**-24
    assert reference.compare(y, x).passed
    y[0, 0] += 2**-23
    assert not reference.compare(y, x).passed


def test_nan_where_there_should_be_none_is_an_infinite_error():
    x = torch.randn(4, 8)
    y = torch.softmax(x, -1)
    y[2, 7] = math.nan
    errors = reference.compare(y, x)
    assert errors.max_abs_err == errors.scaled_err == errors.row_sum_err == math.inf


def test_a_nan_that_is_missing_is_an_infinite_error():
    x = torch.randn(4, 8)
    x[1, 1] = math.nan
    y = torch.softmax(x, -1)
    assert reference.compare(y, x).passed
    y[1, 5] = 0.0
    assert reference.compare(y, x).scaled_err == math.inf


def test_another_shape_fails():
    x = torch.randn(4, 8)
    assert not reference.compare(torch.softmax(x, -1)[:3], x).passed


def test_chunks_cover_every_row_once(monkeypatch):
    monkeypatch.setitem(reference.CHUNK, "cpu", 100)
    for rows, cols in ((10, 30), (7, 1000), (0, 5)):
        x = torch.arange(rows * cols, dtype=torch.float32).view(rows, cols)
        parts = [x[part] for part in reference.chunks(x)]
        assert all(len(part) == 1 or part.numel() <= 100 for part in parts)
        assert torch.equal(torch.cat([x[:0], *parts]), x)
