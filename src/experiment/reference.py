"""The float64 softmax that everything is held against, and what counts as equal to it.

The error of an output y of dtype t against the reference r, in each row:

    |y - r| <= K[t] * max(r) + the smallest subnormal of t
    |sum(y) - sum(r rounded to t)| <= K[t]

An absolute bound would let an all-zero output pass on wide rows, a relative one would refuse the
rounding of elements that do not matter. NaN and infinities must stand exactly where r has them.
"""

import math
from dataclasses import dataclass

import torch

# Float32 arithmetic over rows of millions of elements, and one rounding to the output's dtype.
# torch's own softmax reaches 2.5e-6 at four million columns; 2^-17 is 7.6e-6.
ARITHMETIC = 2**-17
K = {
    torch.float32: ARITHMETIC,
    torch.float16: 2**-11 + ARITHMETIC,
    torch.bfloat16: 2**-8 + ARITHMETIC,
}
CHUNK = {"cpu": 2**18, "cuda": 2**25}  # elements of a chunk; a CPU keeps it in its cache


@dataclass(frozen=True)
class Errors:
    """How far an output is from the reference; passed when both errors are <= tolerance.

    max_abs_err: largest |y - r|. scaled_err: the same over the row's maximum, so that it is
    comparable with tolerance. row_sum_err: of the rows' sums. Each is inf where NaN or infinities
    do not match.
    """

    max_abs_err: float
    scaled_err: float
    row_sum_err: float
    tolerance: float

    @property
    def passed(self):
        return max(self.scaled_err, self.row_sum_err) <= self.tolerance


def softmax(x):
    """The softmax over the last dimension of a 2-D tensor, in float64."""
    y = x.to(torch.float64, copy=True)
    if y.numel():
        y -= x.amax(-1, keepdim=True)
        y.exp_()
        y /= y.sum(-1, keepdim=True)
    return y


def chunks(x):
    """Slices of rows that keep the float64 temporaries of a chunk bounded."""
    step = max(1, CHUNK[x.device.type] // max(1, x.shape[1]))
    return [slice(start, start + step) for start in range(0, len(x), step)]


def compare(y, x):
    """Errors of `y`, said to be the softmax of the 2-D tensor `x` over its last dimension.

    y: a tensor of the shape of x and a dtype of K; the reference is computed on x's device.
    """
    k = K[y.dtype]
    if y.shape != x.shape:
        return Errors(math.inf, math.inf, math.inf, k)
    worst = torch.zeros(3, dtype=torch.float64, device=x.device)
    for rows in chunks(x) if x.numel() else []:
        worst = torch.maximum(worst, chunk_errors(y[rows], softmax(x[rows]), k))
    return Errors(*worst.tolist(), tolerance=k)


def chunk_errors(y, r, k):
    """The three errors of a chunk as a tensor of 3: see Errors.

    A row of a softmax is finite everywhere or NaN everywhere, so NaN is a matter of whole rows.
    """
    smallest = torch.finfo(y.dtype).smallest_normal * torch.finfo(y.dtype).eps
    sums = y.sum(-1, dtype=torch.float64) - r.to(y.dtype).sum(-1, dtype=torch.float64)
    largest = r.amax(-1)
    error = r.sub_(y).abs_().amax(-1)
    right = largest.isnan() & y.isnan().all(-1)
    rows = torch.stack([error, error / (largest + smallest / k), sums.abs()])
    found = torch.where(right, 0.0, rows).amax(-1)
    return torch.where(found.isnan(), math.inf, found)
