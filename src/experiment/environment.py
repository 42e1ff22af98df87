"""What a run ran on: the device and its name, and every fact that a figure may depend on.

    python -m experiment.environment --config config/experiment.yaml --out environment.json

environment.json:
    run_id        UTC time and six random hex digits, e.g. 20261130T221500-3fa9c1
    date, seed    ISO 8601, UTC; the configuration's
    device        cpu, cuda-<name> or rocm-<arch>-<units>cu: the folder of the results
    device_facts  kind (cpu, gpu), name, arch, units (cores, SMs or CUs), memory_bytes, llc_bytes,
                  peak_gb_per_s
    driver, rocm, cuda, torch, python
    operator      backend; compiler and flags of the kernels that this device runs
    cpu           name, arch, cores, threads (that torch uses)
    os, container_image
    git           commit, dirty
    packages      name: version
A fact that cannot be found is null.
"""

import argparse
import importlib.metadata
import os
import platform
import re
import secrets
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import torch

import online_softmax
from experiment import InputError, command, config, tables

ROOT = Path(__file__).parents[2]
SYS_CPU = Path("/sys/devices/system/cpu")
SYS_KFD = Path("/sys/class/kfd/kfd/topology/nodes")


def device_name(asked="auto"):
    """The name of the device that `asked` means: "auto" is this machine's, a name is itself.

    auto takes the GPU that torch sees, if the operator was built for it, and else the CPU.
    """
    if asked != "auto":
        return asked
    gpu = torch.cuda.is_available() and online_softmax.build_info()["backend"] != "cpu"
    return gpu_name(torch.cuda.get_device_properties(0)) if gpu else "cpu"


def open_device(asked):
    """Returns (name, torch.device) of a device; raises InputError if this machine is another."""
    name = device_name(asked)
    if name == "cpu":
        return name, torch.device("cpu")
    here = gpu_name(torch.cuda.get_device_properties(0)) if torch.cuda.is_available() else "cpu"
    if name != here:
        raise InputError(f"device {name!r} was asked for, and this machine is {here!r}")
    return name, torch.device("cuda", 0)


def gpu_name(properties):
    """cuda-<name> or rocm-<arch>-<units>cu from torch's device properties."""
    if torch.version.hip:
        arch = properties.gcnArchName.partition(":")[0]
        return f"rocm-{arch}-{properties.multi_processor_count}cu"
    return "cuda-" + re.sub(r"[^a-z0-9]+", "-", properties.name.lower()).strip("-")


def collect(name, device, seed):
    """The contents of environment.json as a dict."""
    now = datetime.now(UTC).replace(microsecond=0)
    built = online_softmax.build_info()
    part = "host" if device.type == "cpu" else "gpu"
    return {
        "run_id": f"{now:%Y%m%dT%H%M%S}-{secrets.token_hex(3)}",
        "date": now.isoformat(),
        "seed": seed,
        "device": name,
        "device_facts": cpu_facts() if device.type == "cpu" else gpu_facts(device),
        "driver": driver(),
        "rocm": torch.version.hip,
        "cuda": torch.version.cuda,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "operator": {
            "backend": built["backend"],
            "compiler": built[f"{part}_compiler"],
            "flags": built[f"{part}_flags"],
        },
        "cpu": {
            "name": cpu_model(),
            "arch": platform.machine(),
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
        },
        "os": os_name(),
        "container_image": os.environ.get("ONLINE_SOFTMAX_IMAGE") or None,
        "git": git(),
        "packages": packages(),
    }


def cpu_facts():
    """Facts of the processor, as a device."""
    return {
        "kind": "cpu",
        "name": cpu_model(),
        "arch": platform.machine(),
        "units": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "llc_bytes": cpu_llc_bytes(SYS_CPU),
        "peak_gb_per_s": None,
    }


def gpu_facts(device):
    """Facts of a GPU, from torch and, for AMD's last-level cache, the kernel's topology."""
    properties = torch.cuda.get_device_properties(device)
    arch = f"sm_{properties.major}{properties.minor}"
    if torch.version.hip:
        arch = properties.gcnArchName.partition(":")[0]
    return {
        "kind": "gpu",
        "name": properties.name,
        "arch": arch,
        "units": properties.multi_processor_count,
        "memory_bytes": properties.total_memory,
        "llc_bytes": kfd_llc_bytes(SYS_KFD) if torch.version.hip else properties.L2_cache_size,
        "peak_gb_per_s": peak_gb_per_s(properties, arch),
    }


