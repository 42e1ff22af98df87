"""Statistics of samples, and samplers that time what they are given."""

import time

import pytest
import torch

from experiment import timing

MIB = 2**20


def test_statistics_of_known_samples():
    found = timing.statistics(range(1, 102))
    assert found["samples"] == 101
    assert found["time_us_median"] == 51
    assert (found["time_us_p20"], found["time_us_p80"], found["time_us_min"]) == (21, 81, 1)
    assert found["rel_iqr"] == pytest.approx(50 / 51)
    assert found["status"] == "noisy"
    assert timing.statistics([10.0] * 9 + [100.0])["status"] == "ok"


def test_the_flush_is_twice_the_cache():
    assert timing.flush_bytes("cpu", 32 * MIB) == 64 * MIB
    assert timing.flush_bytes("gpu", 50 * MIB) == 256 * MIB
    assert timing.flush_bytes("gpu", 256 * MIB) == 512 * MIB
    assert timing.flush_bytes("gpu", None) == 512 * MIB
    assert timing.flush_bytes("cpu", None) > 0


def test_wall_clock_of_a_known_wait():
    clock = timing.Cpu(MIB)
    samplers = clock.samplers(lambda: time.sleep(0.005))
    assert set(samplers) == {("cold", "device"), ("warm", "device")}
    for sampler in samplers.values():
        times = sampler(3)
        assert len(times) == 3
        assert min(times) >= 5000


def test_only_cold_samples_turn_the_cache_over():
    clock = timing.Cpu(MIB)
    samplers = clock.samplers(lambda: None)
    samplers["warm", "device"](2)
    assert clock.flush.max() == 0
    samplers["cold", "device"](2)
    assert (clock.flush == 2).all()


def test_warm_samples_come_after_an_untimed_call():
    calls = []
    timing.Cpu(MIB).samplers(lambda: calls.append(1))["warm", "device"](4)
    assert len(calls) == 5


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_the_gpu_times_a_known_wait():
    clock = timing.Gpu(256 * MIB)
    cycles = int(50 * clock.cycles_per_us)
    samplers = clock.samplers(lambda: torch.cuda._sleep(cycles), small=True)
    assert set(samplers) == {
        ("cold", "device"),
        ("warm", "device"),
        ("warm", "graph"),
        ("warm", "call"),
    }
    for (_, measure), sampler in samplers.items():
        median = sorted(sampler(5))[2]
        assert 45 < median < 100, (measure, median)
