"""gang's waiting, where it could hang: each trial runs in a child process under a timeout."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from devices import gpu_missing

HERE = Path(__file__).parent


@pytest.mark.skipif(bool(gpu_missing()), reason=gpu_missing())
@pytest.mark.parametrize(
    "trial",
    [
        "nobody_helps_in_ordinary_running",
        "late_blocks_are_helped_and_the_bits_are_the_same",
        "no_patience_at_all",
        "rows_that_need_more_blocks_than_run_at_once",
        "two_streams",
        "beside_a_kernel_that_fills_the_chip",
        "an_output_over_the_input_takes_another_rung",
    ],
)
def test_gang(trial):
    environment = os.environ | {"PYTHONPATH": f"{HERE.parent / 'src'}{os.pathsep}{HERE}"}
    done = subprocess.run(
        [sys.executable, HERE / "gang_trials.py", trial],
        check=False,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.endswith("passed\n"), done.stderr
