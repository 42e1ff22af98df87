"""The GPU kernels' own text on the CPU, a fiber a lane, in waves of 32 and of 64 (tests/host).

It stands in for hardware that is not here, so it must be seen to find what goes wrong there: the
second half plants faults in copies of the kernels, each of which must be caught.
"""

import json
import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from experiment.reference import compare

ROOT = Path(__file__).parent.parent
CSRC = ROOT / "src/online_softmax/csrc"
HOST = ROOT / "tests/host"
WAVES = (32, 64)
ALGORITHMS = ("automatic", "naive", "online", "warp", "block", "split", "gang")
DTYPES = (torch.float32, torch.float16, torch.bfloat16)
#: Reads of an element, as each rung's header states them; every rung writes it once.
READS = {"naive": 3, "online": 2, "warp": 1, "block": 1, "split": 2, "gang": 1}
ORDERS = {"forward": 0, "reversed": 1, "shuffled": 2}
ERROR = 3  # exit status of a run that found one


@dataclass(frozen=True)
class Run:
    """What a run left: the softmax, or None and what was found wrong; and what it moved."""

    y: torch.Tensor | None
    error: str
    read: int = 0
    written: int = 0
    helped: int = 0


@dataclass(frozen=True)
class Program:
    path: Path
    wave: int

    def shapes(self):
        return json.loads(subprocess.check_output([self.path]))

    def __call__(self, x, algorithm, order="forward", timeout=60, **asked):
        asked |= {"algorithm": ALGORITHMS.index(algorithm), "order": ORDERS[order]}
        asked |= {"rows": x.shape[0], "cols": x.shape[1], "dtype": DTYPES.index(x.dtype)}
        done = subprocess.run(
            [self.path, *(f"{name}={value}" for name, value in asked.items())],
            input=x.view(torch.uint8).numpy().tobytes(),
            capture_output=True,
            timeout=timeout,
            check=False,
        )
        said = done.stderr.decode()
        if done.returncode == ERROR or done.returncode < 0:
            return Run(None, said or f"ended by signal {-done.returncode}")
        assert done.returncode == 0, said
        y = torch.frombuffer(bytearray(done.stdout), dtype=x.dtype).view(x.shape)
        moved = json.loads(said)
        return Run(y, "", moved["read"], moved["written"], moved["helped"])


def compile_object(source, target, wave, *flags, csrc=CSRC):
    width = ["-D__GFX9__"] if wave == 64 else []
    include = [f"-I{folder}" for folder in (csrc / "compat/host", csrc, HOST)]
    command = ["g++", "-x", "c++", "-std=c++17", *width, *include, *flags, "-c", source]
    subprocess.run([*command, "-o", target], check=True)
    return target


def compile_kernels(folder, wave, csrc=CSRC):
    """softmax.hip, with a call at each access to memory, which memory.cpp answers.

    Without inlining (-O0) the compiler passes structures to and fro unseen.
    """
    flags = ["-fsanitize=thread", "-fno-threadsafe-statics", "-fno-extern-tls-init"]
    target = folder / f"softmax-{wave}.o"
    return compile_object(csrc / "softmax.hip", target, wave, "-O1", "-w", *flags, csrc=csrc)


def link(target, wave, *objects):
    subprocess.run(["g++", *objects, "-o", target], check=True)
    return Program(target, wave)


@pytest.fixture(scope="module")
def instruments(tmp_path_factory):
    """The object files of tests/host for each wave."""
    folder = tmp_path_factory.mktemp("host")

    def compile_one(wave, name):
        target = folder / f"{name}-{wave}.o"
        flags = ("-O2", "-Wall", "-U_FORTIFY_SOURCE")  # its longjmp knows one stack only
        return compile_object(HOST / f"{name}.cpp", target, wave, *flags)

    names = ("lanes", "memory", "run")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return {wave: list(pool.map(compile_one, [wave] * len(names), names)) for wave in WAVES}


@pytest.fixture(scope="module")
def programs(instruments, tmp_path_factory):
    folder = tmp_path_factory.mktemp("kernels")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        kernels = pool.map(compile_kernels, [folder] * len(WAVES), WAVES)
        return {
            wave: link(folder / f"run-{wave}", wave, *instruments[wave], compiled)
            for wave, compiled in zip(WAVES, kernels)
        }


