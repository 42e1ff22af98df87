"""Softmax by an ascending ladder of algorithms, on CPUs and on AMD and NVIDIA GPUs."""

from online_softmax.ops import (
    UNITS,
    algorithms,
    build_info,
    explain,
    naive_forward,
    online_forward,
    planned,
    softmax,
)

__all__ = [
    "UNITS",
    "algorithms",
    "build_info",
    "explain",
    "naive_forward",
    "online_forward",
    "planned",
    "softmax",
]
