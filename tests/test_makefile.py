"""What the Makefile removes."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(
    not (ROOT / ".git").exists(), reason="needs a clone: the Makefile asks git what is ignored"
)
# What setup, runs, tests, docker and the compilers leave.
LEFT = [
    ".cache/codeobjects/k.elf", ".env", ".pytest_cache/v", ".ruff_cache/v", ".snakemake.lock",
    ".snakemake/log/run", ".venv/bin/python", ".venv.new/bin/python", "build/rocm7/etc/release",
    "dist/sbom.json", "results/cpu/paper.pdf", "src/experiment/__pycache__/a.pyc",
    "src/online_softmax.egg-info/PKG-INFO", "src/online_softmax/_C.so",
    "src/online_softmax/build.json",
]  # fmt: skip


def test_distclean_leaves_what_is_tracked_and_what_is_new(tmp_path):
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    # As they are here, committed or not.
    for name in ("Makefile", ".gitignore"):
        (clone / name).write_text((ROOT / name).read_text())
    for name in [*LEFT, "src/new.py"]:
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        (clone / name).touch()
    subprocess.run(["make", "--silent", "distclean"], cwd=clone, check=True)
    done = subprocess.run(
        ["git", "clean", "-ndx"], cwd=clone, check=True, capture_output=True, text=True
    )
    assert done.stdout == "Would remove src/new.py\n"
