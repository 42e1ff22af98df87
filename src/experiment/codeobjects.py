"""What AMD's compiler makes of the kernels, read from the machine code; no GPU needed.

Every kernel of csrc/softmax.hip is compiled for each architecture, warnings as errors. Registers,
shared memory (LDS), scratch, spills and wave size come from the code object's metadata; accesses,
exponentials, barriers and the scope of gang's polling from its disassembly. The gates hold them
against what each rung's header states: units and occupancy. Compiled, not run: nothing here is a
measurement of a device.

A column that needs a word:
    kernel               rung<template parameters after the element type>
    waves_per_simd       by registers and LDS, in whole blocks
    waves_stated         what the rung's header promises
    reads_per_element    accesses that an element of an aligned row costs, counted along the
    writes_per_element   heaviest path (disassembly.py); split's two kernels share its units
    load_bytes           the width of those accesses; 0: none
    store_bytes
    exps, barriers       instructions in the kernel's text, all paths together
"""

import argparse
import functools
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import yaml

from experiment import CheckFailed, InputError, command, disassembly, schema, tables

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/online_softmax/csrc/softmax.hip"
CACHE = ROOT / ".cache/codeobjects"
FLAGS = ["-O3", "-std=c++17", "-Wall", "-Wextra", "-Werror"]
DTYPES = {"float": "float32", "double": "float64", "Half": "float16", "Bfloat16": "bfloat16"}
#: Which template parameter says how many vectors a lane holds, in the rungs that hold a slice.
HELD = {"warp": 2, "block": 1, "gang": 1}


@dataclass(frozen=True)
class Arch:
    """Budgets of a compute unit, or on RDNA of a work-group processor: four SIMDs either way.

    From LLVM's AMDGPU backend (IsaInfo in AMDGPUBaseInfo.cpp, SISchedule and the memory model
    tables of "User Guide for AMDGPU Backend") and AMD's ISA documents for each family.
    """

    wave_size: int
    vgprs: int  # vector registers of a SIMD, in each lane of a wave of wave_size
    granule: int  # they are handed out in multiples of this
    waves: int  # that a SIMD can hold
    lds_bytes: int
    poll: str  # what makes a load see other units' writes: agent scope in the memory model

    SIMDS = 4


KIB = 1024
ARCHS = {
    "gfx906": Arch(64, 256, 4, 10, 64 * KIB, r"\bglc\b"),
    "gfx90a": Arch(64, 512, 8, 8, 64 * KIB, r"\bglc\b"),  # accumulation registers included
    "gfx942": Arch(64, 512, 8, 8, 64 * KIB, r"\bsc1\b"),
    "gfx950": Arch(64, 512, 8, 8, 160 * KIB, r"\bsc1\b"),
    "gfx1030": Arch(32, 1024, 16, 16, 128 * KIB, r"\bglc dlc\b"),
    "gfx1100": Arch(32, 1536, 24, 16, 128 * KIB, r"\bglc\b"),
    "gfx1151": Arch(32, 1536, 24, 16, 128 * KIB, r"\bglc\b"),
    "gfx1200": Arch(32, 1536, 24, 16, 128 * KIB, r"\bscope:SCOPE_DEV\b"),
    "gfx1201": Arch(32, 1536, 24, 16, 128 * KIB, r"\bscope:SCOPE_DEV\b"),
}

# ------------------------------------------------------------------------------ the compiler


