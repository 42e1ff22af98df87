"""PyTorch's own ROCm build path (hipify, hipcc, libamdhip64), without a ROCm torch or an AMD GPU.

experiment/wheel.py says how. CPU torch loads what comes out. The HIP runtime of ROCm 7 needs a
younger C library than Debian 12's, so there Python runs under that of ROCM7_ROOT.
Some forty seconds with this machine's hipcc; ROCm 7 is left to `make test-amd`.
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
HERE = pytest.param("here", marks=pytest.mark.skipif(bool(REASON), reason=REASON))
NO_ROCM7 = pytest.mark.skipif(not ROCM7, reason="ROCM7_ROOT is not set")
ROCM_7 = pytest.param("ROCm 7", marks=[NO_ROCM7, pytest.mark.amd])

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
        self.toolchain = toolchain
        build = wheel.Build(folder, toolchain, [ARCH])
        build.setup("build_ext", "--inplace")
        self.sources = build.sources
        self.library = next(build.sources.glob("src/online_softmax/_C*.so"))
        self.runtime = Path(build.environment["ROCM_HOME"], "lib")
        self.libraries = build.libraries

    def execute(self, program, *arguments):
        """What a program does, and says, with the libraries that the extension needs."""
        environment, command = {"PYTHONPATH": "src"}, [program]
        if root := self.toolchain.root:
            (loader,) = root.glob("usr/lib/*/ld-linux-*.so.*")
            folders = [self.libraries, loader.parent, Path("/usr/lib", loader.parent.name)]
            command = [loader, "--argv0", program, "--library-path", ":".join(map(str, folders))]
            command += [Path(program).resolve()]
        else:
            environment["LD_LIBRARY_PATH"] = str(self.libraries)
        return subprocess.run(
            [*command, *arguments],
            check=False,
            cwd=self.sources,
            env=os.environ | environment,
            capture_output=True,
            text=True,
        )

    def run(self, code):
        return self.execute(sys.executable, "-c", code)


@pytest.fixture(scope="module", params=[HERE, ROCM_7])
def built(request, tmp_path_factory):
    toolchain = TOOLCHAIN if request.param == "here" else codeobjects.Toolchain(root=ROCM7)
    return Built(tmp_path_factory.mktemp("built"), toolchain)


def texts(folder):
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_hipify_leaves_every_source_as_it_is(built):
    assert texts(built.sources / CSRC) == texts(ROOT / CSRC)


def test_it_links_the_hip_runtime_and_holds_the_code_object(built):
    needed = subprocess.run(
        ["readelf", "-d", built.library], capture_output=True, text=True, check=True
    )
    assert "[libamdhip64.so" in needed.stdout
    assert wheel.archs_of(built.library, built.toolchain) == [ARCH]


def test_cpu_torch_loads_it_with_its_operators(built):
    done = built.run(
        "import torch, online_softmax as o\n"
        "assert o.build_info()['backend'] == 'rocm' and o.build_info()['evidence']\n"
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
    kernels = next(built.sources.glob("build/temp*/**/softmax.o"))
    main = tmp_path / "main.cpp"
    main.write_text(LAUNCH)
    program = tmp_path / "main"
    flags = ["-std=c++17", f"-I{built.sources / CSRC}", f"-L{built.runtime}", "-lamdhip64"]
    flags += ["-Wl,--unresolved-symbols=ignore-in-shared-libs"]  # of a younger C library
    subprocess.run(["c++", main, kernels, *flags, "-o", program], check=True)
    done = built.execute(str(program))
    assert done.returncode == 0, done.stderr
    assert re.search("(?i)device", done.stdout), done.stdout


@pytest.mark.parametrize("built", [ROCM_7], indirect=True)
def test_without_the_hip_runtime_the_import_ends_in_a_sentence(built):
    """Without the younger C library that of ROCm 7 does not load."""
    done = subprocess.run(
        [sys.executable, "-c", "import online_softmax"],
        cwd=built.sources,
        env=os.environ | {"PYTHONPATH": "src", "LD_LIBRARY_PATH": str(built.libraries)},
        check=False,
        capture_output=True,
        text=True,
    )
    said = done.stderr.splitlines()[-1]
    assert said.startswith("ImportError: online_softmax needs torch ")
    assert "and the HIP runtime of " in said and "libamdhip64" in said


@pytest.mark.amd
@pytest.mark.parametrize("built", [HERE], indirect=True)
def test_a_wheel_says_what_it_needs_and_that_it_is_evidence(built, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTORCH_ROCM_ARCH", "gfx90a;gfx1030")
    made, archs = wheel.make(tmp_path, built.toolchain)
    assert sorted(archs) == ["gfx1030", "gfx90a"]
    assert f"+{wheel.local_version(built.toolchain)}-" in made.name
    with zipfile.ZipFile(made) as content:
        content.extractall(tmp_path / "src")
    code = f"import sys; sys.path.insert(0, {str(tmp_path / 'src')!r}); import online_softmax as o"
    done = built.run(f"{code}; print(o.build_info()['evidence'], o.__file__)")
    assert done.stdout.split() == ["True", str(tmp_path / "src/online_softmax/__init__.py")]
    assert "evidence that it builds" in done.stderr
