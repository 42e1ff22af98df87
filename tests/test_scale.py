import pytest

from experiment import InputError, scale


def test_the_longest_first_and_nobody_waits():
    assert scale.makespan([7, 5, 4, 4], 1) == 20
    assert scale.makespan([7, 5, 4, 4], 2) == 11  # 7 + 4 and 5 + 4
    assert scale.makespan([7, 5, 4, 4], 9) == 7


def test_starting_a_job_costs_each_and_the_rest_is_paid_once():
    assert scale.total([10, 10], 1, start=3, serial=5) == 5 + 2 * 13
    assert scale.total([10, 10], 2, start=3, serial=5) == 5 + 13


def test_scaling_stops_where_the_longest_job_and_the_serial_part_are_all_that_is_left():
    jobs = [60, *[10] * 12]
    assert scale.saturation(jobs, start=0, serial=0) == 3
    assert scale.saturation(jobs, start=0, serial=1000) == 2


def test_what_is_no_number_is_named(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("soon\n")
    with pytest.raises(InputError, match="'soon'; expected seconds"):
        scale.read([path])


def test_the_command_says_how_many_are_enough(tmp_path, capsys):
    for job, seconds in enumerate([30, 10, 10, 10]):
        (tmp_path / f"{job}.txt").write_text(f"{seconds}\n")
    scale.main(["--seconds", *map(str, tmp_path.iterdir())])
    said = capsys.readouterr().out
    assert "   1       60  1.0" in said
    assert "2 GPUs are enough for 4 jobs; the longest takes 30 s" in said
