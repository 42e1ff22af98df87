"""The operator's Python face. The kernels stand in csrc, the checks in csrc/ops.cpp."""

import torch
from torch import Tensor

from online_softmax import library

_LIBRARY = library.load()

#: Accesses issued per element, reads + writes, by device kind and algorithm. `auto` is one of
#: the others.
UNITS = {
    "cpu": {"naive": 4, "online": 3, "block": 4},
    "gpu": {"naive": 4, "online": 3, "warp": 2, "block": 2, "split": 3, "gang": 2},
}


def softmax(
    x: Tensor,
    dim: int = -1,
    *,
    dtype: torch.dtype | None = None,
    algorithm: str = "auto",
    out: Tensor | None = None,
) -> Tensor:
    """Softmax over the last dimension, with the meaning of `torch.softmax`.

    Args:
        x: tensor of any shape; float32 on a CPU; float32, float16, bfloat16 or float64 on a GPU.
        dim: the last dimension, -1 or x.dim() - 1.
        dtype: one of those, or None; x is converted to it first.
        algorithm: one of `algorithms(x.device)`; "auto" takes the one for the shape.
        out: where to write; of that dtype, on x's device, of x's shape. It may be x itself.

    Returns:
        A tensor of x's shape; `out` where it was given. NaN poisons its own row only, and a
        row of -inf gives NaN.

    Raises:
        ValueError: an algorithm or dimension that is not served, an algorithm that cannot serve
            this shape, or tensors of two devices.
        TypeError: a dtype or layout that is not served.
        IndexError: a dimension that x does not have.
    """
    if out is None:
        return torch.ops.online_softmax.softmax(x, dim, dtype, algorithm)
    return torch.ops.online_softmax.softmax.out(x, dim, dtype, algorithm, out=out)


def naive_forward(x: Tensor) -> Tensor:
    """Softmax of each row in three walks. x: (rows, cols), float32, contiguous."""
    return softmax(_as_the_post_asks(x), algorithm="naive")


def online_forward(x: Tensor) -> Tensor:
    """Softmax of each row in two walks. x: (rows, cols), float32, contiguous."""
    return softmax(_as_the_post_asks(x), algorithm="online")


def _as_the_post_asks(x: Tensor) -> Tensor:
    if x.device.type not in ("cpu", "cuda"):
        raise ValueError(f"x is on {x.device}; accepted: cpu, cuda (ROCm too)")
    if x.dim() != 2:
        raise ValueError(f"x has {x.dim()} dimensions; accepted: 2 (rows, cols)")
    if x.dtype != torch.float32:
        raise TypeError(f"x has dtype {x.dtype}; accepted: torch.float32")
    if not x.is_contiguous():
        raise ValueError(f"x has strides {x.stride()}; accepted: contiguous, use x.contiguous()")
    return x


def algorithms(device: torch.device | str) -> tuple[str, ...]:
    """The algorithms that a device serves, in the order of the ladder."""
    return tuple(torch.ops.online_softmax.algorithms(torch.device(device).type).split(", "))


def explain(x: Tensor, dim: int = -1) -> str:
    """Which algorithm "auto" takes for this tensor, and why. Raises as `softmax` does."""
    return torch.ops.online_softmax.explain(x, dim)


def planned(rows: int, cols: int, dtype: torch.dtype, units: int, shared_is_large: bool):
    """What "auto" takes on a GPU that need not be here: (algorithm, blocks that share a row).

    `units` are its CUs or SMs as the runtime counts them; `shared_is_large` is true of NVIDIA,
    whose kernels may hold half of a slice in shared memory.
    """
    return torch.ops.online_softmax.planned(rows, cols, dtype, units, shared_is_large)


def build_info() -> dict:
    """What the library was built with: backend, compilers, flags, torch, and its file name."""
    return library.facts() | {"library": _LIBRARY.name}
