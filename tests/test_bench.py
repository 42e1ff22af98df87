"""The post's command, as a user types it."""

import re
import subprocess
import sys

import pytest


def bench(*arguments):
    command = [sys.executable, "-m", "online_softmax.bench", *map(str, arguments)]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def test_prints_the_posts_report():
    done = bench("--rows", 32, "--cols", 64, "--iters", 3, "--warmup", 1, "--scale", 5)
    assert done.returncode == 0, done.stderr
    number = r"\d+(\.\d+)?(e-\d+)?"
    for line in [
        r"shape=\(32, 64\)",
        rf"max_abs_diff\(online, torch\) = {number}",
        rf"max_abs_diff\(naive,  torch\) = {number}",
        rf"max_abs_diff\(online, naive\) = {number}",
        "Performance:",
        rf"  torch.softmax:       {number} ms",
        rf"  online two-pass:     {number} ms",
        rf"  naive three-pass:    {number} ms",
        rf"  speedup online/naive {number}x",
        rf"  speedup online/torch {number}x",
    ]:
        assert re.search(f"^{line}$", done.stdout, re.MULTILINE), (line, done.stdout)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("--rows", 0), "0; accepted: 1 or more"),
        (("--cols", -3), "-3; accepted: 1 or more"),
        (("--iters", "many"), "many"),
        (("--device", "tpu"), "choose from"),
    ],
)
def test_refuses(arguments, message):
    done = bench(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
