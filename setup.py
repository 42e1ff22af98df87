"""Builds the extension; everything else about the package stands in pyproject.toml.

The CPU kernels are always built. The GPU backend is added when torch's version names it and
its compiler is there. ONLINE_SOFTMAX_BACKEND=cpu|cuda|rocm forces one, and then a missing
compiler is an error. A visible GPU plays no part, so that images build on machines without one.
"""

import json
import os
import subprocess
from pathlib import Path

import torch
from setuptools import setup
from torch.utils.cpp_extension import (
    CUDA_HOME,
    ROCM_HOME,
    BuildExtension,
    CppExtension,
    CUDAExtension,
)

PACKAGE = Path("src/online_softmax")
CSRC = PACKAGE / "csrc"
BACKENDS = ("cpu", "cuda", "rocm")
TORCH_HIP = Path(torch.__file__).parent / "lib/libtorch_hip.so"  # there in a real ROCm torch
OLDEST_TORCH = (2, 11)  # the first with Stream::native_handle in its headers

# OpenMP is what at::parallel_for runs on. No -ffast-math: NaN, infinities and denormals keep
# their meaning, here and in the process that imports this.
HOST_FLAGS = ["-O3", "-fopenmp"]
GPU_FLAGS = {"cuda": ["-O3"], "rocm": ["-O3"]}


def gpu_compiler(backend: str) -> Path | None:
    """The compiler of a GPU backend, or None where it is missing."""
    home, name = {"cuda": (CUDA_HOME, "nvcc"), "rocm": (ROCM_HOME, "hipcc")}[backend]
    path = Path(home, "bin", name) if home else None
    return path if path and path.exists() else None


def choose_backend() -> str:
    forced = os.environ.get("ONLINE_SOFTMAX_BACKEND")
    named = "rocm" if torch.version.hip else "cuda" if torch.version.cuda else "cpu"
    if forced not in (None, *BACKENDS):
        raise SystemExit(f"ONLINE_SOFTMAX_BACKEND={forced}; accepted: {', '.join(BACKENDS)}")
    if forced in ("cuda", "rocm") and forced != named:
        raise SystemExit(f"ONLINE_SOFTMAX_BACKEND={forced}, but this torch is built for {named}")
    backend = forced or named
    if backend == "cpu" or gpu_compiler(backend):
        return backend
    missing = f"torch is built for {backend}, but its compiler was not found"
    if forced:
        raise SystemExit(f"ONLINE_SOFTMAX_BACKEND={forced}: {missing}")
    print(f"online_softmax: {missing}; building the CPU kernels only", flush=True)
    return "cpu"


def compiler_version(command: list[str]) -> str:
    lines = subprocess.run(command, check=False, capture_output=True, text=True).stdout.splitlines()
    # nvcc and hipcc tell theirs further down; GCC and clang first.
    return next((line for line in lines if "release" in line or "HIP version" in line), lines[0])


class Build(BuildExtension):
    """Leaves build.json beside the library: what it was built with, for environment.json."""

    def run(self):
        super().run()
        host = os.environ.get("CXX", "c++")
        gpu = gpu_compiler(BACKEND) if BACKEND != "cpu" else None
        facts = {
            "backend": BACKEND,
            "host_compiler": compiler_version([host, "--version"]),
            "host_flags": HOST_FLAGS,
            "gpu_compiler": compiler_version([str(gpu), "--version"]) if gpu else None,
            "gpu_flags": GPU_FLAGS.get(BACKEND),
            "torch": torch.__version__,
            "hip": torch.version.hip if BACKEND == "rocm" else None,
            "evidence": BACKEND == "rocm" and not TORCH_HIP.exists(),
        }
        package = PACKAGE if self.inplace else Path(self.build_lib, "online_softmax")
        (package / "build.json").write_text(json.dumps(facts, indent=2) + "\n")


if tuple(int(part) for part in torch.__version__.split(".")[:2]) < OLDEST_TORCH:
    raise SystemExit(f"online_softmax needs torch >= 2.11; this is torch {torch.__version__}")

BACKEND = choose_backend()
sources = [CSRC / "ops.cpp", CSRC / "cpu.cpp"]
if BACKEND != "cpu":
    sources.append(CSRC / {"cuda": "softmax.cu", "rocm": "softmax.hip"}[BACKEND])
host_flags = HOST_FLAGS + (["-DONLINE_SOFTMAX_GPU"] if BACKEND != "cpu" else [])

setup(
    ext_modules=[
        (CppExtension if BACKEND == "cpu" else CUDAExtension)(
            "online_softmax._C",
            [str(source) for source in sources],
            depends=[str(header) for header in CSRC.rglob("*.h")],
            include_dirs=[str((CSRC / "compat/nvidia").resolve())] if BACKEND == "cuda" else [],
            extra_link_args=["-fopenmp"],
            extra_compile_args={"cxx": host_flags, "nvcc": GPU_FLAGS.get(BACKEND, [])},
        )
    ],
    cmdclass={"build_ext": Build},
)
