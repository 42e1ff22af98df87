import re
from pathlib import Path

import pytest

from experiment import InputError, scale

DOCUMENT = (Path(__file__).parents[1] / "docs/scale.md").read_text()


@pytest.fixture
def results(tmp_path):
    """The results folder of a run of three shapes, each verified in 10 s and one timed in 30 s."""
    return recorded(tmp_path, {"a": (10, 30), "b": (10, 10), "c": (10, 10)})


def recorded(folder, shapes):
    """A results folder with the seconds that each shape's verification and timing took."""
    for name, seconds in shapes.items():
        for kind, number in zip(("verify", "."), seconds, strict=False):
            path = folder / "parts/seconds" / kind / f"{name}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{number}\n")
    return folder


def test_the_longest_first_and_nobody_waits():
    assert scale.makespan([7, 5, 4, 4], 1) == 20
    assert scale.makespan([7, 5, 4, 4], 2) == 11  # 7 + 4 and 5 + 4
    assert scale.makespan([7, 5, 4, 4], 9) == 7


def test_scaling_stops_at_the_longest_shape():
    assert scale.enough([60, *[10] * 12]) == 3
    assert scale.enough([10] * 4) == 4
    assert scale.enough([10]) == 1


def test_a_shape_is_verified_and_timed(results):
    assert {name: sorted(jobs) for name, jobs in scale.read(results).items()} == {
        "a": [10, 30], "b": [10, 10], "c": [10, 10]
    }  # fmt: skip


def test_what_is_no_number_is_named(results):
    (results / "parts/seconds/c.txt").write_text("soon\n")
    with pytest.raises(InputError, match="'soon'; expected seconds"):
        scale.read(results)


def test_a_folder_without_jobs_is_refused(tmp_path):
    with pytest.raises(InputError, match="parts/seconds: no job's seconds"):
        scale.read(tmp_path)


def test_the_command_says_how_many_are_enough_and_what_starting_costs(results, capsys):
    scale.main([str(results), "--start", "5"])
    assert capsys.readouterr().out.splitlines() == [
        "GPUs  seconds  times as fast",
        "   1      110  1.0",
        "   2       60  1.8",
        "   3       50  2.2",
        "3 GPUs are enough; the longest shape takes 50 s",
    ]


def test_the_document_says_what_the_model_says_of_its_run(tmp_path, capsys):
    rows = re.findall(r"^\| (\S+) \| (\d+) \| (\d*) ?\|$", DOCUMENT, re.MULTILINE)
    assert rows
    results = recorded(tmp_path, {name: filter(None, seconds) for name, *seconds in rows})
    start = re.search(r"experiment\.scale results/cpu (.*)", DOCUMENT)[1].split()
    scale.main([str(results), *start])
    assert f"```\n{capsys.readouterr().out}```" in DOCUMENT
