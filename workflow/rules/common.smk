"""What the rules share: the checked configuration, the device, and where files lie."""

import json
import os
import shlex
import shutil
import sys
from glob import glob
from pathlib import Path
from subprocess import PIPE, run
from time import time

# `python` in a rule is the interpreter that runs Snakemake, and it finds the sources.
os.environ.update(
    PATH=os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")]),
    PYTHONPATH="src",
)
sys.path.insert(0, "src")
# torch chooses its threads itself, as it does wherever else it runs.
shell.prefix("unset OMP_NUM_THREADS MKL_NUM_THREADS; ")

from experiment import InputError  # noqa: E402
from experiment import config as declared  # noqa: E402


def checked(config):
    """The configuration with its defaults; a bad one ends the run with its problems alone."""
    try:
        return declared.check(config)
    except InputError as error:
        sys.exit(str(error))


def this_device():
    """The device that `auto` means here: the operator decides, so it is built if it is missing."""
    ask = "from experiment.environment import device_name; print(device_name())"
    if not glob("src/online_softmax/_C*.so"):
        print(
            "building the operator, which decides what device: auto means",
            file=sys.stderr,
        )
        run(
            [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"],
            check=True,
        )
    return run(
        [sys.executable, "-c", ask], check=True, text=True, stdout=PIPE
    ).stdout.strip()


config = checked(config)
ROOT = config["results"]
DEVICES = list(config["devices"]) or [
    this_device() if config["device"] == "auto" else config["device"]
]
FIGURES = ["bandwidth", "speedup", "traffic"]
TABLES = [
    "environment",
    "units",
    "shapes",
    "bounds",
    "errors",
    "claims",
    "published",
    "artifact",
]
OPERATOR = [f"src/online_softmax/{name}.py" for name in ("__init__", "library", "ops")]
CSRC = [
    path
    for path in glob("src/online_softmax/csrc/**", recursive=True)
    if Path(path).is_file()
]
# Where a compiler for AMD is at hand, the paper tells what it makes of these sources; else, and in
# the one-minute version, whose results lie elsewhere, what the one of the record made.
HIPCC = os.environ.get("ROCM7_ROOT") or shutil.which("hipcc")
CODEOBJECTS = (
    f"{ROOT}/codeobjects.csv"
    if HIPCC and ROOT == "results"
    else "reference/codeobjects.csv"
)
AMD_TABLES = ["codeobjects", "predicted", "implied"]
PAPER = ["paper.pdf"] if shutil.which("latexmk") and shutil.which("pdflatex") else []

# One paper of all devices, where there are several.
COMPARED = ["tables/devices", "tables/fractions", "tables/verdicts"]
TOGETHER = [
    f"{ROOT}/all/{name}" for name in PAPER if len(DEVICES) + len(config["beside"]) > 1
]

if not PAPER:
    print(
        "paper.pdf is left out: it needs latexmk and pdflatex (on Debian and Ubuntu the packages"
        " latexmk, texlive-latex-recommended, texlive-latex-extra, texlive-fonts-recommended).",
        file=sys.stderr,
    )


def result(name):
    """A file in the results folder of a device, the wildcard `device`."""
    return f"{ROOT}/{{device}}/{name}"


def here(*names):
    """These files in the results folder of each device that is measured."""
    return expand(result("{name}"), name=names, device=DEVICES)


def asks(key):
    """What the configuration says of a job's device; None asks for nothing."""
    return lambda wildcards: config["devices"].get(wildcards.device, {}).get(key)


def gpus(wildcards):
    """The GPUs that a job has for itself: one, and none on a CPU, unless the configuration says."""
    said = asks("gpu")(wildcards)
    return int(wildcards.device != "cpu") if said is None else said


image = asks("container")

# What a job on a device asks for, and on a cluster what sends it to the right node. A key that no
# device has is left to the profile.
PLACE = {"gpu": gpus} | {
    key: asks(key)
    for key in ("gpu_model", "slurm_partition", "constraint")
    if any(key in place for place in config["devices"].values())
}


onstart:
    if (
        workflow.non_local_exec
        and config["device"] == "auto"
        and not config["devices"]
    ):
        raise WorkflowError(
            "device: auto means this machine, and the jobs run on others; name their device,"
            " as in --config device=cuda-nvidia-h200 (docs/cluster.md)"
        )


def built(wildcards):
    """The record of the build that serves a device: its image's own, else the one in place."""
    return result("build.json") if image(wildcards) else f"{ROOT}/build.json"


def path(wildcards):
    """Where python finds the operator, as built for the device, and the experiment."""
    return f"build/{wildcards.device}:src" if image(wildcards) else "src"


def code(*modules):
    """The sources of these modules: a shell rule tracks only its own text."""
    return [f"src/experiment/{name}.py" for name in modules]


def schema(*names):
    """The schemas that these CSVs are written by."""
    return [f"workflow/schemas/{name}.schema.yaml" for name in names]


def entries(device):
    """The declared shapes of a device: id -> entry."""
    found = declared.entries(config, device)
    return {declared.entry_id(entry): entry for entry in found}


def entry_json(wildcards):
    """One declared shape, as a rule's parameter: editing it reruns its own part alone."""
    return json.dumps(entries(wildcards.device)[wildcards.entry], sort_keys=True)


def parts(kind, suffix="csv"):
    """An input function: this kind of part for every declared shape of the device."""
    path = result(f"parts/{kind}/{{entry}}.{suffix}")
    return lambda wildcards: expand(
        path, device=wildcards.device, entry=entries(wildcards.device)
    )


def same_configuration():
    """Options that give a second Snakemake the configuration of this one."""
    files = [os.path.relpath(path) for path in workflow.configfiles]
    values = [
        f"{key}={json.dumps(value)}"
        for key, value in workflow.config_settings.config.items()
    ]
    return shlex.join(
        ["--configfile", *files, *(["--config", *values] if values else [])]
    )
