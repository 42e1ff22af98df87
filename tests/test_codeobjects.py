"""The machine code of every kernel keeps the rules, and the gates catch kernels that do not.

Compiled by whatever AMD compiler is here; nothing runs on a GPU.
"""

import os
import re
import shutil
import subprocess

import pytest

from experiment import CheckFailed, InputError, codeobjects, tables
from online_softmax import UNITS

try:
    TOOLCHAIN = codeobjects.Toolchain()
    REASON = ""
except InputError as error:
    TOOLCHAIN, REASON = None, str(error)

needs_hipcc = pytest.mark.skipif(TOOLCHAIN is None, reason=REASON)
# What Debian 12's compiler knows: a wave of 64 and a wave of 32.
ARCHS = ["gfx90a", "gfx1030"]

CSRC = codeobjects.SOURCE.parent
# The smallest and the largest of every rung; `make test-amd` takes all of softmax.hip.
FEW = """
template __global__ void naive_kernel<float, 512>(const float*, float*, int64_t, int64_t);
template __global__ void online_kernel<float, 512>(const float*, float*, int64_t, int64_t);
template __global__ void online_kernel<double, 512>(const double*, double*, int64_t, int64_t);
template __global__ void warp_kernel<float, 128, 1, 1>(const float*, float*, int64_t, int64_t);
template __global__ void warp_kernel<Bfloat16, 128, 32, 2>(const Bfloat16*, Bfloat16*, int64_t,
                                                           int64_t);
template __global__ void block_kernel<float, 64, 2, 0, 32>(const float*, float*, int64_t);
template __global__ void block_kernel<Half, 1024, 8, 0, 1>(const Half*, Half*, int64_t);
template __global__ void split_reduce_kernel<float, 512>(const float*, float*, int64_t, int64_t,
                                                         int, int64_t, Pair<float>*);
template __global__ void split_write_kernel<float, 512>(const float*, float*, int64_t, int64_t,
                                                        int, int64_t, const Pair<float>*);
template __global__ void gang_kernel<float, 512, 16, 0, 1>(const float*, float*, int64_t, int, int,
                                                           Word*, Word*, GangOptions);
"""

SOURCE = """
#include <hip/hip_runtime.h>
#include <stdint.h>
namespace online_softmax {
%s
}  // namespace online_softmax
"""

# Reads and writes an element at a time, a stride apart.
NARROW = """
template <typename T, int kThreads, int kInRegisters, int kBlocks>
__global__ void __launch_bounds__(kThreads) block_kernel(const T* x, T* y) {
  T held[kInRegisters];
  for (int i = 0; i < kInRegisters; ++i) held[i] = x[(i * kThreads + threadIdx.x) * 64];
  for (int i = 0; i < kInRegisters; ++i) y[(i * kThreads + threadIdx.x) * 64] = held[i] * 2;
}
template __global__ void block_kernel<float, 256, 4, 4>(const float*, float*);
"""

HOLDING = """
template <typename T, int kThreads, int kLanes, int kInRegisters>
__global__ void __launch_bounds__(kThreads) warp_kernel(const T* x, T* y) {
  using Words __attribute__((ext_vector_type(4))) = T;
  auto* from = reinterpret_cast<const Words*>(x) + threadIdx.x;
  auto* to = reinterpret_cast<Words*>(y) + threadIdx.x;
  Words held[kInRegisters];
  T sum = 0;
#pragma unroll
  for (int i = 0; i < kInRegisters; ++i) held[i] = from[i * kThreads];
  asm volatile("" ::: "memory");
#pragma unroll
  for (int i = 0; i < kInRegisters; ++i) sum += held[i][0] * held[i][1] + held[i][2] * held[i][3];
  asm volatile("" ::: "memory");
#pragma unroll
  for (int i = 0; i < kInRegisters; ++i) to[i * kThreads] = held[i] * sum;
}
"""
# More than a block of 1024 threads has registers for.
SPILLING = (
    HOLDING + "template __global__ void warp_kernel<float, 1024, 32, 64>(const float*, float*);"
)

# Picks its registers by an index that only the run knows.
INDEXING = """
template <typename T, int kThreads>
__global__ void __launch_bounds__(kThreads) split_write_kernel(const T* x, T* y, int64_t n) {
  T held[32];
  for (int i = 0; i < 32; ++i) held[i] = x[i];
#pragma unroll 1
  for (int64_t i = 0; i < n; ++i) held[(i * i) % 32] += held[(i + 7) % 32];
  for (int i = 0; i < 32; ++i) y[i] = held[i];
}
template __global__ void split_write_kernel<float, 512>(const float*, float*, int64_t);
"""

