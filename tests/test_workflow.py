"""The workflow on a scratch copy, with commands that write files and compute nothing.

So each test sees what Snakemake schedules, not what the experiment measures, within seconds.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

pytest.importorskip("snakemake", reason="snakemake is not installed")

ROOT = Path(__file__).parents[1]
RECORDS = ("published", "amd-gpus", "codeobjects")
COPIED = [
    "Snakefile",
    "workflow",
    "profiles",
    "paper",
    *(f"reference/{name}.csv" for name in RECORDS),
]
REAL = ["__init__", "config", "schema", "tables"]  # the modules that the Snakefile itself uses
STUB = """
import pathlib, sys, time
options = dict(zip(sys.argv, sys.argv[1:]))
out = pathlib.Path(options.get("--out", ""))
name = pathlib.Path(sys.argv[0]).stem
svg = '<svg xmlns="http://www.w3.org/2000/svg"/>'
if name == "figures":
    files = [out / f"{figure}.{kind}" for figure in ("bandwidth", "speedup", "traffic")
             for kind in ("pdf", "png", "svg")]
elif name == "tex":
    tables = "environment units shapes bounds errors claims published artifact".split()
    files = [out / "values.tex", *(out / f"tables/{table}.tex" for table in tables)]
elif name == "amd":
    out = pathlib.Path(options["--tex"])
    names = ("amd", "tables/codeobjects", "tables/predicted", "tables/implied")
    files = [*(out / f"{table}.tex" for table in names),
             *(out / f"occupancy.{kind}" for kind in ("pdf", "png", "svg"))]
else:
    files = [out, *([pathlib.Path(options["--samples"])] if "--samples" in options else [])]
for file in files:
    file.parent.mkdir(parents=True, exist_ok=True)
    if pathlib.Path("hang").exists() and "parts/benchmark" in str(file):
        file.write_text("half")
        time.sleep(60)
    inputs = [value for key, value in options.items() if key in ("--entry", "--sampling")]
    file.write_text(svg if file.suffix == ".svg" else "a\\n" + "".join(inputs) + "\\n")
"""
CONFIG = {
    "device": "cpu",
    "groups": {
        "typical": {
            "reason": "Shapes for a test.",
            "runs_on": "cpu",
            "dtypes": ["float32"],
            "shapes": [[4, 8], [16, 32]],
        },
        "long_rows": {
            "reason": "Another group.",
            "runs_on": "cpu",
            "dtypes": ["float32"],
            "shapes": [[2, 1024]],
        },
    },
}
AFTER_A_PART = {
    "verify_all", "benchmark_all", "test_claims", "draw_figures", "write_summary", "write_tex",
    "typeset_paper", "render_report", "all",
}  # fmt: skip


def scratch(folder):
    """A copy of the workflow in `folder`, its commands replaced by stubs."""
    for name in COPIED:
        source, target = ROOT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
    package = folder / "src/experiment"
    package.mkdir(parents=True)
    for module in (ROOT / "src/experiment").glob("*.py"):
        text = module.read_text() if module.stem in REAL else STUB
        (package / module.name).write_text(text)
    operator = folder / "src/online_softmax"
    (operator / "csrc").mkdir(parents=True)
    for name in ("__init__.py", "library.py", "ops.py", "csrc/softmax.hip", "../../setup.py"):
        (operator / name).write_text("")
    (folder / "bin").mkdir()
    for name, text in (("latexmk", "echo pdf > paper.pdf"), ("pdflatex", "")):
        (folder / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / "bin" / name).chmod(0o755)
    write_config(folder, CONFIG)
    write_config(folder, CONFIG | {"results": "results/smoke"}, "smoke")
    return folder


def write_config(folder, config, name="experiment"):
    (folder / "config").mkdir(exist_ok=True)
    (folder / f"config/{name}.yaml").write_text(yaml.safe_dump(config))


def edited(**changes):
    """The configuration with keys of the group `typical` changed."""
    return CONFIG | {
        "groups": CONFIG["groups"] | {"typical": CONFIG["groups"]["typical"] | changes}
    }


def command(*arguments):
    return [sys.executable, "-m", "snakemake", *arguments]


def environment(folder, tex=True):
    """Only the tools a test means to have: the system's TeX must not decide what is scheduled."""
    tools = folder / "tools"
    tools.mkdir(exist_ok=True)
    for name in ("bash", "sh", "mv", "tee", "env", "rm", "mkdir", "cat", "ls", "git", "which"):
        if (found := shutil.which(name)) and not (tools / name).exists():
            (tools / name).symlink_to(found)
    path = [str(tools), *([str(folder / "bin")] if tex else [])]
    return os.environ | {"PATH": os.pathsep.join(path), "HOME": str(folder)}


def snakemake(folder, *arguments, tex=True):
    """Runs Snakemake in `folder`; returns the finished process, its output in one text."""
    return subprocess.run(
        command(*arguments),
        cwd=folder,
        env=environment(folder, tex),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )


