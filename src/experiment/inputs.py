"""The inputs: seeded, so that what is verified is what is timed.

`normal` fills a timed shape; `plant` puts large values where a wrong kernel is likely to lose them;
CASES are small inputs that each try one thing.
"""

import math
import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import torch

SPARE_BYTES = 2**31  # beside the tensors: float64 chunks of the reference, the flush buffer
DIFFERENCE = "diff_"  # cases of this prefix compare two providers: findings, not checks
POST_SCALE = 10.0  # the post draws its inputs from N(0, 10²)


def shortage(rows, cols, device):
    """Why a float32 shape does not fit a torch.device, in words; empty when it fits."""
    if device.type == "cpu":
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    else:
        memory = torch.cuda.get_device_properties(device).total_memory
    needed = 3 * 4 * rows * cols + SPARE_BYTES  # an input and two outputs to compare
    if needed <= memory:
        return ""
    return f"needs {needed / 1e9:.1f} GB of memory, the device has {memory / 1e9:.1f} GB"


def normal(rows, cols, dtype, device, seed, scale=1.0):
    """A (rows, cols) tensor drawn from N(0, scale²) in float32, then rounded to `dtype`.

    The generator's seed mixes `seed` with the shape, so no two shapes share their numbers.
    """
    generator = torch.Generator(device).manual_seed(zlib.crc32(f"{seed} {rows} {cols}".encode()))
    x = torch.randn(rows, cols, generator=generator, device=device)
    return x.mul_(scale).to(dtype)


def plant(x):
    """Raise the first, the last and one other element of each row to about 1/64 of its sum.

    Among N(0, 1) values a single element of a long row is lost in rounding, so a kernel that
    misses the last column would pass. More than 1/64 would test the order of a sum instead: what
    is added to a dominant element is rounded to that element's last place. In place.
    """
    rows, cols = x.shape
    row = torch.arange(rows, device=x.device)
    for column in (torch.zeros_like(row), row * 7919 % cols, torch.full_like(row, cols - 1)):
        x[row, column] += max(0.0, math.log(cols / 64))
    return x


@dataclass(frozen=True)
class Case:
    """An input that tries one thing: `change` alters a (rows, cols) tensor of N(0, scale²)."""

    name: str
    rows: int
    cols: int
    scale: float = 1.0
    change: Callable | None = None

    def make(self, dtype, device, seed):
        """The input as a tensor of `dtype` on `device`."""
        x = normal(self.rows, self.cols, dtype, device, seed, self.scale)
        if self.change:
            self.change(x)
        return x


def mask_first_half(x):
    # Blocks of up to 1024 lanes with vectors of up to eight elements start inside 8192 columns.
    x[:, : x.shape[1] // 2] = -math.inf


def mask_every_other(x):
    x[:, ::2] = -math.inf


def mask_a_row(x):
    x[3] = -math.inf


def nan_in_a_row(x):
    x[3, x.shape[1] // 3] = math.nan


def infinity_in_a_row(x):
    x[3, x.shape[1] // 3] = math.inf


def extremes(x):
    x.sign_().mul_(0.9 * torch.finfo(x.dtype).max)


def outliers(x):
    row = torch.arange(len(x), device=x.device)
    x[row, row * 7919 % x.shape[1]] += 10


CASES = (
    Case("normal_x1", 128, 4096),
    Case("normal_x10", 128, 4096, scale=10),
    Case("normal_x1000", 128, 4096, scale=1000),
    Case("outliers", 128, 4096, change=outliers),
    Case("extremes", 16, 4096, change=extremes),
    Case("lane_starts_minus_inf", 8, 16384, change=mask_first_half),
    Case("lane_starts_minus_inf", 64, 256, change=mask_first_half),
    Case("every_other_minus_inf", 16, 4096, change=mask_every_other),
    Case("row_minus_inf", 16, 1000, change=mask_a_row),
    Case("row_minus_inf", 4, 131072, change=mask_a_row),
    Case("nan_in_row", 16, 1000, change=nan_in_a_row),
    Case("nan_in_row", 4, 131072, change=nan_in_a_row),
    Case("inf_in_row", 16, 1000, change=infinity_in_a_row),
    Case("one_column", 257, 1),
    Case("odd_columns", 33, 1023),
    Case("odd_columns", 5, 50257),
    Case("prime_columns", 17, 4099),
    Case("prime_columns", 3, 65537),
    Case("one_row", 1, 1000003),
    Case("many_rows", 70001, 3),
    Case("zero_rows", 0, 128),
    Case("zero_columns", 128, 0),
)
