"""Figure kinds of draws and stationary widths."""

from typing import Any

import numpy as np
import pandas

import everything
import made_up_runs
from concord_studies.results import Measured

density_scatter = everything.kind("figures", "density_scatter")
stationary_covariance = everything.kind("figures", "stationary_covariance")


def measured(run: dict[str, Any], rows: list[tuple[Any, ...]]) -> Measured:
    full = [(k, str(agent), metric, value, np.nan, np.nan) for k, agent, metric, value in rows]
    return Measured(run, pandas.DataFrame(full, columns=made_up_runs.COLUMNS))


def scatter(reading: str) -> Measured:
    rows: list[tuple[Any, ...]] = []
    for k in (0, 5):
        for agent in range(2):
            rows += [(k, agent, "draw", 0.1 * chain + k) for chain in range(7)]
            rows += [(k, agent, "law_mean", float(k)), (k, agent, "law_sd", 0.5)]
    rows += [(5, "network", "posterior_mean", 4.0), (5, "network", "posterior_sd", 0.3)]
    return measured(made_up_runs.run(agents=2, reading=reading), rows)


def test_draws_stand_on_one_line_per_agent():
    params = density_scatter.Params(rows="reading")
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
