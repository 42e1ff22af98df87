"""Tables keep to their schema, and a file is whole or absent."""

import os

import numpy as np
import pandas as pd
import pytest

from experiment import InputError, tables

ROW = {
    "device": "cpu",
    "provider": "online",
    "direction": "forward",
    "dtype": "float32",
    "rows": 4,
    "cols": 8,
    "case": "timed",
    "max_abs_err": 1.25e-7,
    "scaled_err": np.nan,
    "row_sum_err": 0.0,
    "tolerance": 2**-17,
    "passed": True,
}


def verify(**changes):
    return tables.frame([ROW | changes], "verify")


def refused(table, path):
    with pytest.raises(InputError) as error:
        tables.write(table, path, "verify")
    assert not path.exists()
    return str(error.value)


def test_what_is_written_is_what_is_read(tmp_path):
    path = tmp_path / "deep" / "verify.csv"
    table = tables.frame([ROW, ROW | {"max_abs_err": np.inf, "passed": False}], "verify")
    tables.write(table[table.columns[::-1]], path, "verify")
    header, first, _ = path.read_text().splitlines()
    assert header == ",".join(tables.columns("verify"))
    assert first.endswith(",,0,7.6293945e-06,true")
    pd.testing.assert_frame_equal(
        tables.read(path, "verify"), table, check_dtype=False, rtol=1e-7, check_exact=False
    )


def test_an_empty_table_keeps_its_columns(tmp_path):
    tables.write(tables.frame([], "samples"), tmp_path / "samples.csv", "samples")
    assert list(tables.read(tmp_path / "samples.csv", "samples")) == tables.columns("samples")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"provider": "onlien"}, "unknown 'onlien'; did you mean 'online'"),
        ({"rows": -1}, "-1 is less than 0"),
        ({"rows": 1.5}, "1.5 is not an integer"),
        ({"cols": np.nan}, "empty; expected an integer"),
        ({"tolerance": "small"}, "'small' is not a number"),
        ({"passed": "yes"}, "'yes' is not a boolean"),
        ({"case": ""}, "too short"),
    ],
)
def test_a_value_outside_the_schema_is_refused(tmp_path, changes, told):
    assert told in refused(verify(**changes), tmp_path / "verify.csv")


def test_missing_and_unknown_columns_are_refused(tmp_path):
    table = verify().rename(columns={"case": "cases"})
    told = refused(table, tmp_path / "verify.csv")
    assert "column case: missing" in told
    assert "column cases: unknown; did you mean 'case'" in told


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "verify.csv"
    tables.write(verify(), path, "verify")
    text = path.read_text()
    for damaged in (text[: len(text) // 2], text.replace("true", "maybe"), ""):
        path.write_text(damaged)
        with pytest.raises(InputError, match="verify.csv: not a verify table"):
            tables.read(path, "verify")
    with pytest.raises(InputError, match="no such file"):
        tables.read(tmp_path / "absent.csv", "verify")


def test_parts_are_merged_in_order(tmp_path):
    paths = [tmp_path / f"{name}.csv" for name in "ab"]
    for path, case in zip(paths, ("timed", "planted")):
        tables.write(verify(case=case), path, "verify")
    empty = tmp_path / "c.csv"
    tables.write(tables.frame([], "verify"), empty, "verify")
    assert tables.merge([empty, *paths], "verify").case.tolist() == ["timed", "planted"]
    assert tables.merge([empty], "verify").empty


def test_a_write_that_is_interrupted_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "facts.json"
    tables.write_json(path, {"a": 1})

    def interrupted(source, target):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tables.write_json(path, {"a": 2})
    assert tables.read_json(path) == {"a": 1}
    assert os.listdir(tmp_path) == ["facts.json"]


def test_json_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(InputError, match="absent.json: no such file"):
        tables.read_json(tmp_path / "absent.json")
    (tmp_path / "half.json").write_text('{"a":')
    with pytest.raises(InputError, match="half.json: not JSON"):
        tables.read_json(tmp_path / "half.json")


def test_checking_a_long_table_is_quick(tmp_path):
    import time

    keys = {key: ROW[key] for key in ("device", "provider", "direction", "dtype", "rows", "cols")}
    keys |= {"run_id": "r", "group": "g", "cache": "cold", "output": "allocated"}
    table = pd.DataFrame({"time_us": np.random.default_rng(0).random(200_000)})
    table = table.assign(**keys, measure="device", round=0, i=0)
    start = time.perf_counter()
    assert tables.problems(table, "samples") == []
    assert time.perf_counter() - start < 5
