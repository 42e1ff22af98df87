"""Which backend a build takes, with torch's version faked."""

import importlib.metadata
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent

RUN_SETUP = """
import runpy, sys, torch
torch.version.cuda, torch.version.hip, torch.__version__ = {cuda!r}, {hip!r}, {version!r}
sys.argv = ["setup.py", "--name"]
print("backend", runpy.run_path("setup.py", run_name="__main__")["BACKEND"])
"""


def run_setup(tmp_path, cuda=None, hip=None, version="2.13.0", forced=None):
    """setup.py with no GPU compiler to be found."""
    environment = os.environ | {
        name: str(tmp_path) for name in ("CUDA_HOME", "CUDA_PATH", "ROCM_HOME", "ROCM_PATH")
    }
    environment.pop("ONLINE_SOFTMAX_BACKEND", None)
    if forced:
        environment["ONLINE_SOFTMAX_BACKEND"] = forced
    code = RUN_SETUP.format(cuda=cuda, hip=hip, version=version)
    return subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("versions, named", [({"cuda": "13.0"}, "cuda"), ({"hip": "7.0"}, "rocm")])
def test_without_its_compiler_the_cpu_is_built_and_a_line_says_so(tmp_path, versions, named):
    done = run_setup(tmp_path, **versions)
    assert done.returncode == 0, done.stderr
    said = f"online_softmax: torch is built for {named}, but its compiler was not found"
    assert done.stdout.count(said) == 1
    assert done.stdout.endswith("backend cpu\n")


def test_a_cpu_torch_builds_the_cpu_and_says_nothing(tmp_path):
    done = run_setup(tmp_path)
    assert done.stdout.split() == ["online-softmax", "backend", "cpu"]


@pytest.mark.parametrize(
    "options, message",
    [
        ({"forced": "cuda", "cuda": "13.0"}, "ONLINE_SOFTMAX_BACKEND=cuda: torch is built for"),
        ({"forced": "rocm"}, "ONLINE_SOFTMAX_BACKEND=rocm, but this torch is built for cpu"),
        ({"forced": "gpu"}, "ONLINE_SOFTMAX_BACKEND=gpu; accepted: cpu, cuda, rocm"),
        ({"version": "2.10.1"}, "needs torch >= 2.11; this is torch 2.10.1"),
    ],
)
def test_refuses(tmp_path, options, message):
    done = run_setup(tmp_path, **options)
    assert done.returncode == 1
    assert message in done.stderr


def test_forcing_the_cpu(tmp_path):
    done = run_setup(tmp_path, cuda="13.0", forced="cpu")
    assert done.stdout.split() == ["online-softmax", "backend", "cpu"]


@pytest.mark.parametrize("name", ["scripts/setup", "Dockerfile"])
def test_everything_but_torch_is_installed_by_hash(name):
    if not (ROOT / name).exists():
        pytest.skip("an image holds no setup of its own")
    text = (ROOT / name).read_text().replace("\\\n", "")
    found = re.findall(r"pip\b\S* install +(.*)", text)
    assert len(found) > 1
    for options in found:
        options = " ".join(options.split())
        by_hash = "--require-hashes --no-deps -r requirements.txt" in options
        assert by_hash or "-r requirements-torch.txt" in options or "--editable ." in options


def test_the_lock_holds_a_hash_for_each_package_and_torch_s_own_but_no_torch():
    text = (ROOT / "requirements.txt").read_text()
    pins = re.findall(r"^\w\S*==[\s\S]*?(?=^\w|\Z)", text, re.MULTILINE)
    assert all("--hash=sha256:" in pin for pin in pins)
    locked = {pin.partition("==")[0] for pin in pins}
    required = map(Requirement, importlib.metadata.requires("torch"))
    named = {pin.name for pin in required if not pin.marker or pin.marker.evaluate({"extra": ""})}
    of_a_gpu = {name for name in named if name.startswith(("cuda-", "nvidia-", "triton"))}
    assert named - of_a_gpu <= locked
    assert "torch" not in locked
    assert re.fullmatch(r"torch==[\d.]+\n", (ROOT / "requirements-torch.txt").read_text())
