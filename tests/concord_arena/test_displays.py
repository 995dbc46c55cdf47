"""What the arena's figures show, of cells with made-up scores."""

import numpy as np
import pandas
import pytest
from matplotlib.text import Text

import everything
from concord.errors import ConcordError
from concord.options import build
from concord_studies.figures import curves, style
from concord_studies.results import Measured

KINDS = ("best_entries", "metric_pairs", "score_ratios", "solved_curves")
best_entries, metric_pairs, score_ratios, solved_curves = (
    everything.kind("figures", kind) for kind in KINDS
)
GROWTH = {
    "metric": "p",
    "lines": "entry",
    "agents": ["worst"],
    "layers": ["growth"],
    "legend": "ends",
    **{"x": {"over": "agents"}, "y": {"scale": "log"}},
}
RATIOS = {"rows": "entry", "columns": "fault", "metric": "b2", "plain": "none"}
COLUMNS = ["iteration", "agent", "metric", "value", "lo", "hi", "trials"]


def cell(scores, missing=None, **labels):
    rows = [(0, "network", "applicable", 1.0 if missing is None else missing)]
    rows += [(9, "worst", metric, value) for metric, value in scores.items()]
    table = pandas.DataFrame([(*row, np.nan, np.nan, 0) for row in rows], columns=COLUMNS)
    texts = {key: str(value) for key, value in labels.items()}
    return Measured({"experiment": "e", "run": "r", "labels": texts, "scale": "paper"}, table)


def draw(module, runs, tmp_path, **options):
    figure = module.draw(build(module.Params, options, ""), runs)
    style.save(figure, [tmp_path / "figure.png"])
    return figure


def texts(figure):
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def test_shares_are_of_all_tasks_and_targets(tmp_path):
    runs = [
        cell({"bytes_to_1": 10.0, "bytes_to_0.1": 100.0}, entry="a", task=1),
        cell({"bytes_to_1": 20.0, "bytes_to_0.1": np.inf}, entry="a", task=2),
        cell({"bytes_to_1": np.inf, "bytes_to_0.1": np.inf}, entry="b", task=1),
        cell({}, missing=0.0, entry="b", task=2),
    ]
    figure = draw(solved_curves, runs, tmp_path, prices=["bytes"], targets=[1, 0.1])
    a, b = figure.axes[0].lines
    assert a.get_ydata().tolist() == [0, 0.25, 0.5, 0.75, 0.75]
    assert a.get_xdata()[1:-1].tolist() == [10.0, 20.0, 100.0]
    assert b.get_ydata().tolist() == [0, 0]


def test_whoever_leads_at_some_price_is_named(tmp_path):
    """Six entries end higher than the one that solves its only pair first."""
    runs = [cell({"bytes_to_1": 1.0, "bytes_to_0.1": np.inf}, entry="early", task=1)]
    both = {"bytes_to_1": 50.0, "bytes_to_0.1": 90.0}
    runs += [cell(both, entry=entry, task=1) for entry in "abcdef"]
    figure = draw(solved_curves, runs, tmp_path, prices=["bytes"], targets=[1, 0.1])
    named = [text.get_text() for text in figure.axes[0].texts]
    assert "Early" in named and len(named) == solved_curves.BEST + 1


def test_the_best_and_by_how_much(tmp_path):
    runs = [
        cell({"b2": value}, entry=entry, zeta=zeta, topology="ring")
        for entry, zeta, value in (("a", 0, 1.0), ("b", 0, 3.0), ("a", 1, 8.0), ("b", 1, 2.0),
                                   ("a", 2, np.inf), ("b", 2, 5.0), ("a", 3, np.inf))
    ]  # fmt: skip
    figure = draw(best_entries, runs, tmp_path, rows="zeta", columns="topology", metric=["b2"])
    said = texts(figure)
    assert {"A\n×3.0", "B\n×4.0", "B\n×>999"} <= set(said)
    assert {"A: A", "B: B", "no finite score"} <= set(said)
    image = figure.axes[0].images[0].get_array()
    assert np.allclose(image[3, 0], 1.0)  # nothing is finite there: white
    assert not np.allclose(image[0, 0], image[1, 0])


def fault(name, entry, value=None, floor=None, missing=None):
    """A cell with a fault, whose score may have a floor, or be missing."""
    scores = {"b2": value, "floor.b2": floor}
    stated = {metric: number for metric, number in scores.items() if number is not None}
    return cell(stated, missing, entry=entry, fault=name)