class Toolchain:
    """hipcc and the LLVM tools beside it, on this machine or in the root folder of another system.

    Commands name files relative to the folder that they run in.
    """

    # In a mount namespace of its own, which ends with the command.
    ENTER = (
        'root=$0 work=$1; shift; mount --rbind /proc "$root/proc"'
        ' && mount --rbind /dev "$root/dev" && mount --bind "$work" "$root/mnt"'
        ' && exec chroot "$root" env --chdir=/mnt PATH=/usr/bin:/bin HIP_PLATFORM=amd "$@"'
    )

    def __init__(self, hipcc=None, root=None):
        self.root = root and Path(root).resolve()
        self.hipcc = hipcc or ("hipcc" if root else here())
        present = self.root / "usr/bin/hipcc" if root else self.hipcc and shutil.which(self.hipcc)
        if not (present and Path(present).exists()):
            asked = f"--root {root}" if root else f"--hipcc {hipcc}" if hipcc else PLACES
            raise InputError(
                f"no hipcc in {asked}; install it (Debian: apt-get install hipcc) or make a folder"
                " with scripts/rocm7-rootfs DIR and give --root DIR"
            )

    def run(self, *arguments, folder="."):
        """Run a command in `folder`; raises CalledProcessError with what it said."""
        if self.root:
            user = [] if os.geteuid() == 0 else ["--map-root-user"]
            enter = ["unshare", "--mount", *user, "sh", "-c", self.ENTER, self.root]
            arguments = [*enter, Path(folder).resolve(), *arguments]
        environment = os.environ | {"HIP_PLATFORM": "amd"}
        return subprocess.run(
            arguments, cwd=folder, env=environment, check=True, capture_output=True, text=True
        ).stdout

    @functools.cached_property
    def version(self):
        """The version of HIP and of the compiler under it."""
        text = self.run(self.hipcc, "--version")
        hip = re.search(r"HIP version: ([\d.]+)", text)
        clang = re.search(r"clang version ([\d.]+)", text)
        if not (hip and clang):
            raise InputError(f"{self.hipcc} is not AMD's: it calls itself {text.strip()!r}")
        return f"HIP {hip[1]}, clang {clang[1]}"

    @functools.cached_property
    def tools(self):
        """The folder of the LLVM tools that belong to the compiler: …/lib/clang/<version>/../…"""
        return Path(self.run(self.hipcc, "-print-resource-dir").strip()).parents[2] / "bin"

    def llvm(self, tool, *arguments, folder="."):
        return self.run(str(self.tools / tool), *arguments, folder=folder)

    def compile(self, source, arch):
        """The code object of `source`, from the cache where all that it depends on is the same."""
        files = [source, *sorted(source.parent.glob("*.h"))]
        key = digest(files, arch, self.version, *FLAGS)
        made = CACHE / f"{source.stem}-{arch}-{key}.elf"
        if made.exists():
            return made
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            for path in files:  # and nothing else, so that nothing else can matter
                shutil.copy(path, folder)
            what = ["--genco", "--no-gpu-bundle-output", f"--offload-arch={arch}", *FLAGS]
            try:
                self.run(self.hipcc, *what, source.name, "-o", "k.elf", folder=folder)
            except subprocess.CalledProcessError as error:
                raise CheckFailed(
                    f"{source.name} does not compile for {arch} ({self.version}):\n{error.stderr}"
                ) from None
            os.replace(Path(folder, "k.elf"), made)
        return made

    def knows(self, arch):
        """Whether it compiles an empty kernel for `arch`."""
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "empty.hip").write_text("__attribute__((global)) void empty() {}\n")
            what = ["--genco", f"--offload-arch={arch}", "empty.hip", "-o", "empty.elf"]
            try:
                self.run(self.hipcc, *what, folder=folder)
            except subprocess.CalledProcessError:
                return False
        return True


PLACES = "ROCM_HOME, ROCM_PATH, ROCm's Python packages, PATH or /opt/rocm"


def here():
    """hipcc of this machine, looked for in the order of PLACES, as torch does; or None."""
    package = importlib.util.find_spec("_rocm_sdk_core")
    homes = [os.environ.get("ROCM_HOME"), os.environ.get("ROCM_PATH")]
    homes += [package and Path(package.origin).parent]
    found = [str(Path(home, "bin/hipcc")) for home in homes if home]
    found += [shutil.which("hipcc"), "/opt/rocm/bin/hipcc"]
    return next((path for path in found if path and Path(path).exists()), None)


def digest(files, *words):
    """A hash of the words and of the files, by name and content."""
    found = hashlib.sha256("\0".join(words).encode())
    for path in files:
        found.update(f"\0{path.name}\0".encode() + path.read_bytes())
    return found.hexdigest()[:16]


# -------------------------------------------------------------------------- what it contains


