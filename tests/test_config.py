"""What the configuration accepts, what it says about the rest, and how it is cut into entries."""

import json
from pathlib import Path

import pytest

from experiment import CheckFailed, command, config

CONFIGS = Path(__file__).parents[1] / "config"
GROUP = {
    "reason": "A sentence about why.",
    "runs_on": "cpu",
    "dtypes": ["float32"],
    "shapes": [[4, 8], [16, 8]],
}


def declared(**changes):
    return {"groups": {"one": {**GROUP, **changes}}}


def message(mapping):
    with pytest.raises(config.ConfigError) as error:
        config.check(mapping)
    return str(error.value)


@pytest.mark.parametrize("name", ["experiment", "smoke"])
@pytest.mark.parametrize("device", ["cpu", "cuda-nvidia-h200"])
def test_the_shipped_configurations_run_on_both_kinds(name, device):
    assert config.entries(config.load(CONFIGS / f"{name}.yaml"), device)


def test_smoke_results_are_apart():
    assert config.load(CONFIGS / "smoke.yaml")["results"] == "results/smoke"


def test_an_unknown_provider_is_named_with_what_is_accepted():
    told = message(declared(providers=["onlien"]))
    assert "groups.one.providers[0]" in told
    assert "'onlien'" in told
    assert "did you mean 'online'" in told
    assert "torch_compile" in told


def test_a_misspelt_key_is_named_with_a_suggestion():
    told = message({**declared(), "samplng": {}})
    assert "samplng: unknown key; did you mean 'sampling'?" in told
    assert "groups.one.shape: unknown key" in message(declared(shape=[[1, 2]]))


def test_negative_and_zero_sizes_are_refused():
    assert "groups.one.shapes[1][1]: -8 is less than 1" in message(
        declared(shapes=[[1, 2], [4, -8]])
    )
    assert "0 is less than 1" in message(declared(shapes=[[0, 8]]))


def test_an_unknown_dtype_is_refused():
    told = message(declared(dtypes=["float23"]))
    assert "did you mean 'float32'" in told
    assert "bfloat16" in told


def test_a_missing_key_says_what_it_is_for():
    group = {key: value for key, value in GROUP.items() if key != "reason"}
    assert "groups.one.reason: missing (one sentence" in message({"groups": {"one": group}})


def test_every_problem_is_listed():
    told = message({**declared(dtypes=["int8"]), "sed": 1})
    assert "int8" in told
    assert "sed" in told


def test_a_shape_declared_twice_for_one_kind_is_refused():
    told = message({"groups": {"one": GROUP, "two": {**GROUP, "shapes": [[16, 8]]}}})
    assert "groups.two.shapes: [16, 8] is in group 'one' already" in told
    assert "[4, 8]" in message(declared(shapes=[[4, 8], [4, 8]]))
    config.check({"groups": {"one": GROUP, "two": {**GROUP, "runs_on": "gpu"}}})


def test_a_partition_for_some_devices_and_not_for_all_is_refused():
    devices = {"cuda-a": {"slurm_partition": "a"}, "cuda-b": {}}
    told = message(declared() | {"devices": devices})
    assert "devices.cuda-b: no slurm_partition, and cuda-a has one" in told
    devices["cuda-b"] = {"slurm_partition": "b"}
    config.check(declared() | {"devices": devices})


def test_an_empty_file_is_refused(tmp_path):
    (tmp_path / "empty.yaml").write_text("")
    with pytest.raises(config.ConfigError, match=r"(?s)empty\.yaml: .*None is not a mapping"):
        config.load(tmp_path / "empty.yaml")


def test_files_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(config.ConfigError, match="absent.yaml: no such file"):
        config.load(tmp_path / "absent.yaml")
    (tmp_path / "broken.yaml").write_text("groups: [")
    with pytest.raises(config.ConfigError, match="broken.yaml: not YAML"):
        config.load(tmp_path / "broken.yaml")


def test_entries_are_the_shapes_of_the_kind_in_order():
    other = {**GROUP, "runs_on": "gpu", "providers": ["naive"]}
    checked = config.check({"groups": {"one": GROUP, "two": other}})
    first, second = config.entries(checked, "cpu")
    assert first == {
        "group": "one",
        "rows": 4,
        "cols": 8,
        "dtypes": ["float32"],
        "providers": checked["providers"]["cpu"],
    }
    assert config.entry_id(second) == "one-16x8"
    assert [entry["providers"] for entry in config.entries(checked, "rocm-gfx942-304cu")] == [
        ["naive"],
        ["naive"],
    ]


def test_auto_has_no_entries_before_it_is_resolved():
    with pytest.raises(config.ConfigError, match="auto"):
        config.entries(config.check(declared()), "auto")


def test_an_entry_passes_through_json():
    entry = config.entries(config.check(declared()), "cpu")[0]
    assert config.parse(json.dumps(entry), "entry") == entry


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "not JSON"),
        ("[]", "not a mapping"),
        ('{"group": "g", "rows": 1}', "entry.cols: missing"),
    ],
)
def test_a_bad_entry_is_refused(text, told):
    with pytest.raises(config.ConfigError, match=told):
        config.parse(text, "entry")


def test_sampling_given_in_part_is_filled():
    assert config.parse('{"rounds": 5}', "sampling")["warmup"] >= 1


@pytest.mark.parametrize(
    ("error", "code"), [(config.ConfigError("bad"), 2), (CheckFailed("no"), 1)]
)
def test_a_command_ends_with_one_line_and_its_status(error, code, capsys):
    def main():
        raise error

    with pytest.raises(SystemExit) as end:
        command(main)
    assert end.value.code == code
    assert capsys.readouterr().err == f"{error}\n"
