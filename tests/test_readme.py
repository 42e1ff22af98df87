"""README says what the files say."""

import re
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
REFERENCE = ROOT / "reference/cuda-nvidia-h200"
UNIT_US = {"µs": 1, "ms": 1000}


def answers():
    """The rows of README's table: rows, cols, and the cells of times."""
    for line in README.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        shape = re.fullmatch(r"(\d+) × (\d+)", cells[0])
        if shape:
            yield int(shape[1]), int(shape[2]), cells[1:]


@pytest.fixture(scope="module")
def medians():
    table = pd.read_csv(REFERENCE / "benchmark.csv")
    table = table.query(
        "cache == 'cold' and output == 'preallocated' and measure == 'device'"
        " and dtype == 'float32'"
    )
    return table.set_index(["provider", "rows", "cols"]).time_us_median


def test_the_table_is_that_of_the_reference(medians):
    rows = list(answers())
    assert len(rows) == 5
    for n, cols, (naive, online, auto, torch, copy, ratio) in rows:
        times = {"naive": naive, "online": online, "auto": auto, "torch": torch, "copy": copy}
        for provider, said in times.items():
            number, unit = re.match(r"([\d.]+) (µs|ms)", said).groups()
            measured = medians[provider, n, cols] / UNIT_US[unit]
            assert f"{measured:.{len(number.partition('.')[2])}f}" == number, (provider, n, cols)
        assert f"{medians['torch', n, cols] / medians['auto', n, cols]:.2f}" == ratio


def test_files_it_names_exist():
    for target in re.findall(r"\]\(([^)]+)\)", README):
        if target.startswith("#"):
            headings = re.findall(r"^#+ (.+)$", README, re.MULTILINE)
            assert target[1:] in [heading.lower().replace(" ", "-") for heading in headings]
        elif "://" not in target:
            assert (ROOT / target).exists(), target