@dataclass
class Kernel:
    """A kernel of a code object."""

    arch: str
    rung: str
    dtype: str
    parameters: list  # of the template, after the element type
    metadata: dict
    instructions: list  # of disassembly.Instruction
    compiler: str

    @property
    def name(self):
        return f"{self.rung}<{', '.join(map(str, self.parameters))}>"

    def count(self, pattern):
        return sum(bool(re.match(pattern, instruction.text)) for instruction in self.instructions)

    @property
    def held(self):
        """The vectors that a lane holds; None: it walks."""
        return self.parameters[HELD[self.rung]] if self.rung in HELD else None

    @property
    def header(self):
        """The file that states the rung's units and occupancy; split's kernels share one."""
        return self.rung.partition("_")[0] + ".h"

    def row(self):
        """As a row of codeobjects.csv."""
        blocks, waves = blocks_per_unit(self)
        traffic = disassembly.traffic(self.instructions, self.held)
        return {
            "arch": self.arch,
            "wave_size": self.metadata[".wavefront_size"],
            "kernel": self.name,
            "dtype": self.dtype,
            "vgprs": self.metadata[".vgpr_count"],
            "sgprs": self.metadata[".sgpr_count"],
            "lds_bytes": self.metadata[".group_segment_fixed_size"],
            "scratch_bytes": self.metadata[".private_segment_fixed_size"],
            "vgpr_spills": self.metadata[".vgpr_spill_count"],
            "sgpr_spills": self.metadata[".sgpr_spill_count"],
            "waves_per_simd": blocks * waves // Arch.SIMDS,
            "waves_stated": stated(self.header).waves(self.arch),
            "reads_per_element": traffic.reads,
            "writes_per_element": traffic.writes,
            "load_bytes": traffic.load_bytes,
            "store_bytes": traffic.store_bytes,
            "exps": self.count(r"v_(s_)?exp_f32"),
            "barriers": self.count(r"s_barrier(_wait)?\b"),
            "compiler": self.compiler,
        }


def kernels(toolchain, arch, source=None):
    """Compile `source` (default: SOURCE) for `arch` and read its kernels."""
    made = toolchain.compile(source or SOURCE, arch)
    notes = toolchain.llvm("llvm-readelf", "--notes", made.name, folder=made.parent)
    found = yaml.safe_load(re.search(r"---\n(.*?)\n\.\.\.", notes, re.DOTALL)[1])
    metadata = {entry[".name"]: entry for entry in found["amdhsa.kernels"]}
    listing = toolchain.llvm(
        "llvm-objdump", "-d", "--no-show-raw-insn", made.name, folder=made.parent
    )
    text = disassembly.read(listing)
    plain = toolchain.llvm("llvm-cxxfilt", *metadata).splitlines()
    return [
        Kernel(arch, *signature(readable), metadata[name], text[name], toolchain.version)
        for name, readable in zip(metadata, plain, strict=True)
        if "gang_clear" not in readable  # moves no matrix
    ]


def signature(readable):
    """(rung, dtype, parameters) from a kernel's demangled name."""
    found = re.match(r"void online_softmax::(\w+)_kernel<([^>]*)>\(", readable)
    element, *parameters = found[2].split(", ")
    return found[1], DTYPES[element.removeprefix("online_softmax::")], list(map(int, parameters))


