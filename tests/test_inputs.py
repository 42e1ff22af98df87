"""Inputs are seeded, differ between shapes, and are what their names say."""

import math

import pytest
import torch

from experiment import inputs

CPU = torch.device("cpu")


def test_the_same_seed_gives_the_same_numbers_and_another_gives_others():
    first, again, other = (inputs.normal(8, 64, torch.float32, CPU, seed) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_shapes_of_one_size_do_not_share_their_numbers():
    one, other = (inputs.normal(*shape, torch.float32, CPU, 1) for shape in ((8, 64), (64, 8)))
    assert not torch.equal(one.flatten(), other.flatten())


def test_scale_is_the_standard_deviation():
    x = inputs.normal(64, 4096, torch.float32, CPU, 1, scale=10)
    assert x.std().item() == pytest.approx(10, rel=0.01)


@pytest.mark.parametrize("cols", [1, 100, 4096])
def test_planted_elements_weigh_enough_to_be_missed(cols):
    x = inputs.normal(32, cols, torch.float32, CPU, 1)
    inputs.plant(x)
    share = torch.softmax(x, -1)[:, -1]
    assert share.median() > 1 / 200


@pytest.mark.parametrize("case", inputs.CASES, ids=lambda case: f"{case.name}-{case.cols}")
def test_a_case_has_its_shape(case):
    x = case.make(torch.float32, CPU, 1)
    assert x.shape == (case.rows, case.cols)


def named(name):
    return [case.make(torch.float32, CPU, 1) for case in inputs.CASES if case.name == name]


def test_every_lane_starts_with_minus_infinity():
    widest = max(named("lane_starts_minus_inf"), key=lambda x: x.shape[1])
    lanes, vector = 1024, 8
    assert (widest[:, : lanes * vector] == -math.inf).all()
    assert widest[:, lanes * vector :].isfinite().all()


def test_special_values_stay_in_one_row():
    for name in ("row_minus_inf", "nan_in_row", "inf_in_row"):
        for x in named(name):
            assert (~x.isfinite()).any(-1).sum() == 1


def test_a_shape_that_does_not_fit_is_told():
    assert inputs.shortage(64, 64, CPU) == ""
    assert "GB of memory" in inputs.shortage(2**22, 2**22, CPU)