# Polls at the scope of its own block: another unit's write need not reach it.
DEAF = """
template <typename T, int kThreads, int kInRegisters, int kInShared, int kBlocks>
__global__ void __launch_bounds__(kThreads) gang_kernel(const T* x, T* y) {
  while (__hip_atomic_load(reinterpret_cast<const uint64_t*>(x), __ATOMIC_RELAXED,
                           __HIP_MEMORY_SCOPE_WORKGROUP) == 0) {
  }
  reinterpret_cast<uint4*>(y)[threadIdx.x] = reinterpret_cast<const uint4*>(x)[threadIdx.x];
}
template __global__ void gang_kernel<float, 256, 1, 0, 4>(const float*, float*);
"""


RUNGS = ("naive", "online", "warp", "block", "split", "gang")

# (file, old, new): a walk more; a scalar read more; a held slice read again; a walk written twice;
# more shared memory than several blocks find.
ANOTHER_WALK = """Value again = 0;
    row.each(0, row.vectors, true, [&](const auto& values) {
      for (const Value value : values) again = fmax(again, value);
    });
    const Value scale = 1 / (d + again);"""
SCALAR = "p.d += *const_cast<const volatile T*>(row.x); p = update(p, values);"
WRITE = "row.map(begin, end, begin == 0, [&](float value) { return weight(value, s) * scale; });"
BALLAST = """constexpr int kRows = kThreads / kLanes;  // a block
  __shared__ volatile float ballast[12288];
  ballast[thread_index()] = 0;"""
SPOILT = [
    ("naive.h", "const Value scale = 1 / d;", ANOTHER_WALK),
    ("online.h", "p = update(p, values);", SCALAR),
    (
        "slice.h",
        "T* to = row_.y_body(first_);",
        "load_registers(); T* to = row_.y_body(first_);",
    ),
    ("split.h", WRITE, f"{WRITE}\n    __syncthreads();\n    {WRITE}"),
    ("warp.h", "constexpr int kRows = kThreads / kLanes;  // a block", BALLAST),
]


@pytest.fixture(scope="module")
def write(tmp_path_factory):
    """write(text): a source file of that text in a folder of its own."""

    def write(text):
        source = tmp_path_factory.mktemp("source") / "k.hip"
        source.write_text(text)
        return source

    return write


@pytest.fixture(scope="module")
def planted(write):
    """The planted kernels' violations on gfx90a, one text."""
    source = write(SOURCE % f"{NARROW}{SPILLING}{INDEXING}{DEAF}")
    return "\n".join(codeobjects.violations(codeobjects.kernels(TOOLCHAIN, "gfx90a", source)))


def few(folder, changes=()):
    """Write a source of a few instances of the real headers, with `changes`: (file, old, new)."""
    for path in CSRC.glob("*.h"):
        shutil.copy(path, folder)
    for name, old, new in changes:
        text = (folder / name).read_text()
        assert text.count(old) == 1, (name, old)
        (folder / name).write_text(text.replace(old, new))
    includes = "".join(f'#include "{rung}.h"\n' for rung in RUNGS)
    source = folder / "few.hip"
    source.write_text(f"{includes}namespace online_softmax {{\n{FEW}}}\n")
    return source


@pytest.fixture(scope="module", params=ARCHS)
def real(request, tmp_path_factory):
    return codeobjects.kernels(TOOLCHAIN, request.param, few(tmp_path_factory.mktemp("few")))


@pytest.fixture(scope="module")
def spoilt(tmp_path_factory):
    """The violations on gfx90a of the real kernels with a fault in each, one text."""
    source = few(tmp_path_factory.mktemp("spoilt"), SPOILT)
    return "\n".join(codeobjects.violations(codeobjects.kernels(TOOLCHAIN, "gfx90a", source)))


@needs_hipcc
def test_every_kernel_keeps_the_rules(real):
    assert list(codeobjects.violations(real)) == []


@needs_hipcc
@pytest.mark.amd
def test_every_rung_is_there_in_every_dtype():
    found = {(kernel.rung, kernel.dtype) for kernel in codeobjects.kernels(TOOLCHAIN, "gfx90a")}
    rungs = ["naive", "online", "warp", "block", "split_reduce", "split_write", "gang"]
    served = [(rung, dtype) for rung in rungs for dtype in ("float32", "float16", "bfloat16")]
    assert found == {*served, ("naive", "float64"), ("online", "float64")}


@needs_hipcc
def test_held_elements_cost_at_most_two_exponentials_each(real):
    """One for the sum and one for the result; the rest combine pairs and weigh the edges."""
    for kernel in real:
        if kernel.rung in ("warp", "block"):
            size = 4 if kernel.dtype == "float32" else 8
            held = kernel.held * size
            assert held <= kernel.row()["exps"] <= 2 * held + 4 + 4 * size, kernel.name


