"""Our check of the schemas against the standard's own, and what its messages say."""

import copy

import pytest

from experiment import config, schema

jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")

VALID = {
    "groups": {
        "post": {
            "reason": "A sentence about why.",
            "runs_on": "gpu",
            "dtypes": ["float32"],
            "shapes": [[256, 8192]],
        }
    }
}
CHANGES = [
    (("seed",), -1),
    (("seed",), 1.5),
    (("seed",), True),
    (("results",), ""),
    (("device",), "GPU 0"),
    (("device",), "rocm-gfx942-304cu"),
    (("sampling",), {"rounds": 2}),
    (("sampling",), {"max_seconds": 0}),
    (("sampling",), {"max_seconds": 0.5}),
    (("sampling",), {"round": 5}),
    (("providers",), {"cpu": ["online", "online"]}),
    (("providers",), {"cpu": ["onlien"]}),
    (("providers",), {"cpu": []}),
    (("groups",), {}),
    (("groups",), None),
    (("groups", "post", "reason"), "why"),
    (("groups", "post", "runs_on"), "tpu"),
    (("groups", "post", "dtypes"), ["float64"]),
    (("groups", "post", "shapes"), [[256]]),
    (("groups", "post", "shapes"), [[256, -1]]),
    (("groups", "post", "shapes"), []),
    (("groups", "post", "extra"), 1),
    (("groups", "Post 2"), VALID["groups"]["post"]),
]


@pytest.mark.parametrize("name", sorted(path.name for path in schema.FOLDER.iterdir()))
def test_every_file_is_a_json_schema(name):
    rules = schema.load(name.removesuffix(".schema.yaml"))
    jsonschema.Draft202012Validator.check_schema(rules)


@pytest.mark.parametrize(("keys", "value"), CHANGES)
def test_the_verdict_is_that_of_jsonschema(keys, value):
    changed = copy.deepcopy(VALID)
    inner = changed
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    rules = schema.load("config")
    valid = jsonschema.Draft202012Validator(rules).is_valid(changed)
    assert (schema.problems(changed, rules) == []) is valid


def test_defaults_are_filled_to_every_depth():
    filled = config.check({**VALID, "sampling": {"rounds": 7}})
    assert filled["sampling"]["rounds"] == 7
    assert filled["sampling"]["samples_per_round"] > 0
    assert "online" in filled["providers"]["cpu"]
    assert "sampling" not in VALID