def test_ratios_to_the_plain_condition(tmp_path):
    runs = [
        fault("none", "a", 2.0), fault("loss", "a", 10.0), fault("burst", "a", np.inf),
        fault("none", "b", 1.0), fault("loss", "b", missing=0.0), fault("burst", "b", missing=-1.0),
    ]  # fmt: skip
    figure = draw(score_ratios, runs, tmp_path, **RATIOS)
    assert {"5", "∞", "n/r", "does not apply"} <= set(texts(figure))
    rows = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert len(rows) == 2
    more = [*runs, *(fault(name, "c", missing=0.0) for name in ("none", "loss", "burst"))]
    figure = draw(score_ratios, more, tmp_path, **RATIOS)
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == [*rows, "C"]
    assert len([patch for patch in figure.axes[0].patches if patch.get_hatch()]) == 1 + 2
    with pytest.raises(ConcordError, match="did you mean 'none'"):
        draw(score_ratios, runs, tmp_path, **{**RATIOS, "plain": "non"})


def test_a_score_at_the_floor_of_its_chains_is_a_bound(tmp_path):
    runs = [
        fault("none", "exact", 0.02), fault("loss", "exact", 0.01, 0.01),
        fault("late", "exact", 0.08, 0.01), fault("burst", "exact", 0.1, 0.1),
        fault("none", "chains", 0.01, 0.01), fault("loss", "chains", 0.01, 0.01),
        fault("late", "chains", 0.07, 0.01), fault("burst", "chains", 0.1),
    ]  # fmt: skip
    figure = draw(score_ratios, runs, tmp_path, **RATIOS)
    said = [text.get_text() for text in figure.axes[0].texts]
    assert said == ["≤0.5", "4", "≤5", "–", "≥7", "≥10"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["bound"]
    assert {"ratio to None", "0.01", "1", "100"} <= set(texts(figure))  # beside the bar of colors
    white = (figure.axes[0].images[0].get_array() == 1).all(axis=-1)
    # No color says of a bound above one that it is worse, or of none anything.
    assert white.tolist() == [[False, False, True], [True, False, False]]


def test_the_exponent_is_that_of_the_finite_values(tmp_path):
    runs = [
        cell({"p": 3.0 * n**2 if n < 32 else np.inf}, entry="a", agents=n) for n in (4, 8, 16, 32)
    ]
    figure = draw(curves, runs, tmp_path, **GROWTH)
    assert any("(2.0)" in text for text in texts(figure))
    assert np.isnan(figure.axes[0].lines[0].get_ydata()[-1])


def test_exponents_of_several_data_sets_have_an_interval_and_estimates_are_hollow(tmp_path):
    runs = []
    for n in (4, 8, 16, 32):
        values = {"p_set_1": 3.0 * n**1.9, "p_set_2": 3.0 * n**2.1,
                  "p_set_3": np.inf if n == 8 else 3.0 * n**2.0}  # fmt: skip
        runs.append(cell(values, entry="a", agents=n))
        runs[-1].metrics.loc[len(runs[-1].metrics)] = [
            9,
            "network",
            "exact",
            float(n < 32),
            *[np.nan] * 3,
        ]
    figure = draw(curves, runs, tmp_path, **GROWTH)
    assert any("(2.00 ± 0.25)" in text for text in texts(figure))  # t of 2: 4.30 * 0.1 / sqrt(3)
    line, hollow = figure.axes[0].lines
    lacking = cell({}, missing=0.0, entry="b", agents=4)
    draw(curves, [*runs, lacking], tmp_path, **GROWTH)
    assert line.get_ydata()[0] == 3.0 * 4**2.0 and hollow.get_xdata().tolist() == [32]


def test_the_front_is_what_nothing_lies_below_and_left_of(tmp_path):
    points = [(1.0, 4.0), (2.0, 5.0), (3.0, 2.0), (4.0, 3.0), (5.0, 1.0), (np.inf, 0.1)]
    runs = [cell({"x": x, "y": y}, entry="ab"[i % 2], share=i) for i, (x, y) in enumerate(points)]
    runs.append(cell({"x": np.inf, "y": 1.0}, entry="c", share=7))
    figure = draw(metric_pairs, runs, tmp_path, x="x", y="y")
    assert "C (no point)" in texts(figure)
    (legend,) = figure.legends
    assert len(legend.get_texts()) == 4  # a, b, c and the front
    front = figure.axes[0].lines[-1]
    assert front.get_xdata().tolist() == [1, 3, 3, 5, 5]
    assert front.get_ydata().tolist() == [4, 4, 2, 2, 1]


def test_a_front_without_any_point_is_drawn_empty(tmp_path):
    runs = [cell({"x": np.inf, "y": 1.0}, entry=entry) for entry in "ab"]
    figure = draw(metric_pairs, runs, tmp_path, x="x", y="y")
    assert {"A (no point)", "B (no point)"} <= {*texts(figure)}
    lines = [cell({"p": np.inf}, entry="a", agents=n) for n in (4, 8)]
    draw(curves, lines, tmp_path, **GROWTH)
