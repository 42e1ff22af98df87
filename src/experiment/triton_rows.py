"""The Triton peer: a program a row, the whole row in one block of a power of two of columns."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_row(x, y, cols, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * cols
    at = tl.arange(0, BLOCK)
    values = tl.load(x + start + at, mask=at < cols, other=-float("inf")).to(tl.float32)
    exponentials = tl.exp(values - tl.max(values, axis=0))
    shares = exponentials / tl.sum(exponentials, axis=0)
    tl.store(y + start + at, shares.to(y.dtype.element_ty), mask=at < cols)


def softmax(x, out=None):
    """The softmax of the rows of a contiguous 2-D GPU tensor, into `out` or a new tensor."""
    out = torch.empty_like(x) if out is None else out
    block = triton.next_power_of_2(x.shape[1])
    warps = min(32, max(4, block // 512))
    softmax_row[(len(x),)](x, out, x.shape[1], BLOCK=block, num_warps=warps)
    return out
