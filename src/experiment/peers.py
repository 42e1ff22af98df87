"""Everything that is timed, behind one call: provider name -> call(x, out) -> output.

Ours are the algorithms of `online_softmax`; the others are what a user would reach for instead,
and `copy` is the roof: one read and one write of every element.
"""

import torch

import online_softmax

OURS = ("naive", "online", "warp", "block", "split", "gang", "auto")
TRITON_COLUMNS = 65536  # a wider row does not fit the registers of one block


class Unavailable(Exception):
    """A provider cannot serve this input or machine; the message says why."""


def outputs(provider):
    """Which outputs a provider is measured with, the main one first."""
    if provider in ("auto", "torch"):
        return ("preallocated", "allocated")
    return ("allocated",) if provider == "torch_compile" else ("preallocated",)


def prepare(provider, x):
    """Returns call(x, out=None) for inputs such as the 2-D tensor `x`; raises Unavailable."""
    if provider in OURS:
        return ours(provider, x)
    return PEERS[provider](x)


def algorithms(device):
    """Our algorithms on a torch.device."""
    return online_softmax.algorithms(device.type)


def ours(algorithm, x):
    known = algorithms(x.device)
    if algorithm not in known:
        raise Unavailable(
            f"online_softmax has no {algorithm} on {x.device.type}; it has {', '.join(known)}"
        )
    return lambda x, out=None: online_softmax.softmax(x, -1, algorithm=algorithm, out=out)


def eager(x):
    return lambda x, out=None: torch.softmax(x, -1, out=out)


def compiled(x):
    """torch.compile for exactly this shape; it allocates its output, whatever `out` is."""
    torch.compiler.reset()  # else a later shape meets the limit of recompilations
    function = torch.compile(lambda x: torch.softmax(x, -1), dynamic=False, fullgraph=True)
    return lambda x, out=None: function(x)


def triton(x):
    if x.device.type == "cpu":
        raise Unavailable("Triton needs a GPU")
    if x.shape[1] > TRITON_COLUMNS:
        raise Unavailable(f"a row in one block takes at most {TRITON_COLUMNS} columns")
    try:
        from experiment import triton_rows
    except ImportError as error:
        raise Unavailable(f"Triton is not installed: {error}") from None
    return triton_rows.softmax


def copy(x):
    return lambda x, out: out.copy_(x)


PEERS = {
    "torch": eager,
    "torch_compile": compiled,
    "triton": triton,
    "copy": copy,
}
