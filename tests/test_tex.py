import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest
import synthetic

from experiment import amd, claims, figures, predicted, tables, tex, views

ROOT = Path(__file__).parents[1]
PAPER = ROOT / "paper"
UNITS = {"cpu": {"naive": 4, "online": 3, "block": 4}, "gpu": {"naive": 4, "online": 3}}
DEVICES = ["cpu", "cuda-test"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A results folder under a short relative path, as the workflow has it."""
    monkeypatch.chdir(tmp_path)
    return Path("results/cpu")


def written(device, folder):
    """The folder of generated TeX for a synthetic run; returns it."""
    benchmark, samples, verify = synthetic.experiment(device)
    facts = synthetic.facts(device)
    tables.write_json(folder / "environment.json", facts)
    for table, name in ((benchmark, "benchmark"), (samples, "samples"), (verify, "verify")):
        tables.write(table, folder / f"{name}.csv", name)
    tables.write(claims.claims(benchmark, samples, verify), folder / "claims.csv", "claims")
    tables.write_text(folder / "seconds.txt", "12\n")
    names = ("benchmark", "samples", "verify", "claims")
    tex.main([
        f"--environment={folder}/environment.json",
        *(f"--{name}={folder}/{name}.csv" for name in names),
        f"--published={ROOT}/reference/published.csv",
        "--seconds", f"{folder}/seconds.txt",
        f"--out={folder}/tex",
    ])  # fmt: skip
    predicted.main([f"--gpus={ROOT}/reference/amd-gpus.csv", f"--out={folder}/predicted.csv"])
    amd.main([
        f"--codeobjects={ROOT}/reference/codeobjects.csv",
        f"--predicted={folder}/predicted.csv",
        f"--published={ROOT}/reference/published.csv",
        f"--tex={folder}/tex", f"--figures={folder}/figures",
    ])  # fmt: skip
    return folder / "tex"


@pytest.mark.parametrize(
    "text, printed",
    [
        ("a_b & 5%", r"a\_b \& 5\%"),
        ("--fast", "-{}-fast"),
        ("256 × 8192", r"256 $\times$ 8192"),
        (r"C:\x{y}", r"C:\textbackslash{}x\{y\}"),
    ],
)
def test_escape_prints_text_as_it_stands(text, printed):
    assert tex.escape(text) == printed


@pytest.mark.parametrize(
    "value, printed",
    [(5.123, "5.12"), (51.23, "51.2"), (512.3, "512"), (5123.4, "5,120"), (0.0225, "0.0225"),
     (float("nan"), "--")],
)  # fmt: skip
def test_three_digits_count(value, printed):
    assert tex.significant(value) == printed


@pytest.mark.parametrize(
    "expected, printed",
    [("> 1", "$>$ 1"), ("<= 1", r"$\leq$ 1"), ("< 1e-6", r"$<$ $1.0\cdot 10^{-6}$")],
)
def test_a_bound_is_printed_as_mathematics(expected, printed):
    assert tex.bound(expected) == printed


def test_small_numbers_are_powers_of_ten():
    assert tex.scientific(3.5762787e-07) == r"$3.6\cdot 10^{-7}$"


@pytest.mark.parametrize("device", DEVICES)
def test_the_paper_uses_no_macro_or_table_that_is_not_generated(device, folder):
    made = written(device, folder)
    text = "".join((PAPER / name).read_text() for name in ("paper.tex", "artifact.tex"))
    generated = (made / "values.tex").read_text() + (made / "amd.tex").read_text()
    defined = set(re.findall(r"\\newcommand{\\(\w+)}", generated))
    used = set(re.findall(r"\\([A-Z][A-Za-z]+)", text)) - {"Bigl"}
    assert used <= defined
    for name in re.findall(r"{(tables/[\w.]+)}", text):
        assert (made / name).exists(), name


def test_no_number_of_the_paper_is_typed_by_hand():
    """Digits in the prose are names (C1, float32) or definitions (percentiles), not results."""
    for path in PAPER.glob("*.tex"):
        body = path.read_text().partition(r"\maketitle")[2] or path.read_text()
        body = re.sub(
            r"\\begin{(equation|proof|proposition)}.*?\\end{\1}", "", body, flags=re.DOTALL
        )
        body = re.sub(r"\$[^$]*\$|(?<!\\)%.*|\\(cite|ref|label|input|centred){[^}]*}", "", body)
        names = r"\bC[1-5]\b|[Ff]loat32|(20|80)th|softmax\(x, -1\)"
        body = re.sub(rf"\\(includegraphics|resizebox)\S*|{names}", "", body)
        assert not re.findall(r"\S*\d\S*", body), path.name


def test_claims_table_gives_the_figures_of_the_post():
    published = pd.read_csv(ROOT / "reference/published.csv")
    posts = {name: tex.post_figure(name, published) for name in claims.TESTS}
    assert posts["C1"] == pytest.approx(1.324, abs=1e-3)
    assert posts["C2"] == pytest.approx(0.897, abs=2e-3)
    assert posts["C3"] == pytest.approx(0.799, abs=2e-3)
    assert posts["C4"] == pytest.approx(1.158, abs=1e-3)
    assert posts["C5"] < 1e-6


def test_published_shapes_that_were_not_measured_say_so():
    published = pd.read_csv(ROOT / "reference/published.csv")
    benchmark, _, _ = synthetic.experiment("cpu")
    table = tex.published_table(published, benchmark)
    assert table.count("not measured on this device") == 2


def test_the_fastest_provider_is_bold_and_a_missing_one_a_dash():
    benchmark, _, _ = synthetic.experiment("cpu")
    gone = (benchmark.provider == "block") & (benchmark.cols == 2048)
    table = tex.shapes_table(benchmark[~gone])
    assert table.count(r"\textbf") == len(views.shapes(benchmark))
    assert "--" in table


def test_the_bound_of_a_long_row_is_the_copy_and_what_a_gang_costs_with_nothing_to_move():
    benchmark, _, _ = synthetic.experiment("cuda-test", noise=0)
    tiny = benchmark[(benchmark.cols == 2048) & (benchmark.cache == "cold")].copy()
    tiny["rows"], tiny["cols"] = tex.LAUNCH
    of = {"copy": tiny[tiny.provider == "copy"], "gang": tiny[tiny.provider == "auto"]}
    for name, microseconds in (("copy", 4.0), ("gang", 7.0)):
        row = of[name].assign(provider=name, time_us_median=microseconds, output="preallocated")
        benchmark = pd.concat([benchmark, row])
    long = views.pivot(views.timed(benchmark), "time_us_median").loc[(256, 2097152)]
    expected = [
        tex.number(long["copy"] / long["auto"]),
        tex.number(long["copy"] / (long["copy"] + 3)),
    ]
    row = next(line for line in tex.bounds_table(benchmark).splitlines() if "2097152" in line)
    assert row.removesuffix(r" \\").split(" & ")[-2:] == expected
    assert tex.meeting_cost(benchmark) == 3


@pytest.mark.skipif(not shutil.which("latexmk"), reason="latexmk is not installed")
@pytest.mark.parametrize("device", DEVICES)
def test_the_paper_typesets_without_overfull_boxes(device, folder):
    made = written(device, folder)
    benchmark, _, _ = synthetic.experiment(device)
    figures.draw(benchmark, UNITS, folder / "figures")
    done = subprocess.run(
        ["latexmk", "-pdf", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"],
        check=False, cwd=made, capture_output=True, text=True, errors="replace",
        env={"PATH": "/usr/bin:/bin", "HOME": str(Path.cwd()), "TEXINPUTS": f"{PAPER}:",
             "BIBINPUTS": f"{PAPER}:"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]
    log = (made / "paper.log").read_text(errors="replace")
    assert "undefined" not in log
    wide = [float(points) for points in re.findall(r"Overfull \\hbox \(([\d.]+)pt", log)]
    assert not [points for points in wide if points > 2]
    pages = int(re.search(r"Output written on .*?\((\d+) pages", log, re.DOTALL)[1])
    assert 5 <= pages <= 10
