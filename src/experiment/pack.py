"""Keep a machine's results for the record: results/<device> -> reference/<device>.

What is kept is what others need to check the figures: the CSVs, the environment, the summary and
the figures as SVG; samples are compressed. Results are refused unless every table matches its
schema, all come from one run on one device, the sources are those of a commit, none of our own
kernels failed its verification, and every claim is there.

    python -m experiment.pack --results results/rocm-gfx942-304cu --out reference
"""

import argparse
import gzip
import shutil
import tempfile
from pathlib import Path

from experiment import InputError, claims, command, tables, views
from online_softmax import UNITS

TABLES = ("benchmark", "samples", "verify", "claims")
FIGURES = ("bandwidth", "speedup", "traffic")
FACTS = (
    "run_id", "date", "seed", "device", "device_facts", "driver", "rocm", "cuda", "torch", "python",
    "operator", "cpu", "os", "container_image", "git", "packages",
)  # fmt: skip


def problems(folder):
    """What keeps the results in `folder` from being a reference, a sentence each."""
    facts = tables.read_json(folder / "environment.json")
    if absent := [name for name in FACTS if name not in facts]:
        yield f"environment.json: no {', '.join(absent)}; run snakemake to its end"
        return
    read = {name: tables.read(folder / f"{name}.csv", name) for name in TABLES}
    missing = [
        path
        for path in ("summary.md", *(f"figures/{name}.svg" for name in FIGURES))
        if not (folder / path).exists()
    ]
    if missing:
        yield f"{', '.join(missing)}: missing; run snakemake to its end"
    for name in ("benchmark", "samples"):
        for key in ("run_id", "device"):
            others = set(read[name][key]) - {facts[key]}
            if others:
                yield f"{name}.csv: {key} {min(others)!r}; environment.json says {facts[key]!r}"
    if not facts["git"]["commit"]:
        yield "environment.json: no commit; set ONLINE_SOFTMAX_COMMIT or run in a clone"
    elif facts["git"]["dirty"]:
        yield "environment.json: the sources were changed after the commit; commit them, run again"
    checks = read["verify"]
    own = checks[checks.provider.isin([*UNITS[views.kind(facts["device"])], "auto"])]
    if not own.passed.all():
        bad = own[~own.passed].iloc[0]
        yield (
            f"verify.csv: {bad.provider} failed {bad.case} at {bad.rows}x{bad.cols} {bad.dtype};"
            " a kernel that is wrong is no reference"
        )
    lost = set(claims.STATEMENTS) - set(read["claims"].id)
    if lost:
        yield f"claims.csv: no {', '.join(sorted(lost))}"


def pack(folder, out):
    """Write out/<device> anew, whole or not at all; returns its path."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; expected results/<device>")
    found = list(problems(folder))
    if found:
        raise InputError(f"{folder} is not kept:\n  " + "\n  ".join(found))
    device = tables.read_json(folder / "environment.json")["device"]
    kept = out / device
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{device}.", dir=out) as temporary:
        made = Path(temporary, "new")
        made.mkdir()
        for name in ("environment.json", "summary.md", "benchmark.csv", "verify.csv", "claims.csv"):
            shutil.copyfile(folder / name, made / name)
        for name in FIGURES:
            shutil.copyfile(folder / f"figures/{name}.svg", made / f"{name}.svg")
        # The same samples give the same bytes: no time, no name.
        packed = gzip.compress((folder / "samples.csv").read_bytes(), mtime=0)
        (made / "samples.csv.gz").write_bytes(packed)
        if kept.exists():
            kept.rename(Path(temporary, "old"))
        made.rename(kept)
    return kept


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m experiment.pack", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--results", required=True, help="the folder results/<device>")
    parser.add_argument("--out", default="reference", help="where <device> is written")
    options = parser.parse_args(arguments)
    kept = pack(Path(options.results), Path(options.out))
    print(f"kept in {kept}: commit it, or send it as a pull request")


if __name__ == "__main__":
    command(main)
