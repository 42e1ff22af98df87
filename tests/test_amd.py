import shutil
from pathlib import Path

import pandas as pd

from experiment import amd, predicted, tables
from online_softmax import UNITS

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "reference"


def codeobjects():
    return tables.read(REFERENCE / "codeobjects.csv", "codeobjects")


def test_a_spill_shows_in_the_row_of_its_rung():
    found = codeobjects()
    spilled = found.index[found.kernel.str.startswith("gang")][0]
    rows = {
        line.split(" & ")[0]: line.split(" & ")
        for line in amd.codeobjects_table(found.assign(
            vgpr_spills=found.vgpr_spills.where(found.index != spilled, 7)
        )).splitlines()
    }  # fmt: skip
    assert rows["gang"][7] == "7"
    assert rows["block"][7] == "0"


def test_the_table_counts_every_kernel_of_the_file():
    found = codeobjects()
    rows = [line.split(" & ") for line in amd.codeobjects_table(found).splitlines()]
    counted = [cells[1] for cells in rows if len(cells) == 10 and cells[1].isdigit()]
    assert sum(map(int, counted)) == len(found)


def test_at_the_largest_shape_the_post_s_kernels_imply_one_bandwidth():
    published = pd.read_csv(REFERENCE / "published.csv")
    macros = amd.macros(codeobjects(), published, UNITS["gpu"])
    low, high = float(macros["ImpliedLow"]), float(macros["ImpliedHigh"])
    assert low < high < 1.02 * low


def test_the_figure_is_the_same_file_each_time(tmp_path):
    predicted.main([f"--gpus={REFERENCE}/amd-gpus.csv", f"--out={tmp_path}/predicted.csv"])
    made = []
    for name in ("once", "twice"):
        amd.main([
            f"--codeobjects={REFERENCE}/codeobjects.csv", f"--predicted={tmp_path}/predicted.csv",
            f"--published={REFERENCE}/published.csv", f"--tex={tmp_path / name}",
            f"--figures={tmp_path / name}",
        ])  # fmt: skip
        made.append((tmp_path / name / "occupancy.svg").read_bytes())
        shutil.rmtree(tmp_path / name)
    assert made[0] == made[1]
