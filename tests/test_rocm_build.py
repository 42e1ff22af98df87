"""PyTorch's own ROCm build path (hipify, hipcc, libamdhip64), without a ROCm torch or an AMD GPU.

torch.version.hip is set before torch.utils.cpp_extension looks at it, and the two libraries that
only a ROCm torch has are empty stand-ins. What comes out is what a ROCm torch would build, and
CPU torch loads it. It takes some forty seconds.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from experiment import InputError, codeobjects

ROOT = Path(__file__).parent.parent
ARCH = "gfx90a"
RUNTIME = next(Path("/").glob("usr/lib/*/libamdhip64.so"), None)

try:
    HIPCC = Path(codeobjects.Toolchain().hipcc)
    REASON = "" if RUNTIME else "no libamdhip64.so; install it (Debian: libamdhip64-dev)"
except InputError as error:
    REASON = str(error)
pytestmark = pytest.mark.skipif(bool(REASON), reason=REASON)

BUILD = """
import runpy, sys, torch
torch.version.hip = "{hip}"
torch.cuda._is_compiled = lambda: True
sys.argv = ["setup.py", "build_ext", "--inplace"]
runpy.run_path("setup.py", run_name="__main__")
"""

LAUNCH = """
#include <cstdio>
#include "launch.h"
using namespace online_softmax;
int main() {
  float x[64] = {}, y[64];
  const Problem problem{4, 16, Dtype::float32, false};
  const Plan plan = plan_gpu(Algorithm::online, problem);
  const int error = softmax_gpu(plan, problem, x, y, nullptr, nullptr);
  std::puts(gpu_error(error));
  return error == 0;
}
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """run(code): the output of Python with the extension, in a copy of the sources, built."""
    copy = tmp_path_factory.mktemp("copy")
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    ignore = shutil.ignore_patterns("*.so", "build.json", "__pycache__")
    shutil.copytree(ROOT / "src/online_softmax", copy / "src/online_softmax", ignore=ignore)
    libraries = tmp_path_factory.mktemp("libraries")
    for name in ("c10_hip", "torch_hip"):
        library = libraries / f"lib{name}.so"
        subprocess.run(["c++", "-shared", "-x", "c", os.devnull, "-o", library], check=True)

    environment = os.environ | {
        "ROCM_HOME": str(HIPCC.parent.parent),
        "ROCM_PATH": str(HIPCC.parent.parent),
        "HIP_PLATFORM": "amd",
        "PYTORCH_ROCM_ARCH": ARCH,
        "ONLINE_SOFTMAX_BACKEND": "rocm",
        "LIBRARY_PATH": str(libraries),
        "LD_LIBRARY_PATH": str(libraries),
        "PYTHONPATH": "src",
    }

    def run(code):
        return subprocess.run(
            [sys.executable, "-c", code],
            check=False,
            cwd=copy,
            env=environment,
            capture_output=True,
            text=True,
        )

    hip = re.search(r"HIP ([\d.]+)", codeobjects.Toolchain().version)[1]
    done = run(BUILD.format(hip=hip))
    assert done.returncode == 0, (done.stdout + done.stderr)[-20000:]
    return run


def test_hipify_leaves_every_source_as_it_is(built):
    def texts(folder):
        return {
            str(path.relative_to(folder)): path.read_text()
            for path in folder.rglob("*")
            if path.is_file()
        }

    copy = Path(built("import os; print(os.getcwd())").stdout.strip())
    csrc = "src/online_softmax/csrc"
    assert texts(copy / csrc) == texts(ROOT / csrc)


def test_it_links_the_hip_runtime_and_holds_the_code_object(built):
    done = built("import online_softmax; print(online_softmax.ops._LIBRARY)")
    assert done.returncode == 0, done.stderr
    library = Path(done.stdout.strip())
    needed = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True)
    assert "[libamdhip64.so" in needed.stdout
    assert f"amdgcn-amd-amdhsa--{ARCH}".encode() in library.read_bytes()


def test_cpu_torch_loads_it_with_its_operators(built):
    done = built(
        "import torch, online_softmax as o\n"
        "assert o.build_info()['backend'] == 'rocm'\n"
        "assert set(o.UNITS['gpu']) <= set(o.algorithms('cuda'))\n"
        "has = torch._C._dispatch_has_kernel_for_dispatch_key\n"
        "for name in ('softmax', 'softmax.out', 'explain', 'gang_trial'):\n"
        "    assert has('online_softmax::' + name, 'CUDA'), name\n"
        "x = torch.randn(3, 50)\n"
        "torch.testing.assert_close(o.softmax(x), torch.softmax(x, -1))\n"
    )
    assert done.returncode == 0, done.stderr


def test_a_launch_without_a_device_returns_an_error_with_words(built, tmp_path):
    """By the launchers' own interface: without a device there is no tensor to call torch with."""
    copy = Path(built("import os; print(os.getcwd())").stdout.strip())
    kernels = next(copy.glob("build/temp*/**/softmax.o"))
    main = tmp_path / "main.cpp"
    main.write_text(LAUNCH)
    program = tmp_path / "main"
    flags = ["-std=c++17", f"-I{copy / 'src/online_softmax/csrc'}", "-lamdhip64"]
    subprocess.run(["c++", main, kernels, *flags, "-o", program], check=True)
    said = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    assert re.search("(?i)device", said), said
