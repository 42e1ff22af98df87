"""PyTorch's own ROCm build path (hipify, hipcc, libamdhip64), without a ROCm torch or an AMD GPU.

experiment/wheel.py says how. CPU torch loads what Debian's toolchain builds; that of ROCm 7 needs a
younger C library than Debian 12's, so its library is linked and its symbols are looked up.
It takes some forty seconds; the rest is left to `make test-amd`.
"""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from experiment import InputError, codeobjects, wheel

ROOT = Path(__file__).parent.parent
CSRC = "src/online_softmax/csrc"
ARCH = "gfx90a"
RUNTIME = next(Path("/").glob("usr/lib/*/libamdhip64.so"), None)
ROCM7 = os.environ.get("ROCM7_ROOT")

try:
    TOOLCHAIN = codeobjects.Toolchain()
    REASON = "" if RUNTIME else "no libamdhip64.so; install it (Debian: libamdhip64-dev)"
except InputError as error:
    REASON = str(error)
needs_hip = pytest.mark.skipif(bool(REASON), reason=REASON)
needs_rocm7 = pytest.mark.skipif(not ROCM7, reason="ROCM7_ROOT is not set")

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


class Built:
    """The extension, built in a folder of its own."""

    def __init__(self, folder, toolchain):
        build = wheel.Build(folder, toolchain, [ARCH])
        build.setup("build_ext", "--inplace")
        self.sources = build.sources
        self.library = next(build.sources.glob("src/online_softmax/_C*.so"))
        self.environment = build.environment | {
            "LD_LIBRARY_PATH": str(build.libraries),
            "PYTHONPATH": "src",
        }

    def run(self, code):
        return subprocess.run(
            [sys.executable, "-c", code],
            check=False,
            cwd=self.sources,
            env=self.environment,
            capture_output=True,
            text=True,
        )


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return Built(tmp_path_factory.mktemp("built"), TOOLCHAIN)


@pytest.fixture(scope="module")
def built7(tmp_path_factory):
    return Built(tmp_path_factory.mktemp("built7"), codeobjects.Toolchain(root=ROCM7))


def texts(folder):
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*")
        if path.is_file()
    }


def symbols(library, kind):
    """The names of a library's dynamic symbols, `undefined` or `defined`."""
    what = ["nm", "-D", f"--{kind}-only", "--format=just-symbols", library]
    said = subprocess.run(what, capture_output=True, text=True, check=True).stdout
    return {line.partition("@")[0] for line in said.splitlines()}


@needs_hip
def test_hipify_leaves_every_source_as_it_is(built):
    assert texts(built.sources / CSRC) == texts(ROOT / CSRC)


@needs_hip
def test_it_links_the_hip_runtime_and_holds_the_code_object(built):
    needed = subprocess.run(
        ["readelf", "-d", built.library], capture_output=True, text=True, check=True
    )
    assert "[libamdhip64.so" in needed.stdout
    assert wheel.archs_of(built.library, TOOLCHAIN) == [ARCH]


@needs_rocm7
@pytest.mark.amd
def test_rocm_7_builds_it_too_and_its_runtime_has_every_symbol(built7):
    toolchain = codeobjects.Toolchain(root=ROCM7)
    assert texts(built7.sources / CSRC) == texts(ROOT / CSRC)
    assert wheel.archs_of(built7.library, toolchain) == [ARCH]
    wanted = {name for name in symbols(built7.library, "undefined") if "hip" in name.lower()}
    runtime = next(Path(ROCM7).glob("usr/lib/*/libamdhip64.so"))
    assert "hipLaunchKernel" in wanted
    assert wanted <= symbols(runtime, "defined")


@needs_rocm7
@pytest.mark.amd
def test_without_the_hip_runtime_the_import_ends_in_a_sentence(built7):
    said = built7.run("import online_softmax").stderr.splitlines()[-1]
    assert said.startswith("ImportError: online_softmax needs torch ")
    assert "HIP runtime" in said and "libamdhip64" in said


@needs_hip
@pytest.mark.amd
def test_a_wheel_says_what_it_needs_and_that_it_is_evidence(tmp_path, monkeypatch, built):
    monkeypatch.setenv("PYTORCH_ROCM_ARCH", "gfx90a;gfx1030")
    made, archs = wheel.make(tmp_path, TOOLCHAIN)
    assert sorted(archs) == ["gfx1030", "gfx90a"]
    assert f"+{wheel.local_version(TOOLCHAIN)}-" in made.name
    with zipfile.ZipFile(made) as content:
        content.extractall(tmp_path / "src")
    code = f"import sys; sys.path.insert(0, {str(tmp_path / 'src')!r}); import online_softmax as o"
    done = built.run(f"{code}; print(o.build_info()['evidence'], o.__file__)")
    assert done.stdout.split() == ["True", str(tmp_path / "src/online_softmax/__init__.py")]
    assert "evidence that it builds" in done.stderr


@needs_hip
def test_cpu_torch_loads_it_with_its_operators(built):
    done = built.run(
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


@needs_hip
def test_a_launch_without_a_device_returns_an_error_with_words(built, tmp_path):
    """By the launchers' own interface: without a device there is no tensor to call torch with."""
    kernels = next(built.sources.glob("build/temp*/**/softmax.o"))
    main = tmp_path / "main.cpp"
    main.write_text(LAUNCH)
    program = tmp_path / "main"
    flags = ["-std=c++17", f"-I{built.sources / CSRC}", "-lamdhip64"]
    subprocess.run(["c++", main, kernels, *flags, "-o", program], check=True)
    said = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    assert re.search("(?i)device", said), said
