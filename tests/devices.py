"""The devices that a test runs on; a GPU that is not there is a skip with its reason."""

import pytest
import torch

import online_softmax


def gpu_missing():
    if not torch.cuda.is_available():
        return "torch sees no GPU here"
    if online_softmax.build_info()["backend"] == "cpu":
        return "the extension was built without a GPU backend"
    return ""


def on_gpu(*values):
    return pytest.param(
        "cuda", *values, marks=pytest.mark.skipif(bool(gpu_missing()), reason=gpu_missing())
    )


DEVICES = ["cpu", on_gpu()]

#: (device, dtype, algorithm), every one that the operator has.
SERVED = [("cpu", torch.float32, name) for name in online_softmax.algorithms("cpu")] + [
    on_gpu(dtype, name)
    for dtype in (torch.float32, torch.float16, torch.bfloat16)
    for name in online_softmax.algorithms("cuda")
]


def softmax_or_skip(x, algorithm, out=None):
    """The operator's answer; a skip where the algorithm says that it cannot serve the shape."""
    try:
        return online_softmax.softmax(x, algorithm=algorithm, out=out)
    except ValueError as error:
        if "cannot serve" in str(error):
            pytest.skip(str(error))
        raise
