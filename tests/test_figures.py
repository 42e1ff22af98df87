import itertools

import numpy as np
import pandas as pd
import pytest
import synthetic
from matplotlib import pyplot as plt

from experiment import figures, views

UNITS = {"cpu": {"naive": 4, "online": 3, "block": 4}, "gpu": {"naive": 4, "online": 3, "block": 2}}


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.mark.parametrize("device", ["cpu", "cuda-test"])
def test_every_figure_in_every_format(device, tmp_path):
    benchmark, _, _ = synthetic.experiment(device)
    figures.draw(benchmark, UNITS, tmp_path)
    names = ("bandwidth", "speedup", "traffic")
    wanted = {f"{name}.{extension}" for name in names for extension in figures.FORMATS}
    assert {path.name for path in tmp_path.iterdir()} == wanted
    assert (tmp_path / "bandwidth.pdf").read_bytes().startswith(b"%PDF")


def test_the_same_table_gives_the_same_files(tmp_path):
    benchmark, _, _ = synthetic.experiment()
    for folder in ("one", "two"):
        figures.draw(benchmark, UNITS, tmp_path / folder)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes(), path.name


def test_bandwidth_shows_each_provider_and_the_spread():
    benchmark, _, _ = synthetic.experiment()
    timed = views.timed(benchmark)
    axes = figures.bandwidth(timed).axes[0]
    _, labels = axes.get_legend_handles_labels()
    assert set(labels) == {views.PROVIDERS[name] for name in synthetic.UNITS}
    assert "GB/s" in axes.get_ylabel()
    assert len(axes.containers) == len(synthetic.UNITS) - 1  # all but the copy have error bars


def test_speedup_leaves_out_torch_and_the_copy():
    benchmark, _, _ = synthetic.experiment()
    axes = figures.speedup(views.timed(benchmark)).axes[0]
    names = [label.get_text() for label in axes.get_xticklabels()]
    assert names == [views.PROVIDERS[name] for name in ("naive", "online", "block", "auto")]
    assert axes.texts[0].get_text() == f"{3.5 / 4:.2f}"


def test_a_provider_that_failed_at_a_shape_leaves_a_gap_and_no_error():
    benchmark, _, _ = synthetic.experiment()
    gap = (benchmark.provider == "block") & (benchmark.cols == 2048)
    benchmark.loc[gap, ["status", "time_us_median", "gb_per_s", "speedup_vs_torch"]] = [
        "failed", np.nan, np.nan, np.nan,
    ]  # fmt: skip
    timed = views.timed(benchmark)
    for figure in (
        figures.bandwidth(timed), figures.speedup(timed), figures.traffic(timed, UNITS["cpu"])
    ):  # fmt: skip
        figure.canvas.draw()


def test_an_unknown_provider_is_refused_by_name():
    with pytest.raises(ValueError, match="turbo.*known: naive, online"):
        views.ordered(["naive", "turbo"])


def with_shapes(benchmark, count):
    """The first shape's rows again and again, as shapes of their own and of every provider."""
    first = views.at(benchmark, *views.shapes(benchmark)[0])
    one = first[first.provider == "naive"]
    every = pd.concat([one.assign(provider=name) for name in views.PROVIDERS])
    return pd.concat([every.assign(rows=1_000_000 + i, cols=1_000_000) for i in range(count)])


def test_each_of_many_shapes_has_a_place_in_one_panel():
    benchmark, _, _ = synthetic.experiment()
    figure = figures.bandwidth(views.timed(with_shapes(benchmark, 23)))
    panels = [[label.get_text() for label in axes.get_xticklabels()] for axes in figure.axes]
    assert max(map(len, panels)) <= figures.MOST_SHAPES
    labels = sorted(itertools.chain.from_iterable(panels))
    assert labels == sorted(f"1000000\n{1_000_000 + i}" for i in range(23))
    assert len({axes.get_ylim() for axes in figure.axes}) == 1


@pytest.mark.parametrize("count", [10, 23])
def test_labels_do_not_overlap(count):
    benchmark, _, _ = synthetic.experiment("cuda-test")
    timed = views.timed(with_shapes(benchmark, count))
    for figure in (figures.bandwidth(timed), figures.speedup(timed)):
        figure.canvas.draw()
        for axes in figure.axes:
            boxes = [label.get_window_extent() for label in axes.get_xticklabels()]
            assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))
