import re
import shutil
import subprocess
from pathlib import Path

import pytest
import synthetic

from experiment import InputError, claims, tables, together

PAPER = Path(__file__).parents[1] / "paper"
DEVICES = ("cpu", "cuda-test")


@pytest.fixture
def results(tmp_path):
    """The results folders of two devices."""
    for device in DEVICES:
        folder = tmp_path / device
        benchmark, samples, verify = synthetic.experiment(device, noise=0)
        tables.write(benchmark, folder / "benchmark.csv", "benchmark")
        tables.write(claims.claims(benchmark, samples, verify), folder / "claims.csv", "claims")
        tables.write_json(folder / "environment.json", synthetic.facts(device))
    return [tmp_path / device for device in DEVICES]


def test_a_device_is_measured_against_its_own_copy(results):
    table = together.fractions(together.read(results))
    rows, cols = 256, 262144
    own = table[(table.device == "cpu") & (table.rows == rows) & (table.cols == cols)].iloc[0]
    time = {
        name: synthetic.CALL_US + rows * cols * 4 * moved / synthetic.BANDWIDTH * 1e6
        for name, moved in synthetic.UNITS.items()
    }
    assert own.fraction == pytest.approx(time["copy"] / time["auto"])
    assert own.speedup == pytest.approx(time["torch"] / time["auto"])


def test_a_shape_that_a_device_lacks_is_a_dash(results):
    made = together.fractions_table(together.fractions(together.read(results)))
    only_cpu = next(line for line in made.splitlines() if "1048576" in line)
    assert only_cpu.removesuffix(r" \\").split(" & ")[3:] == ["--", "--"]


def test_a_device_twice_or_alone_is_refused(results):
    with pytest.raises(InputError, match="'cpu' is in another folder too"):
        together.read([results[0], results[0]])
    with pytest.raises(InputError, match="1 device; a comparison takes two"):
        together.read(results[:1])


@pytest.mark.skipif(not shutil.which("latexmk"), reason="latexmk is not installed")
def test_the_paper_of_all_devices_typesets_and_types_no_number(results, tmp_path):
    together.main([*map(str, results), f"--out={tmp_path}/all"])
    done = subprocess.run(
        ["latexmk", "-pdf", "-interaction=nonstopmode", "-halt-on-error", "all.tex"],
        check=False, cwd=tmp_path / "all/tex", capture_output=True, text=True, errors="replace",
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "TEXINPUTS": f"{PAPER}:"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]
    log = (tmp_path / "all/tex/all.log").read_text(errors="replace")
    wide = [float(points) for points in re.findall(r"Overfull \\hbox \(([\d.]+)pt", log)]
    assert not [points for points in wide if points > 2]
