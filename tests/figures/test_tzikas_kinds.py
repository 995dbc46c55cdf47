"""Figure kinds of accuracy, draws and stationary widths, and line patterns for readings."""

from __future__ import annotations

from typing import Any

import made_up_runs
import numpy as np
import pandas
import pytest

from concord.errors import ConcordError
from concord.figures import accuracy_curves, density_scatter, stationary_covariance, w2_curves
from concord.results import Measured


def measured(run: dict[str, Any], rows: list[tuple[Any, ...]]) -> Measured:
    full = [(k, str(agent), metric, value, np.nan, np.nan) for k, agent, metric, value in rows]
    return Measured(run, pandas.DataFrame(full, columns=made_up_runs.COLUMNS))


def accuracy(sampler: str, agents: int = 3) -> Measured:
    rows = []
    for agent in range(agents):
        for k in range(10):
            rows.append((k, agent, "accuracy_mean", 0.5 + 0.04 * k + 0.01 * agent))
            rows.append((k, agent, "accuracy_sd", 0.1))
    return measured(made_up_runs.run(agents=agents, sampler=sampler), rows)


def test_accuracy_has_a_line_and_band_per_run_and_hairlines_for_other_agents():
    figure = accuracy_curves.draw(accuracy_curves.Params(), [accuracy("admm"), accuracy("d_ula")])
    axes = figure.axes[0]
    assert len(axes.collections) == 2
    assert len([line for line in axes.lines if line.get_label() == "_agent"]) == 4
    band = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert band.max() <= 1.0
    np.testing.assert_allclose(band.min(), 0.4)


def test_accuracy_can_be_zoomed():
    params = accuracy_curves.Params(xlim=(0, 4), ylim=(0.6, None))
    axes = accuracy_curves.draw(params, [accuracy("admm")]).axes[0]
    assert axes.get_xlim() == (0, 4)
    assert axes.get_ylim()[0] == 0.6


def test_accuracies_near_one_may_have_half_of_the_axis():
    params = accuracy_curves.Params(lines="sampler", ylim=(0.5, 1.0), stretch=0.9)
    (axes,) = accuracy_curves.draw(params, [accuracy("d_ula")]).axes
    low, knee, top = axes.transData.transform([(0, 0.5), (0, 0.9), (0, 1.0)])[:, 1]
    assert knee - low == pytest.approx(top - knee)
    assert {0.9, 0.95, 1.0} <= set(np.round(axes.get_yticks(), 6))


def test_accuracy_refuses_two_runs_for_one_line():
    with pytest.raises(ConcordError, match="would both be"):
        accuracy_curves.draw(accuracy_curves.Params(), [accuracy("admm"), accuracy("admm")])


def scatter(reading: str) -> Measured:
    rows: list[tuple[Any, ...]] = []
    for k in (0, 5):
        for agent in range(2):
            rows += [(k, agent, "draw", 0.1 * chain + k) for chain in range(7)]
            rows += [(k, agent, "law_mean", float(k)), (k, agent, "law_sd", 0.5)]
    rows += [(5, "network", "posterior_mean", 4.0), (5, "network", "posterior_sd", 0.3)]
    return measured(made_up_runs.run(agents=2, reading=reading), rows)


def test_draws_stand_on_one_line_per_agent():
    params = density_scatter.Params(rows="reading", agents=(0, 1))
    figure = density_scatter.draw(params, [scatter("published"), scatter("released")])
    assert len(figure.axes) == 4
    ticks = [line for line in figure.axes[1].lines if line.get_marker() == "|"]
    assert [len(line.get_xdata()) for line in ticks] == [7, 7]
    np.testing.assert_allclose(ticks[0].get_xdata(), 5 + 0.1 * np.arange(7))
    assert ticks[0].get_ydata()[0] != ticks[1].get_ydata()[0]


def widths(sampler: str, agent: float, average: float) -> Measured:
    rows = [(9, 0, "stationary_trace", agent), (9, "average", "stationary_trace", average)]
    return measured(made_up_runs.run(agents=5, sampler=sampler), rows)


def test_widths_are_marked_and_points_and_instability_stand_at_the_edges():
    runs = [widths("d_admms", 2.0, 0.2), widths("admm", 0.0, 1e-20), widths("d_ula", np.inf, 1.1)]
    figure = stationary_covariance.draw(stationary_covariance.Params(), runs)
    marks = {
        (line.get_marker(), float(line.get_xdata()[0]))
        for line in figure.axes[0].lines
        if line.get_marker() not in ("None", "", None)
    }
    expected = {("o", 2.0), ("D", 0.2), ("<", 0.1), ("x", 300.0), ("D", 1.1)}
    assert marks == expected


def readings() -> list[Measured]:
    return [
        made_up_runs.w2(made_up_runs.run(sampler=sampler, reading=reading), [0])
        for sampler in ("admm", "d_ula")
        for reading in ("published", "released")
    ]


def test_styles_give_readings_a_line_pattern_and_samplers_a_color():
    params = w2_curves.Params(lines="sampler", styles="reading", agents=(0,))
    figure = w2_curves.draw(params, readings())
    lines = {
        line.get_label(): (line.get_color(), line.get_linestyle())
        for line in figure.axes[0].lines
        if not str(line.get_label()).startswith("_")
    }
    assert len(lines) == 4
    assert len({color for color, _ in lines.values()}) == 2
    assert len({pattern for _, pattern in lines.values()}) == 2


def test_styles_need_one_agent():
    params = w2_curves.Params(lines="sampler", styles="reading", agents=(0, "average"))
    with pytest.raises(ConcordError, match="draw one agent"):
        w2_curves.draw(params, readings())
