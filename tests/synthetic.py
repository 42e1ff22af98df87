"""A made-up experiment, as the CSVs would hold it: for tests of what reads them.

Times follow a plain model, so a test knows the answer: a provider moves its units of 4 bytes an
element at one bandwidth, plus a fixed cost a call, times a little noise that the seed decides.
"""

import numpy as np
import pandas as pd

BANDWIDTH = 10e9  # bytes a second
CALL_US = 5.0
ROUNDS, SAMPLES = 9, 3
GROUPS = {
    "cpu": {
        "typical": [(4096, 1024), (256, 2048), (256, 8192)],
        "long": [(64, 1048576), (256, 262144)],
    },
    "gpu": {
        "post": [(256, 2048), (256, 8192), (4096, 1024)],
        "long": [(256, 2097152), (4096, 262144)],
    },
}
UNITS = {"naive": 4, "online": 3, "block": 2.5, "auto": 2.2, "torch": 3.5, "copy": 2}
KEYS = [
    "run_id",
    "device",
    "group",
    "provider",
    "direction",
    "dtype",
    "rows",
    "cols",
    "cache",
    "output",
    "measure",
]


def experiment(device="cpu", units=UNITS, noise=0.01, seed=0):
    """Returns benchmark, samples and verify as data frames for one device."""
    kind = "cpu" if device.startswith("cpu") else "gpu"
    random = np.random.default_rng(seed)
    benchmark, samples, verify = [], [], []
    for group, shapes in GROUPS[kind].items():
        for rows, cols in shapes:
            for cache, output in (
                ("cold", "preallocated"), ("cold", "allocated"), ("warm", "preallocated")
            ):  # fmt: skip
                timed = {}
                for provider, moved in units.items():
                    if output == "allocated" and provider not in ("auto", "torch"):
                        continue
                    keys = dict(zip(KEYS, (
                        "run", device, group, provider, "forward", "float32", rows, cols,
                        cache, output, "device",
                    )))  # fmt: skip
                    base = CALL_US + rows * cols * 4 * moved / BANDWIDTH * 1e6
                    times = base * np.exp(noise * random.standard_normal((ROUNDS, SAMPLES)))
                    timed[provider] = keys, times
                    samples += [
                        keys | {"round": r, "i": i, "time_us": times[r, i]}
                        for r in range(ROUNDS)
                        for i in range(SAMPLES)
                    ]
                benchmark += [summary(keys, times, timed) for keys, times in timed.values()]
            for provider in units:
                if provider != "copy":
                    verify += checks(device, provider, rows, cols)
    return pd.DataFrame(benchmark), pd.DataFrame(samples), pd.DataFrame(verify)


def summary(keys, times, timed):
    """One row of benchmark.csv."""
    median, p20, p80 = np.percentile(times, [50, 20, 80])
    useful = keys["rows"] * keys["cols"] * 8
    of = {name: np.median(times) / median for name, (_, times) in timed.items()}
    return keys | {
        "samples": times.size,
        "time_us_median": median,
        "time_us_p20": p20,
        "time_us_p80": p80,
        "time_us_min": times.min(),
        "rel_iqr": (p80 - p20) / median,
        "useful_bytes": useful,
        "gb_per_s": useful / median / 1e3,
        "copy_fraction": of.get("copy"),
        "speedup_vs_torch": of.get("torch"),
        "clock_mhz_min": np.nan,
        "temp_c_max": np.nan,
        "status": "ok",
        "note": "",
    }


def checks(device, provider, rows, cols):
    """The rows of verify.csv for one provider at one shape, the post's differences among them."""
    keys = {
        "device": device,
        "provider": provider,
        "direction": "forward",
        "dtype": "float32",
        "rows": rows,
        "cols": cols,
    }
    found = [
        keys | {"case": "timed", "max_abs_err": 1e-7, "scaled_err": 1e-6, "row_sum_err": 2e-7},
        keys | {"case": "planted", "max_abs_err": 3e-7, "scaled_err": 2e-6, "row_sum_err": 2e-7},
    ]
    for row in found:
        row |= {"tolerance": 7.6e-6, "passed": True}
    for other in {"naive": ["torch"], "online": ["torch", "naive"]}.get(provider, []):
        case = f"diff_{provider}_{other}"
        difference = {"max_abs_err": 3.6e-7, "scaled_err": np.nan, "row_sum_err": np.nan}
        found.append(keys | difference | {"case": case, "tolerance": 1e-6, "passed": True})
    return found


def facts(device="cpu"):
    """The contents of environment.json."""
    kind = "cpu" if device == "cpu" else "gpu"
    return {
        "run_id": "20260102T030405-abcdef",
        "date": "2026-01-02T03:04:05+00:00",
        "seed": 1805,
        "device": device,
        "device_facts": {
            "kind": kind,
            "name": "A machine_of 100%",
            "arch": "x86_64",
            "units": 2,
            "memory_bytes": 2**34,
            "llc_bytes": 2**25,
            "peak_gb_per_s": None,
        },
        "driver": None,
        "rocm": None,
        "cuda": "13.0" if kind == "gpu" else None,
        "torch": "2.13.0",
        "python": "3.12.1",
        "operator": {"backend": "cpu", "compiler": "c++ 12.2", "flags": ["-O3", "-fno-trap"]},
        "cpu": {"name": "A processor", "arch": "x86_64", "cores": 2, "threads": 2},
        "os": "Debian GNU/Linux 12",
        "container_image": None,
        "git": {"commit": "0123456789abcdef0123", "dirty": True},
        "packages": {"torch": "2.13.0"},
    }
