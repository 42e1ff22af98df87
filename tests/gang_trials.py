"""Each trial of test_gang.py, in a process of its own: python gang_trials.py TRIAL"""

import sys

import torch

import online_softmax
from experiment.reference import compare

PATIENCE = 4096


def gang(x, patience=PATIENCE, late_every=0):
    """softmax(x) by a gang of blocks; and how many slices were computed by a helper."""
    y, fallbacks = torch.ops.online_softmax.gang_trial(x, patience, late_every)
    return y, fallbacks.item()


def wide(rows=64, cols=300_001, dtype=torch.float32):
    return torch.randn(rows, cols, device="cuda").to(dtype)


def nobody_helps_in_ordinary_running():
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for rows, cols in [(64, 300_001), (512, 131_072), (3, 70_000), (8, 2_097_152)]:
            x = wide(rows, cols, dtype)
            y, fallbacks = gang(x)
            assert compare(y, x).passed
            assert fallbacks == 0, (dtype, rows, cols, fallbacks)


def late_blocks_are_helped_and_the_bits_are_the_same():
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        x = wide(dtype=dtype)
        expected, _ = gang(x)
        for late_every in (2, 3, 7):
            y, fallbacks = gang(x, patience=64, late_every=late_every)
            assert fallbacks > 0
            assert torch.equal(y, expected), (dtype, late_every)


def no_patience_at_all():
    x = wide()
    expected, _ = gang(x)
    y, fallbacks = gang(x, patience=0)
    assert fallbacks > 0
    assert torch.equal(y, expected)


def rows_that_need_more_blocks_than_run_at_once():
    x = wide(2, 40_000_003)
    y, _ = gang(x, patience=64)
    assert compare(y, x).passed


def two_streams():
    xs = [wide(256, 500_000), wide(256, 500_000)]
    expected = [gang(x)[0] for x in xs]
    streams = [torch.cuda.Stream(), torch.cuda.Stream()]
    torch.cuda.synchronize()
    for _ in range(20):
        results = []
        for x, stream in zip(xs, streams):
            with torch.cuda.stream(stream):
                results.append(torch.ops.online_softmax.gang_trial(x, 64, 0)[0])
        torch.cuda.synchronize()
        assert all(torch.equal(a, b) for a, b in zip(results, expected))


def beside_a_kernel_that_fills_the_chip():
    x = wide(256, 500_000)
    expected, _ = gang(x)
    matrix = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    other = torch.cuda.Stream()
    for _ in range(10):
        with torch.cuda.stream(other):
            for _ in range(3):
                product = matrix @ matrix
        y, _ = gang(x)
        assert torch.equal(y, expected)
    torch.cuda.synchronize()
    del product


def an_output_over_the_input_takes_another_rung():
    x = wide()
    expected, _ = gang(x)
    try:
        online_softmax.softmax(x, algorithm="gang", out=x)
    except ValueError as error:
        assert "an output apart from the input" in str(error)
    else:
        raise AssertionError("gang accepted out=x")
    online_softmax.softmax(x, out=x)
    torch.testing.assert_close(x, expected)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    torch.cuda.synchronize()
    print("passed")