def blocks_per_unit(kernel):
    """Blocks that a unit holds by the budgets of its arch, and the waves of each."""
    arch, used = ARCHS[kernel.arch], kernel.metadata
    waves = min(arch.waves, arch.vgprs // round_up(max(used[".vgpr_count"], 1), arch.granule))
    if arch.wave_size == 64:  # gfx10 and later have scalar registers for all waves
        waves = min(waves, 800 // round_up(used[".sgpr_count"], 16))
    of_block = -(-used[".max_flat_workgroup_size"] // arch.wave_size)
    by_lds = arch.lds_bytes // max(used[".group_segment_fixed_size"], 1)
    return min(waves * arch.SIMDS // of_block, by_lds), of_block


def round_up(number, granule):
    return -(-number // granule) * granule


# ------------------------------------------------------------------------------------- gates


@dataclass(frozen=True)
class Stated:
    """What the comment that opens a rung's header states."""

    reads: int
    writes: int
    waves_per_simd: int
    waves_per_simd_gfx906: int  # whose register file is half of the others'

    def waves(self, arch):
        return self.waves_per_simd_gfx906 if arch == "gfx906" else self.waves_per_simd


@functools.cache
def stated(header):
    """Read it, so that it is written once."""
    found = re.search(
        r"// Units: (\d) reads? \+ (\d) writes? an element.*"
        r"// Occupancy: (\d+) waves a SIMD or more, (\d+) on gfx906\.",
        Path(SOURCE.parent, header).read_text(),
        re.DOTALL,
    )
    if not found:
        raise CheckFailed(f"{header} does not state its units and its occupancy")
    return Stated(*map(int, found.groups()))


def violations(found):
    """A sentence for everything in the kernels that none may have."""
    rows = [kernel.row() for kernel in found]
    for kernel, row in zip(found, rows, strict=True):
        yield from kernel_violations(kernel, row)
    rungs = {}
    for kernel, row in zip(found, rows, strict=True):
        key = (kernel.arch, kernel.header, kernel.dtype, *kernel.parameters)
        rungs.setdefault(key, []).append((kernel, row))
    for (arch, header, dtype, *_), parts in rungs.items():
        who = f"{arch}, {' + '.join(kernel.name for kernel, _ in parts)}, {dtype}"
        for kind in ("reads", "writes"):
            counted = sum(row[f"{kind}_per_element"] for _, row in parts)
            expected = getattr(stated(header), kind)
            if counted != expected:
                yield f"{who}: {counted:g} {kind} an element; {header} states {expected}"


def kernel_violations(kernel, row):
    """Those of one kernel, given its row of codeobjects.csv."""
    arch = ARCHS[kernel.arch]
    who = f"{kernel.arch}, {kernel.name}, {kernel.dtype}"
    for what in ("vgpr_spills", "sgpr_spills", "scratch_bytes"):
        if row[what]:
            yield f"{who}: {what} is {row[what]}; expected 0"
    if row["wave_size"] != arch.wave_size:
        yield f"{who}: compiled for waves of {row['wave_size']}; expected {arch.wave_size}"
    for what in ("load_bytes", "store_bytes"):
        if row[what] not in (0, disassembly.VECTOR_BYTES):
            yield f"{who}: {what} is {row[what]}; expected {disassembly.VECTOR_BYTES}"
    if row["waves_per_simd"] < row["waves_stated"]:
        yield (
            f"{who}: a SIMD holds {row['waves_per_simd']} waves;"
            f" {kernel.header} states {row['waves_stated']} or more"
        )
    if kernel.rung in ("block", "gang"):
        # dispatch.h gives gang rows of up to half the blocks that its shapes name for the device.
        blocks, named = blocks_per_unit(kernel)[0], kernel.parameters[-1]
        if 2 * blocks < named:
            yield f"{who}: a unit holds {blocks} blocks; expected half of {named} or more"
    if kernel.rung == "gang":
        texts = [instruction.text for instruction in kernel.instructions]
        polls = [text for text in texts if disassembly.width(text, "load") == 8]
        seeing = [text for text in polls if re.search(arch.poll, text)]
        # One in the wait, one that opens it, one in the test aid that is late on purpose.
        if len(seeing) < 3:
            yield f"{who}: {len(seeing)} polls match {arch.poll!r} of {polls}; expected 3 or more"


# ------------------------------------------------------------------------------- the command


def chosen_archs(toolchain, asked):
    """The archs asked for, or all that the compiler knows; says which it does not."""
    for arch in asked or []:
        if arch not in ARCHS:
            raise InputError(f"unknown arch {arch!r}{schema.choices(arch, list(ARCHS))}")
    known = [arch for arch in asked or ARCHS if toolchain.knows(arch)]
    missing = [arch for arch in asked or ARCHS if arch not in known]
    if asked and missing:
        raise InputError(f"this hipcc ({toolchain.version}) knows no {', '.join(missing)}")
    if missing:
        print(
            f"this hipcc ({toolchain.version}) knows no {', '.join(missing)}: left out",
            file=sys.stderr,
        )
    return known


def add_compiler(parser):
    """The options that say which compiler."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--hipcc", help="the compiler; default: this machine's")
    where.add_argument(
        "--root",
        default=os.environ.get("ROCM7_ROOT"),
        help="a folder made by scripts/rocm7-rootfs; default: ROCM7_ROOT, where it is set",
    )


def compiler(options):
    return Toolchain(options.hipcc, None if options.hipcc else options.root)


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m experiment.codeobjects", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--arch", nargs="+", help=f"of {', '.join(ARCHS)}; default: all")
    add_compiler(parser)
    parser.add_argument(
        "--gate", action="store_true", help="fail if a kernel breaks a rule, and not only say so"
    )
    parser.add_argument("--out", required=True, help="the CSV to write")
    options = parser.parse_args(arguments)
    toolchain = compiler(options)
    archs = chosen_archs(toolchain, options.arch)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        by_arch = pool.map(lambda arch: kernels(toolchain, arch), archs)
        found = [kernel for kernels_ in by_arch for kernel in kernels_]
    found.sort(key=lambda kernel: (archs.index(kernel.arch), kernel.name, kernel.dtype))
    rows = tables.frame([kernel.row() for kernel in found], "codeobjects")
    tables.write(rows, options.out, "codeobjects")
    broken = list(violations(found))
    if options.gate and broken:
        raise CheckFailed("\n".join(broken))
    for sentence in broken:
        print(sentence, file=sys.stderr)


if __name__ == "__main__":
    command(main)
