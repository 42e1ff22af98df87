import pytest

from experiment import InputError, scale


@pytest.fixture
def results(tmp_path):
    """The results folder of a run whose jobs took 30, 10, 10 and 10 seconds."""
    folder = tmp_path / "parts/seconds/verify"
    folder.mkdir(parents=True)
    for name, seconds in (("../a", 30), ("../b", 10), ("a", 10), ("b", 10)):
        (folder / f"{name}.txt").write_text(f"{seconds}\n")
    return tmp_path


def test_the_longest_first_and_nobody_waits():
    assert scale.makespan([7, 5, 4, 4], 1) == 20
    assert scale.makespan([7, 5, 4, 4], 2) == 11  # 7 + 4 and 5 + 4
    assert scale.makespan([7, 5, 4, 4], 9) == 7


def test_scaling_stops_at_the_longest_job():
    assert scale.enough([60, *[10] * 12]) == 3
    assert scale.enough([10] * 4) == 4
    assert scale.enough([10]) == 1


def test_verification_is_among_the_jobs(results):
    assert sorted(scale.read(results)) == [10, 10, 10, 30]


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
        "   1       80  1.0",
        "   2       45  1.8",
        "   3       35  2.3",
        "3 GPUs are enough for 4 jobs; the longest takes 35 s",
    ]
