"""Time one call: samples with the cache cold or warm, and the statistics of samples.

A sampler is a function: number of samples -> list of times in microseconds. `Cpu` and `Gpu` give
the samplers of a call by (cache, measure); see workflow/schemas/benchmark.schema.yaml for words.
"""

import functools
import math
import time

import numpy as np
import torch

NOISY = 0.10  # above this (p75 - p25) / median a row is called noisy
MIB = 2**20
BATCH = 20  # calls in a graph, or in one wall-clock sample
ISSUE_US = 100  # more than the host needs to issue one timed call


def flush_bytes(kind, llc_bytes):
    """The size of the buffer that turns the last-level cache over: twice its size.

    A GPU's is 256 MiB at least; where the cache's size is unknown, twice the largest in use.
    """
    if kind == "cpu":
        return 2 * llc_bytes if llc_bytes else 256 * MIB
    return max(2 * llc_bytes, 256 * MIB) if llc_bytes else 512 * MIB


def statistics(times_us):
    """The columns of benchmark.csv that describe samples (microseconds, any non-empty array)."""
    p20, p25, median, p75, p80 = np.percentile(times_us, [20, 25, 50, 75, 80])
    rel_iqr = (p75 - p25) / median
    return {
        "samples": len(times_us),
        "time_us_median": median,
        "time_us_p20": p20,
        "time_us_p80": p80,
        "time_us_min": np.min(times_us),
        "rel_iqr": rel_iqr,
        "status": "noisy" if rel_iqr > NOISY else "ok",
    }


class Cpu:
    """Wall clock of single calls."""

    def __init__(self, flush_bytes):
        self.flush = torch.zeros(flush_bytes // 4)

    def samplers(self, call, small=False):
        """The samplers of a call by (cache, measure)."""
        return {
            (cache, "device"): functools.partial(self.sample, call, cache == "cold")
            for cache in ("cold", "warm")
        }

    def sample(self, call, cold, samples):
        if not cold:
            call()
        times = []
        for _ in range(samples):
            if cold:
                self.flush.add_(1)  # reads too: plain stores may go around the cache
            start = time.perf_counter_ns()
            result = call()
            times.append((time.perf_counter_ns() - start) / 1e3)
            del result  # an allocated output is given back outside the time
        return times

    def sensors(self):
        """Clock (MHz) and temperature (degrees Celsius): unknown."""
        return math.nan, math.nan


class Gpu:
    """Device events around each call; for small shapes also graph replay and wall clock."""

    def __init__(self, flush_bytes):
        self.flush = torch.empty(flush_bytes, dtype=torch.uint8, device="cuda")
        self.cycles_per_us = self.calibrate()

    def calibrate(self, cycles=1_000_000):
        """How many cycles of torch's spin kernel take a microsecond."""
        for _ in range(2):  # the first loads the kernel
            (time_us,) = self.events(lambda: torch.cuda._sleep(cycles), 1)
        return cycles / time_us

    def samplers(self, call, small=False):
        """The samplers of a call by (cache, measure); `small` adds graph replay and wall clock."""
        found = {
            (cache, "device"): functools.partial(self.sample, call, cache == "cold")
            for cache in ("cold", "warm")
        }
        if small:
            found["warm", "graph"] = self.graph_sampler(call)
            found["warm", "call"] = functools.partial(self.sample_wall, call)
        return found

    def sample(self, call, cold, samples):
        if not cold:
            call()
        # The device waits while the host issues the samples: otherwise a short call's events
        # would be apart by the time the host takes, not the device.
        torch.cuda._sleep(int(samples * ISSUE_US * self.cycles_per_us))
        return self.events(call, samples, self.flush.zero_ if cold else None)

    def events(self, call, samples, before=None):
        """Times between events around each call, all issued before the one wait at the end."""
        pairs = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(samples)]
        for start, end in pairs:
            if before:
                before()
            start.record()
            call()
            end.record()
        torch.cuda.synchronize()
        return [start.elapsed_time(end) * 1e3 for start, end in pairs]

    def graph_sampler(self, call):
        """A sampler of the time of a call inside a replayed graph of BATCH calls."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(BATCH):
                call()
        return lambda samples: [us / BATCH for us in self.sample(graph.replay, False, samples)]

    def sample_wall(self, call, samples):
        times = []
        for _ in range(samples):
            torch.cuda.synchronize()
            start = time.perf_counter_ns()
            for _ in range(BATCH):
                call()
            torch.cuda.synchronize()
            times.append((time.perf_counter_ns() - start) / 1e3 / BATCH)
        return times

    def sensors(self):
        """Clock (MHz) and temperature (degrees Celsius) now; nan without the vendor's library."""
        try:
            return float(torch.cuda.clock_rate()), float(torch.cuda.temperature())
        except Exception:  # noqa: BLE001 (no library, or one that refuses a virtual machine)
            return math.nan, math.nan
