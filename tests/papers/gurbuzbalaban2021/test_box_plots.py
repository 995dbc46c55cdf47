import numpy as np
import pytest
from matplotlib.figure import Figure

import everything
from concord.errors import ConcordError
from concord.options import build
from concord_studies.results import Measured, series
from made_up_runs import counts, run

box_plots = everything.kind("figures", "box_plots")

TOPOLOGIES = ["complete", "ring", "no_edges"]


def draw(runs: list[Measured], **options: object) -> Figure:
    options = {"beside": "topology", "iterations": [*range(0, 101, 10)]} | options
    return box_plots.draw(build(box_plots.Params, options, "x.yaml: figures.f"), runs)


@pytest.fixture(scope="module")
def runs() -> list[Measured]:
    return [counts(run("cancer", topology=t), [0], seed=i) for i, t in enumerate(TOPOLOGIES)]


def places(axes) -> list[float]:
    boxes = [patch.get_path().vertices[:, 0] for patch in axes.patches]
    return [round(float(box.min() + box.max()) / 2, 6) for box in boxes]


def medians(axes) -> list[float]:
    return [line.get_ydata()[0] for line in axes.lines if line.get_color() == "#000000"]


def test_panels_of_two_readings_have_one_axis():
    both = [
        counts(run("cancer", reading=reading, topology=t), [0], seed=i)
        for reading in ("published", "released")
        for i, t in enumerate(TOPOLOGIES)
    ]
    figure = draw(both, columns="reading")
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["(a) equations", "(b) released code"]
    assert figure.axes[0].get_ylabel() == "misclassified points"
    assert len({axes.get_ylim() for axes in figure.axes}) == 1
    assert {axes.get_yscale() for axes in figure.axes} == {"linear"}
    assert figure.axes[0].get_ylim()[0] == 0
    labels = {text.get_text() for text in figure.legends[0].get_texts()}
    assert labels == {
        *("Complete", "Ring", "No edges"),
        *("median, agent 1", "quartiles, Tukey's whiskers", "lowest and highest chain"),
    }


def test_boxes_of_several_runs_stand_side_by_side(runs):
    figure = draw(runs, iterations=[0, 10])
    (axes,) = figure.axes
    at = np.reshape(sorted(places(axes)), (2, 3))
    np.testing.assert_allclose(at.mean(axis=1), [0, 10], atol=1e-6)
    assert (np.diff(at) > 0).all() and at[0, -1] < at[1, 0]
    assert len({patch.get_facecolor() for patch in axes.patches}) == 3
    one = [series(runs[1], "misclassified_median", 0).value[k] for k in (0, 10)]
    assert medians(axes)[2:4] == one  # the second run's, which is drawn second


def test_boxes_are_the_table_at_their_iterations(runs):
    chosen = [0, 1, 2, 5, 10, 50, 100]
    axes = draw([runs[1]], iterations=chosen).axes[0]
    parts = {
        name: series(runs[1], f"misclassified_{name}", 0).value[chosen]
        for name in ("min", "whisker_lo", "q25", "median", "q75", "whisker_hi", "max")
    }
    assert places(axes) == chosen
    np.testing.assert_array_equal(medians(axes), parts["median"])
    boxes = [patch.get_path().vertices[:, 1] for patch in axes.patches]
    np.testing.assert_array_equal([box.min() for box in boxes], parts["q25"])
    np.testing.assert_array_equal([box.max() for box in boxes], parts["q75"])
    marks = sorted(y for line in axes.lines if line.get_marker() == "_" for y in line.get_ydata())
    outside = [
        *parts["min"][parts["min"] < parts["whisker_lo"]],
        *parts["max"][parts["max"] > parts["whisker_hi"]],
    ]
    assert marks == sorted(outside)
    assert marks
    ends = {y for line in axes.lines for y in line.get_ydata()}
    assert ends >= {*parts["whisker_lo"], *parts["whisker_hi"]}


def test_mistakes_are_told(runs):
    with pytest.raises(ConcordError, match=r"^figure box_plots: .* would both be"):
        draw(runs, beside="agents")
    measured = counts(run("cancer", topology="ring"), [0], every=5)
    with pytest.raises(ConcordError, match=r"no counts at iteration 3; record it, or .*0, 5, 10"):
        draw([measured], iterations=[0, 3])
