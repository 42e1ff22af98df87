import gzip
import json
import shutil

import pytest
import synthetic

from experiment import InputError, claims, pack, tables

DEVICE = "cuda-test"


@pytest.fixture
def results(tmp_path):
    """A results folder as a whole run of the workflow leaves it."""
    folder = tmp_path / "results" / DEVICE
    benchmark, samples, verify = synthetic.experiment(DEVICE)
    for table, name in ((benchmark, "benchmark"), (samples, "samples"), (verify, "verify")):
        tables.write(table, folder / f"{name}.csv", name)
    tables.write(claims.claims(benchmark, samples, verify), folder / "claims.csv", "claims")
    facts = synthetic.facts(DEVICE)
    facts |= {"run_id": "run", "git": {"commit": "0" * 40, "dirty": False}}
    tables.write_json(folder / "environment.json", facts)
    for name in ("summary.md", *(f"figures/{figure}.svg" for figure in pack.FIGURES)):
        tables.write_text(folder / name, name)
    return folder


def change(results, name, how):
    """Rewrite a table of the results by a function of its text."""
    path = results / name
    path.write_text(how(path.read_text()))


def test_what_others_check_is_kept_and_packing_twice_gives_the_same_bytes(results, tmp_path):
    out = tmp_path / "reference"
    kept = pack.pack(results, out)
    assert kept == out / DEVICE
    first = {path.name: path.read_bytes() for path in kept.iterdir()}
    assert gzip.decompress(first["samples.csv.gz"]) == (results / "samples.csv").read_bytes()
    assert {"environment.json", "claims.csv", "summary.md", "bandwidth.svg"} <= set(first)
    pack.pack(results, out)
    assert first == {path.name: path.read_bytes() for path in kept.iterdir()}
    assert [path.name for path in out.iterdir()] == [DEVICE]


@pytest.mark.parametrize(
    "name, how, said",
    [
        ("benchmark.csv", lambda text: text.replace("run,", "other,", 1), "run_id 'other'"),
        ("benchmark.csv", lambda text: text.replace("rows", "row", 1), "column row: unknown"),
        ("samples.csv", lambda text: text.replace(DEVICE, "cuda-else", 1), "device 'cuda-else'"),
        ("verify.csv", lambda text: text.replace("true", "false", 1), "failed"),
        ("claims.csv", lambda text: "\n".join(text.splitlines()[:-1]) + "\n", "no C5"),
        (
            "environment.json",
            lambda text: text.replace('"dirty": false', '"dirty": true'),
            "changed",
        ),
        ("environment.json", lambda text: text.replace(f'"{"0" * 40}"', "null"), "no commit"),
        ("environment.json", lambda text: text.replace("0" * 40, ""), "no commit"),
        ("environment.json", lambda text: text.replace('"git"', '"got"'), "no git"),
    ],
)
def test_results_that_are_no_reference_are_refused_and_nothing_is_written(
    results, tmp_path, name, how, said
):
    change(results, name, how)
    with pytest.raises(InputError, match=said):
        pack.pack(results, tmp_path / "reference")
    assert not (tmp_path / "reference").exists()


def test_a_refusal_leaves_the_reference_that_was_there(results, tmp_path):
    kept = pack.pack(results, tmp_path / "reference")
    shutil.rmtree(results / "figures")
    with pytest.raises(InputError, match="bandwidth.svg"):
        pack.pack(results, tmp_path / "reference")
    assert json.loads((kept / "environment.json").read_text())["device"] == DEVICE


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match="results/nowhere: no such folder"):
        pack.pack(tmp_path.relative_to(tmp_path) / "results/nowhere", tmp_path)
