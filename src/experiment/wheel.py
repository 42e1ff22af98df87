"""A wheel for AMD GPUs, built by PyTorch's own ROCm path: hipify, hipcc, libamdhip64.

Where torch is a build for ROCm, it builds. Elsewhere torch is told that it is one, and the two
libraries that only such a torch has are empty stand-ins: what comes out shows that it builds, and
is marked as evidence in its version and in its build.json. hipcc may stand in the root folder of
another system (scripts/rocm7-rootfs).

The archs are those of PYTORCH_ROCM_ARCH, else all in codeobjects.ARCHS that the compiler knows.
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

import torch

from experiment import CheckFailed, codeobjects, command

ROOT = Path(__file__).parents[2]
TRIPLE = "amdgcn-amd-amdhsa--"
# What only a ROCm torch has: the library names them and takes no symbol of theirs.
STAND_INS = ("c10_hip", "torch_hip")
SETUP = """
import runpy, sys, torch
if torch.version.hip is None:
    torch.version.hip = {hip!r}
    torch.cuda._is_compiled = lambda: True
sys.argv = ["setup.py", *sys.argv[1:]]
runpy.run_path("setup.py", run_name="__main__")
"""
# hipcc in another system's root folder, seen through a layer that takes every change and ends with
# the command: in it the folders that hold sources and headers have their own names.
ENTER = """#!/bin/sh
exec unshare --mount {user} sh -c '
  set -e
  system=$0 layer={layer}
  mount -t tmpfs layer "$layer"
  mkdir "$layer/changes" "$layer/work" "$layer/root"
  mount -t overlay -o "lowerdir=$system,upperdir=$layer/changes,workdir=$layer/work" \
    overlay "$layer/root"
  for folder in /proc /dev {folders}; do
    mkdir -p "$layer/root$folder"
    mount --rbind "$folder" "$layer/root$folder"
  done
  exec chroot "$layer/root" env --unset=ROCM_PATH --chdir="$PWD" PATH=/usr/bin:/bin HIP_PLATFORM=amd hipcc "$@"
' {root} "$@"
"""


class Build:
    """The package's sources in a folder of their own, and how setup.py is run on them."""

    def __init__(self, folder, toolchain, archs):
        self.folder, self.toolchain = Path(folder), toolchain
        self.sources = self.folder / "sources"
        self.sources.mkdir()
        for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, self.sources)
        compiled = shutil.ignore_patterns("*.so", "build.json", "__pycache__")
        package = "src/online_softmax"
        shutil.copytree(ROOT / package, self.sources / package, ignore=compiled)
        self.libraries = self.folder / "libraries"
        self.libraries.mkdir()
        if is_evidence():
            for name in STAND_INS:
                stand_in = self.libraries / f"lib{name}.so"
                subprocess.run(["c++", "-shared", "-xc", os.devnull, "-o", stand_in], check=True)
        home = self.rocm_home()
        self.environment = os.environ | {
            "ROCM_HOME": str(home),
            "ROCM_PATH": str(home),
            "HIP_PLATFORM": "amd",
            "PYTORCH_ROCM_ARCH": ";".join(archs),
            "ONLINE_SOFTMAX_BACKEND": "rocm",
            "LIBRARY_PATH": f"{self.libraries}:{os.environ.get('LIBRARY_PATH', '')}".rstrip(":"),
        }

    def rocm_home(self):
        """The folder of bin/hipcc, as torch asks for it."""
        root = self.toolchain.root
        if not root:
            return Path(shutil.which(self.toolchain.hipcc)).parents[1]
        home = self.folder / "rocm"
        for name in ("bin", "lib", "include"):
            (home / name).mkdir(parents=True)
        runtime = next(root.glob("usr/lib/*/libamdhip64.so"))
        (home / "lib/libamdhip64.so").symlink_to(runtime)
        folders = {self.folder.resolve(), *include_folders()}
        layer = home / "layer"
        layer.mkdir()
        hipcc = home / "bin/hipcc"
        hipcc.write_text(
            ENTER.format(
                user="" if os.geteuid() == 0 else "--map-root-user",
                folders=" ".join(shlex.quote(str(folder)) for folder in sorted(folders)),
                layer=shlex.quote(str(layer)),
                root=shlex.quote(str(root)),
            )
        )
        hipcc.chmod(0o755)
        return home

    def setup(self, *arguments):
        """Run setup.py; raises CheckFailed with what it said."""
        code = SETUP.format(hip=hip_version(self.toolchain))
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            cwd=self.sources,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise CheckFailed(f"the build failed:\n{(done.stdout + done.stderr)[-20000:]}")


def include_folders():
    """Where torch's and Python's headers are."""
    return Path(torch.__file__).parent / "include", Path(sysconfig.get_path("include"))


def is_evidence():
    """Whether this torch is no build for ROCm."""
    return torch.version.hip is None


def hip_version(toolchain):
    return torch.version.hip or re.search(r"HIP ([\d.]+)", toolchain.version)[1]


def local_version(toolchain):
    """rocm7.1.torch2.13: what a wheel's version says of what it needs."""
    hip, torch_ = (".".join(v.split(".")[:2]) for v in (hip_version(toolchain), torch.__version__))
    return f"rocm{hip}.torch{torch_}" + (".evidence" if is_evidence() else "")


def archs_of(library, toolchain):
    """The archs that a library has code objects for, by the offload bundle in it."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(library, Path(folder, "library.so"))
        toolchain.llvm(
            "llvm-objcopy", "--dump-section=.hip_fatbin=bundle", "library.so", folder=folder
        )
        said = toolchain.llvm(
            "clang-offload-bundler", "--list", "--type=o", "--input=bundle", folder=folder
        )
    return [line.partition(TRIPLE)[2] for line in said.splitlines() if TRIPLE in line]


def make(out, toolchain):
    """Build the wheel into the folder `out`; its path and the archs that it is for."""
    asked = os.environ.get("PYTORCH_ROCM_ARCH", "").replace(";", " ").split()
    archs = asked or codeobjects.chosen_archs(toolchain, None)
    with tempfile.TemporaryDirectory() as folder:
        build = Build(folder, toolchain, archs)
        build.setup(
            "egg_info", f"--tag-build=+{local_version(toolchain)}", "bdist_wheel", "--dist-dir=dist"
        )
        made = next(build.sources.glob("dist/*.whl"))
        with zipfile.ZipFile(made) as wheel:
            library = next(name for name in wheel.namelist() if name.endswith(".so"))
            found = archs_of(wheel.extract(library, folder), toolchain)
        if sorted(found) != sorted(archs):
            raise CheckFailed(f"{made.name} holds code for {found}; asked for: {archs}")
        Path(out).mkdir(parents=True, exist_ok=True)
        return Path(shutil.move(made, Path(out, made.name))), archs


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m experiment.wheel", description=__doc__.partition("\n")[0]
    )
    codeobjects.add_compiler(parser)
    parser.add_argument("--out", required=True, help="the folder for the wheel")
    options = parser.parse_args(arguments)
    made, archs = make(options.out, codeobjects.compiler(options))
    print(f"{made}: {made.stat().st_size / 2**20:.1f} MiB, code objects for {', '.join(archs)}")
    if is_evidence():
        print("built without a ROCm torch: evidence that it builds, not for use")


if __name__ == "__main__":
    command(main)
