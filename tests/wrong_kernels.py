"""Softmax kernels with one fault each, as call(x, out): what verify has to catch.

Each is right but for the fault its name says, and its docstring tells where such faults come from.
"""

import torch


def right(x, out):
    """No fault: the one that has to pass."""
    return torch.softmax(x, -1, out=out)


def all_zeros(x, out):
    """A launch that failed after the output was cleared."""
    return out.zero_()


def stale_output(x, out):
    """A launch that failed: the memory holds what it held."""
    return out


def one_row_off(x, out):
    """Rows counted from the wrong block."""
    return out.copy_(torch.softmax(x, -1).roll(1, 0))


def last_column_missed(x, out):
    """A loop that ends one element early, in the sum only."""
    e = torch.exp(x - x.amax(-1, keepdim=True))
    return out.copy_(e / e[:, :-1].sum(-1, keepdim=True))


def tail_not_written(x, out):
    """Vectors of four, and no code for what is left over."""
    whole = x.shape[1] // 4 * 4
    out[:, :whole] = torch.softmax(x, -1)[:, :whole]
    return out


def max_not_subtracted(x, out):
    """The textbook formula."""
    e = torch.exp(x)
    return out.copy_(e / e.sum(-1, keepdim=True))


def one_element_off(x, out):
    """One element of one row wrong by a part in a thousand."""
    right(x, out)
    out[-1, x.shape[1] // 2] *= 1 + 1e-3
    return out


def row_sum_off(x, out):
    """A bias too small to see in any element, which the sum of many shows."""
    right(x, out)
    return out.add_(4e-6 * out.amax(-1, keepdim=True))


def half_precision(x, out):
    """Accumulation in a type that is too short."""
    e = torch.exp(x - x.amax(-1, keepdim=True)).half()
    return out.copy_(e / e.sum(-1, keepdim=True))


def rows_beyond_a_grid(x, out):
    """A grid dimension that ends at 65535."""
    out[:65535] = torch.softmax(x[:65535], -1)
    return out


def unguarded_minus_infinity(x, out):
    """The pair update computes exp(-inf - -inf) when a lane starts with -inf."""
    right(x, out)
    out[x[:, 0] == -torch.inf] = torch.nan
    return out


def masked_row_is_zero(x, out):
    """A guard that turns the NaN of a fully masked row into zeros."""
    return right(x, out).nan_to_num_(nan=0.0)


def nan_spreads(x, out):
    """A NaN in one row reaches the next through shared memory."""
    right(x, out)
    out[1:][out[:-1, 0].isnan()] = torch.nan
    return out


WRONG = (
    all_zeros,
    stale_output,
    one_row_off,
    last_column_missed,
    tail_not_written,
    max_not_subtracted,
    one_element_off,
    row_sum_off,
    half_precision,
    rows_beyond_a_grid,
    unguarded_minus_infinity,
    masked_row_is_zero,
    nan_spreads,
)