@pytest.fixture(params=WAVES, ids="wave{}".format)
def program(request, programs):
    return programs[request.param]


def changed(folder, changes):
    """A copy of the kernels in which each text, found once in its file, is another."""
    csrc = shutil.copytree(CSRC, folder / "csrc")
    for name, old, new in changes:
        text = (csrc / name).read_text()
        assert text.count(old) == 1, f"{name} holds {text.count(old)} times, not once: {old}"
        (csrc / name).write_text(text.replace(old, new))
    return csrc


def numbers(rows, cols, dtype):
    """Ordinary rows, and rows with what is not: -inf everywhere, -inf, NaN, +inf, large numbers."""
    x = torch.randn(rows, cols, generator=torch.Generator().manual_seed(cols)) * 3
    for row in range(1, rows):
        match row % 6:
            case 1:
                x[row] = -torch.inf
            case 2:
                x[row, ::3] = -torch.inf
            case 3:
                x[row, cols // 2] = torch.nan
            case 4:
                x[row, cols // 2] = torch.inf
            case 5:
                x[row] *= 1e4
    return x.to(dtype)


def launch(program, rung, x):
    """Launch arguments of a rung for a row of x: the first shape that holds it, or three slices."""
    if rung in ("split", "gang"):
        return slices(x, 3)
    vectors = x.shape[1] * x.element_size() / 16
    shapes = program.shapes().get(rung, [])
    return {"ranks": 1, "shape": next((n for n, most in enumerate(shapes) if most > vectors), 0)}


def slices(x, ranks):
    """Launch arguments that give each row `ranks` slices, the last of them short."""
    vectors = x.shape[1] * x.element_size() // 16
    return {"ranks": ranks, "slice_vectors": max(1, -(-vectors // ranks))}


def problems(rung, shapes, wave, dtype):
    """(x, launch arguments) for every launch shape of a rung, with odd column counts."""
    size = 16 // dtype.itemsize
    if rung in ("naive", "online"):
        for cols in (1, 7, 1001, 2 * 512 * size + 3):
            yield numbers(7, cols, dtype), {}
    elif rung in ("warp", "block"):
        for shape, vectors in enumerate(shapes[rung]):
            for cols in {1, vectors * size // 2 + 1, vectors * size + size - 1}:
                yield numbers(2 if cols > 10_000 else 7, cols, dtype), {"ranks": 1, "shape": shape}
    elif rung == "split":
        for cols, ranks in ((5, 1), (1003, 3)):
            x = numbers(4, cols, dtype)
            yield x, slices(x, ranks)
    else:
        for shape, vectors in enumerate(shapes["gang"]):
            for rows, cols, ranks in (
                (4, 5, 1),
                (4, 2005, 5),
                (1, (wave + 3) * size + 1, wave + 3),  # more slices than a wave has lanes
                (2, 2 * vectors * size + 1, 2),  # full slices
            ):
                x = numbers(rows, cols, dtype)
                yield x, {"shape": shape, "resident": ranks} | slices(x, ranks)


#: In elements, from a 16-byte boundary: together, apart by a common shift, and against each other.
OFFSETS = ({}, {"x_offset": 1, "y_offset": 1}, {"y_offset": 3}, {"x_offset": 2})


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: str(dtype).removeprefix("torch."))
@pytest.mark.parametrize("rung", READS)
def test_a_rung_is_right_and_moves_what_it_says(program, rung, dtype):
    for number, (x, arguments) in enumerate(problems(rung, program.shapes(), program.wave, dtype)):
        for turn, order in enumerate(ORDERS):
            offsets = OFFSETS[(number + turn) % len(OFFSETS)]
            case = (*x.shape, order, arguments, offsets)
            run = program(x, rung, order, **arguments, **offsets)
            assert not run.error, (case, run.error)
            errors = compare(run.y, x)
            assert errors.passed, (case, errors)
            # Where a gang was helped, the slice was read twice more, and the helper's once.
            assert run.read == READS[rung] * x.nbytes or run.helped, (case, run)
            assert run.written == x.nbytes, (case, run)


@pytest.mark.parametrize("rung", [rung for rung in READS if rung != "gang"])
def test_in_place(program, rung):
    for dtype in DTYPES:
        x = numbers(7, 101, dtype)
        arguments = launch(program, rung, x)
        run = program(x, rung, "shuffled", in_place=1, x_offset=1, **arguments)
        assert not run.error
        assert compare(run.y, x).passed


def test_the_choice_of_dispatch(program):
    for dtype in DTYPES:
        for rows, cols in ((9, 60), (9, 1021), (3, 9_001), (1, 33_001)):
            x = numbers(rows, cols, dtype)
            run = program(x, "automatic", "shuffled")
            assert not run.error
            assert compare(run.y, x).passed


# ---------------------------------------------------------------------- gang's waiting

#: Where blocks cannot wait for one another, or should not.
HINDRANCES = {
    "one block at a time": {"resident": 1},
    "one block at a time, from the last": {"resident": 1, "order": "reversed"},
    "fewer at once than a row has": {"resident": 3},
    "every second block late": {"late_every": 2},
    "every third block late, in disorder": {"late_every": 3, "order": "shuffled", "seed": 1},
    "no patience": {"patience": 0, "order": "shuffled", "seed": 2},
}


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: str(dtype).removeprefix("torch."))
def test_a_hindered_gang_writes_the_same_bits(program, dtype):
    for shape, vectors in enumerate(program.shapes()["gang"]):
        x = numbers(2, 4 * vectors * 16 // dtype.itemsize - 3001, dtype)
        arguments = {"shape": shape, **slices(x, 4)}
        expected = program(x, "gang", resident=10, patience=1000, **arguments)
        assert compare(expected.y, x).passed
        assert expected.helped == 0
        for name, hindrance in HINDRANCES.items():
            run = program(x, "gang", **{"patience": 8, "resident": 10} | arguments | hindrance)
            assert not run.error, (name, run.error)
            assert run.helped > 0, name
            assert run.y.view(torch.uint8).equal(expected.y.view(torch.uint8)), name


# ------------------------------------------------------------------------ planted faults

#: Grids so small that blocks stride over rows; the kernels are right with them too.
STRIDING = ("softmax.hip", "kMostBlocks = 1 << 21", "kMostBlocks = 2")


@dataclass(frozen=True)
class Fault:
    """A change of the kernels, a run that meets it, and words of what must be found."""

    change: tuple
    rung: str
    found: str
    wave: int = 64
    arguments: dict = None


def fault(*change, rung, found, wave=64, **arguments):
    return Fault(change, rung, found, wave, arguments)


FAULTS = {
    # The code of the post: one array for maxima and sums, so that a fast wave writes its sum
    # where a slow one still reads the maxima.
    "one scratch array for two reductions": fault(
        "naive.h", "(d, sums, Sum())", "(d, maxima, Sum())", rung="naive", found="race"
    ),
    "a reduction without its barrier": fault(
        "gpu.h",
        "__syncthreads();\n  return step",
        "return step",
        rung="online",
        found="nobody wrote",
    ),
    "a barrier for some lanes only": fault(
        "gpu.h",
        "__syncthreads();\n  return step",
        "if (lane_index() < 8) __syncthreads();\n  return step",
        rung="online",
        found="race",
    ),
    "a barrier for some waves only": fault(
        "gang.h",
        "    Verdict all = verdicts[0];",
        "    if (wave_index() != 1) __syncthreads();\n    Verdict all = verdicts[0];",
        rung="gang",
        found="others are at their end",
    ),
    "one vector too many": fault(
        "rows.h",
        "i < end; i += blockDim.x) {\n      Real<T> values[kSize];\n"
        "      load(x_body(i)).unpack(values);\n      see",
        "i <= end; i += blockDim.x) {\n      Real<T> values[kSize];\n"
        "      load(x_body(i)).unpack(values);\n      see",
        rung="online",
        found="reads byte",
    ),
    "one vector too many in a slice": fault(
        "slice.h",
        "return k * kLanes < left_",
        "return k * kLanes <= left_",
        rung="block",
        found="race",
    ),
    # In the C library, where no access is seen: what the memory around the buffers is for.
    "a library call past the end": fault(
        "warp.h",
        "slice.load();",
        "slice.load();\n    memset(y + 4096, 0, cols);",
        rung="warp",
        found="signal 11",
    ),
    "vector accesses to an odd address": fault(
        "rows.h",
        "sizeof(Vector<T>) == 0;",
        "sizeof(Vector<T>) >= 0;",
        rung="warp",
        found="16-byte boundary",
        x_offset=1,
    ),
    "waves of 32 assumed in a shuffle": fault(
        "gpu.h",
        "mask = kLanes / 2;",
        "mask = (kLanes > 32 ? 32 : kLanes) / 2;",
        rung="online",
        found="wrong",
    ),
    "waves of 32 assumed in a block": fault(
        "gpu.h",
        "% (kThreads / kWave)]",
        "% (kThreads / 32)]",
        rung="online",
        found="nobody wrote",
    ),
    "a pair published by a plain write": fault(
        "gang.h",
        "Word empty = 0;",
        "*at = bit_cast<Word>(p);\n  return;\n  Word empty = 0;",
        rung="gang",
        found="race",
    ),
    "plain reads while polling": fault(
        "gang.h",
        "return __hip_atomic_load(at, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)",
        "return *at",
        rung="gang",
        found="race",
    ),
    "a workspace that is not zeroed": fault(
        "gang.h",
        "    words[i] = 0;\n",
        "",
        rung="gang",
        found="nobody wrote",
    ),
    "copies that are not waited for": fault(
        "slice.h",
        "if constexpr (kInShared > 0) native_wait_for_copies();\n    Value m",
        "Value m",
        rung="gang",
        wave=32,
        shape=2,
        cols=30_000,
        found="nobody wrote",
    ),
}


def faulty_program(folder, instruments, wave, rungs, *changes):
    """The kernels with those changes, in float32 and of those rungs alone: it compiles faster."""
    csrc = changed(folder, changes)
    text = (csrc / "softmax.hip").read_text()
    text = re.sub(r"return (launch<(Half|Bfloat16)>|walk<double>)\(l\);", "break;", text)
    for other in {"warp", "block", "split", "gang"} - set(rungs):
        text = re.sub(rf"(case Algorithm::{other}:\s*return )[^;]*;", r"\1hipSuccess;", text)
    (csrc / "softmax.hip").write_text(text)
    kernels = compile_kernels(folder, wave, csrc)
    return link(folder / "run", wave, *instruments[wave], kernels)


def meet(program, rung, cols=250, **arguments):
    """What one run of a rung shows: what was found wrong in it, or whether its result is right."""
    x = torch.randn(3, cols, generator=torch.Generator().manual_seed(0))
    run = program(x, rung, **launch(program, rung, x) | arguments)
    return run.error or ("right" if compare(run.y, x).passed else "wrong")


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found(name, programs, instruments, tmp_path):
    planted = FAULTS[name]
    faulty = faulty_program(tmp_path, instruments, planted.wave, {planted.rung}, planted.change)
    assert meet(programs[planted.wave], planted.rung, **planted.arguments) == "right"
    found = meet(faulty, planted.rung, **planted.arguments)
    assert found != "right"
    assert planted.found in found


def test_blocks_that_stride_are_right(instruments, tmp_path):
    program = faulty_program(tmp_path, instruments, 64, READS, STRIDING)
    for rung in READS:
        assert meet(program, rung) == "right"


def test_a_gang_without_fallback_waits_for_ever(instruments, tmp_path):
    change = (
        "gang.h",
        "meet(options.patience)",
        "meet(1 << 30)",
    )
    program = faulty_program(tmp_path, instruments, 64, {"gang"}, change)
    assert meet(program, "gang") == "right"
    with pytest.raises(subprocess.TimeoutExpired):
        meet(program, "gang", resident=1, timeout=1)


def test_a_helper_that_adds_in_another_order_shows_in_the_bits(instruments, tmp_path):
    change = (
        "slice.h",
        "add(first(k));",
        "add(first(kUnroll == 1 ? kInRegisters - 1 - k : k));",
    )
    program = faulty_program(tmp_path, instruments, 64, {"gang"}, change)
    # Of each slice, seven vectors of one lane and nothing else, so that other lanes' numbers hide
    # less of how they were added; in many a row the normalizer is rounded to the same even so.
    vectors = torch.randn(24, 3 * 7, 256, 4, generator=torch.Generator().manual_seed(0))
    vectors[:, :, 1:] = -torch.inf
    x = vectors.view(24, -1)
    alone = program(x, "gang", **slices(x, 3))
    hindered = program(x, "gang", resident=1, **slices(x, 3))
    assert hindered.helped > 0
    assert compare(hindered.y, x).passed
    assert not hindered.y.equal(alone.y)