def scheduled(folder, *arguments, **options):
    """What a dry run would do: {rule: [entry or None]}."""
    done = snakemake(folder, "--dry-run", *arguments, "--quiet", "host", **options)
    assert done.returncode == 0, done.stdout
    jobs = {}
    for job in re.split(r"^(?:local)?rule (?=\w+:)", done.stdout, flags=re.MULTILINE)[1:]:
        entry = re.search(r"wildcards: .*entry=(\S+)", job)
        jobs.setdefault(job.partition(":")[0], []).append(entry and entry[1])
    return jobs


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A scratch copy after a whole run."""
    folder = scratch(tmp_path_factory.mktemp("workflow"))
    done = snakemake(folder)
    assert done.returncode == 0, done.stdout
    return folder


@pytest.fixture
def copy(finished, tmp_path):
    """A copy of the finished run that a test may change."""
    return Path(shutil.copytree(finished, tmp_path / "copy", symlinks=True))


def test_a_run_makes_everything_and_then_there_is_nothing_to_do(finished):
    made = {path.name for path in (finished / "results/cpu").iterdir()}
    assert made >= {
        "environment.json", "verify.csv", "benchmark.csv", "samples.csv", "claims.csv", "figures",
        "paper.pdf", "report.html", "summary.md",
    }  # fmt: skip
    report = (finished / "results/cpu/report.html").read_text()
    assert "bandwidth.svg" in report
    assert "http" not in re.sub(r"(?s)<script.*?</script>", "", report)[:200]
    again = snakemake(finished)
    assert "Nothing to be done" in again.stdout, again.stdout


def test_editing_one_shape_schedules_its_part_and_what_follows(copy):
    write_config(copy, edited(shapes=[[4, 8], [16, 64]]))
    jobs = scheduled(copy)
    assert jobs.pop("verify_shape") == ["typical-16x64"]
    assert jobs.pop("benchmark_shape") == ["typical-16x64"]
    assert set(jobs) == AFTER_A_PART


def test_editing_a_group_schedules_that_group_alone(copy):
    write_config(copy, edited(dtypes=["float16"]))
    jobs = scheduled(copy)
    assert set(jobs["benchmark_shape"]) == {"typical-4x8", "typical-16x32"}
    assert "environment" not in jobs


def test_a_comment_or_a_reason_schedules_nothing(copy):
    write_config(copy, edited(reason="The same shapes, for a better reason."))
    with (copy / "config/experiment.yaml").open("a") as file:
        file.write("# a comment\n")
    assert scheduled(copy) == {}


def test_sampling_schedules_timing_and_no_verification(copy):
    write_config(copy, CONFIG | {"sampling": {"rounds": 5}})
    jobs = scheduled(copy)
    assert len(jobs["benchmark_shape"]) == 3
    assert "verify_shape" not in jobs


def test_a_changed_kernel_schedules_the_build(copy):
    (copy / "src/online_softmax/csrc/softmax.hip").write_text("// another text\n")
    jobs = scheduled(copy)
    assert jobs.keys() >= {"build", "environment", "verify_shape", "benchmark_shape"}


def test_a_changed_figure_schedules_no_timing(copy):
    with (copy / "src/experiment/figures.py").open("a") as file:
        file.write("# a comment\n")
    drawn = {"draw_figures", "write_amd"}
    assert set(scheduled(copy)) == {*drawn, "typeset_paper", "render_report", "all"}


def test_a_compiler_for_amd_is_asked_for_the_paper_and_not_by_smoke(copy):
    (copy / "bin/hipcc").write_text("#!/bin/sh\n")
    (copy / "bin/hipcc").chmod(0o755)
    assert "codeobjects" in scheduled(copy)
    smoke = scheduled(copy, "--configfile", "config/smoke.yaml")
    assert "write_amd" in smoke and "codeobjects" not in smoke


def test_smoke_and_real_results_do_not_touch(copy):
    before = {path: path.stat().st_mtime_ns for path in (copy / "results").rglob("*")}
    done = snakemake(copy, "--configfile", "config/smoke.yaml")
    assert done.returncode == 0, done.stdout
    assert (copy / "results/smoke/cpu/summary.md").exists()
    files = {path: time for path, time in before.items() if path.is_file()}
    assert {path: path.stat().st_mtime_ns for path in files} == files
    assert scheduled(copy) == {}


@pytest.mark.parametrize(
    "target, last",
    [
        ("verify", "verify_all"),
        ("benchmark", "benchmark_all"),
        ("claims", "test_claims"),
        ("figures", "draw_figures"),
        ("paper", "typeset_paper"),
        ("report", "render_report"),
    ],
)
def test_targets_end_where_their_name_says(tmp_path, target, last):
    jobs = scheduled(scratch(tmp_path), target)
    order = [
        "verify_all", "benchmark_all", "test_claims", "draw_figures", "write_tex",
        "typeset_paper", "render_report",
    ]  # fmt: skip
    assert last in jobs
    later = order[order.index(last) + 1 :]
    assert not [name for name in later if name in jobs]


def test_without_tex_the_paper_is_left_out_and_named_once(tmp_path):
    folder = scratch(tmp_path)
    done = snakemake(folder, tex=False)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("paper.pdf is left out") == 1
    assert "texlive-latex-extra" in done.stdout
    assert (folder / "results/cpu/report.html").exists()
    assert not (folder / "results/cpu/paper.pdf").exists()


def test_a_bad_configuration_is_refused_in_plain_words(tmp_path):
    folder = scratch(tmp_path)
    write_config(folder, edited(dtypes=["float31"]))
    done = snakemake(folder, "--dry-run")
    assert done.returncode != 0
    assert "groups.typical.dtypes[0]" in done.stdout
    assert "float32" in done.stdout
    assert "Traceback" not in done.stdout


def test_what_a_failed_step_says_reaches_the_user(tmp_path):
    folder = scratch(tmp_path)
    (folder / "src/experiment/claims.py").write_text("raise SystemExit('no copy was timed')")
    done = snakemake(folder, "claims")
    assert done.returncode != 0
    assert "results/cpu/logs/claims.log ends with:\n  no copy was timed" in done.stdout


def test_a_killed_run_resumes_and_trusts_no_half_written_file(tmp_path):
    folder = scratch(tmp_path)
    (folder / "hang").touch()
    run = subprocess.Popen(
        command("benchmark"),
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    parts = folder / "results/cpu/parts/benchmark"
    deadline = time.monotonic() + 60
    while not list(parts.glob("*.csv")) and time.monotonic() < deadline:
        time.sleep(0.1)
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    (half,) = parts.glob("*.csv")
    assert half.read_text() == "half"

    (folder / "hang").unlink()
    assert snakemake(folder, "--unlock").returncode == 0
    verified = {path: path.stat().st_mtime_ns for path in half.parents[1].glob("verify/*.csv")}
    done = snakemake(folder, "benchmark")
    assert done.returncode == 0, done.stdout
    assert half.read_text() != "half"
    assert {path: path.stat().st_mtime_ns for path in verified} == verified


SEVERAL = {
    "cuda-a": {"gpu_model": "a100", "container": "docker://softmax:cuda"},
    "rocm-gfx942-304cu": {"gpu_model": "mi300x", "container": "docker://softmax:rocm"},
    "cpu": {},
}


def jobs_of(folder, device):
    """The text of each job that a dry run would do for a device: {rule: text}."""
    done = snakemake(folder, "--dry-run", "--printshellcmds", "--quiet", "host")
    assert done.returncode == 0, done.stdout
    found = re.split(r"^(?:local)?rule (?=\w+:)", done.stdout, flags=re.MULTILINE)[1:]
    return {job.partition(":")[0]: job for job in found if f"device={device}" in job}


def resources(job):
    return set(re.search("resources: (.*)", job)[1].split(", "))


def several(folder):
    """A scratch copy whose configuration names several devices and groups for each kind."""
    scratch(folder)
    groups = {
        kind: CONFIG["groups"]["typical"] | {"runs_on": kind, "reason": "Shapes for a test."}
        for kind in ("cpu", "gpu")
    }
    write_config(folder, {"groups": groups, "devices": SEVERAL})
    return folder


def test_each_device_asks_for_its_own_gpu_and_stands_on_its_own_build(tmp_path):
    folder = several(tmp_path)
    for device, model in (("cuda-a", "a100"), ("rocm-gfx942-304cu", "mi300x")):
        jobs = jobs_of(folder, device)
        assert f"results/{device}/build.json" in jobs["build_in_image"]
        for rule in ("environment", "verify_shape", "verify_cases", "benchmark_shape"):
            assert {"gpu=1", f"gpu_model={model}"} <= resources(jobs[rule])
            assert f"results/{device}/build.json" in jobs[rule]
            assert f"PYTHONPATH=build/{device}:src python" in jobs[rule]


def test_a_cpu_asks_for_no_gpu_and_takes_the_build_in_place(tmp_path):
    jobs = jobs_of(several(tmp_path), "cpu")
    assert "build_in_image" not in jobs
    for rule in ("environment", "verify_shape", "verify_cases", "benchmark_shape"):
        assert "gpu=0" in resources(jobs[rule]) and "gpu_model" not in jobs[rule]
        assert "results/build.json" in jobs[rule]
        assert "PYTHONPATH=src python" in jobs[rule]


def test_several_devices_meet_in_one_paper(tmp_path):
    jobs = scheduled(several(tmp_path))
    assert jobs["compare_devices"] == [None] and jobs["typeset_comparison"] == [None]
    assert len(jobs["benchmark_shape"]) == 2 * len(SEVERAL)