@needs_hipcc
@pytest.mark.parametrize(
    ("rung", "words"),
    [
        ("block", "load_bytes is 4; expected 16"),
        ("block", "store_bytes is 4; expected 16"),
        ("block", "0.25 reads an element; block.h states 1"),
        ("warp", "vgpr_spills is"),
        ("split_write", "scratch_bytes is"),
        ("gang", "0 polls match"),
    ],
)
def test_gates_catch_planted_kernels(planted, rung, words):
    assert re.search(rf"gfx90a, {rung}<.*: .*{re.escape(words)}", planted)


@needs_hipcc
@pytest.mark.parametrize(
    ("rung", "words"),
    [
        ("naive", "4 reads an element; naive.h states 3"),
        ("online", "2.25 reads an element; online.h states 2"),
        ("warp", "waves; warp.h states 8 or more"),
        ("block", "2 reads an element; block.h states 1"),
        ("split_reduce", "2 writes an element; split.h states 1"),
    ],
)
def test_gates_catch_a_fault_in_a_real_kernel(spoilt, rung, words):
    assert re.search(rf"gfx90a, {rung}<.*: .*{re.escape(words)}", spoilt)


def test_the_headers_state_the_units_that_the_package_does():
    for rung, units in UNITS["gpu"].items():
        stated = codeobjects.stated(f"{rung}.h")
        assert stated.reads + stated.writes == units


@needs_hipcc
@pytest.mark.parametrize("arch", ARCHS)
def test_occupancy_is_the_compilers(arch, write):
    """Our register budgets against the compiler's own remark, for blocks of a single wave."""
    instances = "\n".join(
        f"template __global__ void warp_kernel<float, 32, 32, {n}>(const float*, float*);"
        for n in (1, 4, 8, 16, 24, 32)
    )
    source = write(SOURCE % (HOLDING + instances))
    flags = ["-O3", "-std=c++17", "-Rpass-analysis=kernel-resource-usage"]
    done = subprocess.run(
        [TOOLCHAIN.hipcc, "--genco", f"--offload-arch={arch}", *flags, source, "-o", "/dev/null"],
        env=os.environ | {"HIP_PLATFORM": "amd"},
        capture_output=True,
        text=True,
        check=True,
    )
    remark = r"Function Name: (\w+).*?Occupancy \[waves/SIMD\]: (\d+)"
    said = re.findall(remark, done.stderr, re.DOTALL)
    found = codeobjects.kernels(TOOLCHAIN, arch, source)
    ours = {kernel.metadata[".name"]: kernel.row()["waves_per_simd"] for kernel in found}
    assert ours == {name: int(waves) for name, waves in said}
    assert len(set(ours.values())) > 2


@needs_hipcc
def test_the_command_writes_the_table(tmp_path, monkeypatch):
    monkeypatch.setattr(codeobjects, "SOURCE", few(tmp_path))
    out = tmp_path / "codeobjects.csv"
    codeobjects.main(["--arch", *ARCHS, "--gate", "--out", str(out)])
    table = tables.read(out, "codeobjects")
    assert set(table.arch) == set(ARCHS)
    assert set(table.wave_size) == {32, 64}


@needs_hipcc
def test_the_command_says_what_breaks_a_rule_and_fails_if_it_is_a_gate(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(codeobjects, "SOURCE", few(tmp_path))
    monkeypatch.setattr(codeobjects, "violations", lambda found: ["gang: a fault"])
    command = ["--arch", ARCHS[0], "--out", str(tmp_path / "codeobjects.csv")]
    codeobjects.main(command)
    assert "gang: a fault" in capsys.readouterr().err
    with pytest.raises(CheckFailed, match="gang: a fault"):
        codeobjects.main([*command, "--gate"])


@needs_hipcc
def test_a_kernel_that_does_not_compile_fails_with_the_compilers_words(write):
    source = write(SOURCE % "__global__ void k() { int unused; }")
    with pytest.raises(CheckFailed, match=r"(?s)k\.hip does not compile for gfx90a.*unused"):
        codeobjects.kernels(TOOLCHAIN, "gfx90a", source)


def test_a_missing_compiler_is_named():
    with pytest.raises(InputError, match="no hipcc in --hipcc /nowhere/hipcc; install it"):
        codeobjects.Toolchain("/nowhere/hipcc")
    with pytest.raises(InputError, match="no hipcc in --root /nowhere.*scripts/rocm7-rootfs"):
        codeobjects.Toolchain(root="/nowhere")


@needs_hipcc
def test_an_unknown_arch_is_named():
    with pytest.raises(InputError, match="unknown arch 'gfx90b'.*accepted: gfx906, gfx90a"):
        codeobjects.chosen_archs(TOOLCHAIN, ["gfx90b"])
