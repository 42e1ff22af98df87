"""The machine code of every kernel keeps the rules, and the gates catch kernels that do not.

Compiled by whatever AMD compiler is here; nothing runs on a GPU.
"""

import os
import re
import subprocess

import pytest

from experiment import CheckFailed, InputError, codeobjects, tables

try:
    TOOLCHAIN = codeobjects.Toolchain()
    REASON = ""
except InputError as error:
    TOOLCHAIN, REASON = None, str(error)

needs_hipcc = pytest.mark.skipif(TOOLCHAIN is None, reason=REASON)
# What Debian 12's compiler knows: a wave of 64 and a wave of 32.
ARCHS = ["gfx90a", "gfx1030"]

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
    """The planted kernels' violations on gfx90a: rung -> one text."""
    source = write(SOURCE % f"{NARROW}{SPILLING}{INDEXING}{DEAF}")
    found = codeobjects.kernels(TOOLCHAIN, "gfx90a", source)
    return {kernel.rung: "\n".join(codeobjects.violations(kernel)) for kernel in found}


@pytest.fixture(scope="module", params=ARCHS)
def real(request):
    return codeobjects.kernels(TOOLCHAIN, request.param)


@needs_hipcc
def test_every_kernel_keeps_the_rules(real):
    assert [sentence for kernel in real for sentence in codeobjects.violations(kernel)] == []


@needs_hipcc
def test_every_rung_is_there_in_every_dtype(real):
    found = {(kernel.rung, kernel.dtype) for kernel in real}
    rungs = ["naive", "online", "warp", "block", "split_reduce", "split_write", "gang"]
    served = [(rung, dtype) for rung in rungs for dtype in ("float32", "float16", "bfloat16")]
    assert found == {*served, ("naive", "float64"), ("online", "float64")}


@needs_hipcc
def test_held_elements_cost_at_most_two_exponentials_each(real):
    """One for the sum and one for the result; the rest combine pairs and weigh the edges."""
    for kernel in real:
        if kernel.rung in ("warp", "block"):
            size = 4 if kernel.dtype == "float32" else 8
            held = codeobjects.accesses(kernel, "load") * size
            assert held <= kernel.row()["exps"] <= 2 * held + 4 + 4 * size, kernel.name


@needs_hipcc
@pytest.mark.parametrize(
    ("rung", "words"),
    [
        ("block", "load_bytes is 4; expected 4 or more loads of 16 bytes"),
        ("block", "store_bytes is 4; expected 4 or more stores of 16 bytes"),
        ("warp", "vgpr_spills is"),
        ("split_write", "scratch_bytes is"),
        ("gang", "0 polls match"),
        ("warp", "waves; its header states"),
        ("block", "0 vector stores; expected 4: one write an element"),
    ],
)
def test_gates_catch_planted_kernels(planted, rung, words):
    assert words in planted[rung]


@needs_hipcc
def test_a_second_read_is_caught(write):
    """Each vector read three times, where the text of two paths may read it twice."""
    read = 'asm volatile("" ::: "memory"); held[i] += from[i * kThreads];'
    write_it = "to[i * kThreads] = held[i] * sum;"
    again = HOLDING.replace(write_it, f"{{ {read} {read} {write_it} }}")
    text = again + "template __global__ void warp_kernel<float, 32, 32, 4>(const float*, float*);"
    (kernel,) = codeobjects.kernels(TOOLCHAIN, "gfx90a", write(SOURCE % text))
    said = list(codeobjects.violations(kernel))
    assert any("12 vector loads; expected 8 or fewer: one read" in sentence for sentence in said)


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
def test_the_command_writes_the_table(tmp_path):
    out = tmp_path / "codeobjects.csv"
    codeobjects.main(["--arch", *ARCHS, "--gate", "--out", str(out)])
    table = tables.read(out, "codeobjects")
    assert set(table.arch) == set(ARCHS)
    assert set(table.wave_size) == {32, 64}


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


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("global_load_dwordx4 v[0:3], v[4:5], off", "load", 16),
        ("global_load_b128 v[0:3], v[4:5], off", "load", 16),
        ("global_load_d16_hi_b16 v0, v[4:5], off", "load", 2),
        ("global_load_short_d16_hi v0, v[4:5], off", "load", 2),
        ("global_load_ushort v0, v[4:5], off", "load", 2),
        ("flat_load_b64 v[0:1], v[4:5]", "load", 8),
        ("buffer_store_dword v0, off, s[0:3], 0", "store", 4),
        ("global_store_b8 v[0:1], v2, off", "store", 1),
        ("global_store_byte v[0:1], v2, off", "store", 1),
        ("global_store_dwordx4 v[0:1], v[2:5], off", "load", None),
        ("ds_read_b128 v[0:3], v4", "load", None),
    ],
)
def test_width_of_an_access(text, kind, expected):
    assert codeobjects.width(text, kind) == expected