def peak_gb_per_s(properties, arch):
    """Memory clock (kHz) times bus width (bits), two transfers a clock; None if unknown.

    The GDDR of AMD's consumer cards moves more than two a clock, so only gfx9 (HBM) is reckoned.
    """
    clock = getattr(properties, "memory_clock_rate", None)
    width = getattr(properties, "memory_bus_width", None)
    if not clock or not width or (arch.startswith("gfx") and not arch.startswith("gfx9")):
        return None
    return round(2 * clock * 1e3 * width / 8 / 1e9, 1)


def cpu_llc_bytes(folder):
    """The bytes of all last-level caches of the machine together; None where sysfs has none."""
    caches = {}
    for index in folder.glob("cpu[0-9]*/cache/index[0-9]*"):
        try:
            level = int((index / "level").read_text())
            shared = (index / "shared_cpu_list").read_text().strip()
            caches[level, shared] = int((index / "size").read_text().strip().rstrip("K")) * 1024
        except (OSError, ValueError):
            continue
    last = max((level for level, _ in caches), default=0)
    return sum(size for (level, _), size in caches.items() if level == last) or None


def kfd_llc_bytes(folder):
    """The bytes of the largest cache of the first AMD GPU in the kernel's topology, or None."""
    for node in sorted(folder.glob("[0-9]*"), key=lambda path: int(path.name)):
        try:
            if kfd_properties(node / "properties").get("simd_count", 0) == 0:
                continue  # a CPU
            sizes = [
                kfd_properties(cache).get("size", 0) * 1024
                for cache in node.glob("caches/*/properties")
            ]
        except OSError:
            continue
        return max(sizes, default=0) or None
    return None


def kfd_properties(path):
    """A topology file, lines of a name and a whole number, as a dict."""
    pairs = (line.split() for line in path.read_text().splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def cpu_model():
    """The processor's name, or its architecture where the system does not tell."""
    try:
        found = re.search(
            r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE
        )
    except OSError:
        found = None
    return found[1].strip() if found else platform.machine()


def os_name():
    """The operating system's name for people."""
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.platform()


def driver():
    """The version of the GPU driver, or None."""
    try:
        return Path("/sys/module/amdgpu/version").read_text().strip()
    except OSError:
        return output("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", "--id=0")


def git():
    """Commit and whether the working tree differs from it.

    Outside a repository (in an image, on a machine that was sent the sources) the commit is what
    ONLINE_SOFTMAX_COMMIT says (None: nothing), and `dirty` is None.
    """
    commit = output("git", "-C", str(ROOT), "rev-parse", "HEAD")
    if commit is None:
        return {"commit": os.environ.get("ONLINE_SOFTMAX_COMMIT") or None, "dirty": None}
    return {
        "commit": commit,
        "dirty": bool(output("git", "-C", str(ROOT), "status", "--porcelain")),
    }


def output(*arguments):
    """What a program prints, stripped; None if it is absent or fails."""
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def packages():
    """Versions of all packages that this Python imports, by name; the first on its path counts."""
    found = {}
    for package in importlib.metadata.distributions():
        if package.name:  # a folder that an installer left half removed has none
            found.setdefault(package.name.lower(), package.version)
    return dict(sorted(found.items()))


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m experiment.environment", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--config", help="take device and seed from this file")
    parser.add_argument("--device", help="auto, or the name of this machine's device")
    parser.add_argument("--seed", type=int, help="seed of the run, to be recorded")
    parser.add_argument("--out", required=True, help="the JSON file to write")
    options = parser.parse_args(arguments)
    declared = config.load(options.config) if options.config else {"device": "auto", "seed": None}
    seed = declared["seed"] if options.seed is None else options.seed
    if seed is None:
        parser.error("the seed is missing: give --config or --seed")
    name, device = open_device(options.device or declared["device"])
    tables.write_json(options.out, collect(name, device, seed))


if __name__ == "__main__":
    command(main)
