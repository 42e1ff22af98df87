from pathlib import Path

import pandas as pd
import pytest
import torch

import online_softmax
from experiment import InputError, predicted
from online_softmax import UNITS

GPUS = Path(__file__).parents[1] / "reference/amd-gpus.csv"


def test_time_is_launches_and_bytes_over_what_a_copy_reaches_of_the_bandwidth():
    found = predicted.predict(predicted.gpus(GPUS))
    large = found[(found.gpu == "MI300X") & (found.cols == 262144)].iloc[0]
    assert large.rung == "gang"
    assert large.moved_bytes == 2 * 4096 * 262144 * 4
    assert large.predicted_us == pytest.approx(2 * 5 + large.moved_bytes / (0.8 * 5300e3))
    assert (found.low_us < found.predicted_us).all() and (found.predicted_us < found.high_us).all()
    assert len(found) == 5 * 4


def test_the_rung_is_the_one_that_dispatch_takes_for_that_many_units():
    shape = (256, 2097152, torch.float32)
    assert online_softmax.planned(*shape, 304, False)[0] == "gang"
    assert online_softmax.planned(*shape, 32, False)[0] == "online"  # cannot hold two such rows
    with pytest.raises(ValueError, match="units are 256, 2097152 and 0; accepted: positive"):
        online_softmax.planned(*shape, 0, False)
    with pytest.raises(TypeError, match="dtype Int"):
        online_softmax.planned(256, 8, torch.int32, 304, False)


def test_input_and_output_have_to_fit_the_cache_together():
    gpu = predicted.gpus(GPUS).iloc[0]
    fits = gpu.llc_mib * 2**20 // (2 * 4 * 256)
    assert predicted.row(gpu, 256, int(fits))["fits_cache"]
    assert not predicted.row(gpu, 256, int(fits) + 1)["fits_cache"]


def test_implied_bandwidth_is_accesses_over_time():
    published = pd.DataFrame([{"rows": 10, "cols": 100, "naive_ms": 0.004, "online_ms": 0.003}])
    found = predicted.implied(published, UNITS["gpu"]).iloc[0]
    assert found.naive == pytest.approx(4 * 10 * 100 * 4 / 0.004e-3 / 1e9)
    assert found.online == pytest.approx(found.naive)


def test_a_table_of_other_columns_is_refused(tmp_path):
    path = tmp_path / "gpus.csv"
    path.write_text("gpu,units\nX,1\n")
    with pytest.raises(InputError, match="columns gpu, units; expected"):
        predicted.gpus(path)
