"""Curves of any metric, and maps of posteriors."""

from __future__ import annotations

import made_up_runs
import numpy as np
import pandas
import pytest

from concord.errors import ConcordError
from concord.figures import metric_curves, posterior_maps
from concord.options import build
from concord.results import Measured


def run(training: str, scale: float, agents=("0", "network")) -> Measured:
    rows = []
    for k in range(0, 101, 10):
        rows.append((k, "network", "unicast_bytes", scale * k, np.nan, np.nan))
        for agent in agents:
            rows.append((k, agent, "distance", 1 / (1 + k), 0.9 / (1 + k), 1.2 / (1 + k)))
            rows.append((k, agent, "spread", 0.1, np.nan, np.nan))
    rows.append((100, "network", "floor", 0.005, 0.004, 0.006))
    table = pandas.DataFrame(rows, columns=made_up_runs.COLUMNS)
    return Measured(made_up_runs.run(training=training), table)


def drawn(runs, **options):
    params = build(metric_curves.Params, {"metric": "distance", **options}, "options")
    return metric_curves.draw(params, runs)


def lines(figure):
    return {line.get_label(): line.get_xydata() for line in figure.axes[0].get_lines()}


def test_bytes_come_from_the_same_iterations() -> None:
    figure = drawn([run("a", 2.0), run("b", 30.0)], lines="training", x="unicast_bytes")
    found = lines(figure)
    k = np.arange(0, 101, 10)
    for label, scale in (("A", 2.0), ("B", 30.0)):
        assert np.allclose(found[label], np.column_stack([scale * k, 1 / (1 + k)]))


def test_log_axis_leaves_out_zero() -> None:
    found = lines(drawn([run("a", 2.0)], lines="training", x="unicast_bytes", xscale="log"))
    assert found["A"][0].tolist() == [20.0, 1 / 11]


@pytest.mark.parametrize(
    ("band", "low", "high"), [("interval", 0.9, 1.2), ("spread", 1 - 0.1, 1 + 0.1)]
)
def test_band_is_the_interval_or_a_standard_deviation(band, low, high) -> None:
    figure = drawn([run("a", 2.0)], lines="agent", agents=[0], band=band)
    (area,) = figure.axes[0].collections
    at_start = area.get_paths()[0].vertices
    at_start = at_start[at_start[:, 0] == 0][:, 1]
    assert at_start.min() == pytest.approx(low)
    assert at_start.max() == pytest.approx(high)


def test_floor_and_no_band() -> None:
    figure = drawn([run("a", 2.0)], lines="agent", agents=[0], band="none", floor="floor")
    assert not figure.axes[0].collections
    assert any(np.allclose(line.get_ydata(), 0.005) for line in figure.axes[0].get_lines())


def test_differences_are_from_the_mean_of_all_lines() -> None:
    one, other = run("a", 1.0), run("b", 1.0)
    other.metrics["value"] = 3 * other.metrics["value"]
    figure = drawn([one, other], lines="training", differences=True)
    found = lines(figure)
    k = np.arange(0, 101, 10)
    np.testing.assert_allclose(found["A"][:, 1], -1 / (1 + k))
    np.testing.assert_allclose(found["B"][:, 1], 1 / (1 + k))
    assert not figure.axes[0].collections
    short = Measured(one.run, one.metrics[one.metrics["iteration"] < 50])
    with pytest.raises(ConcordError, match="different iterations"):
        drawn([short, other], lines="training", differences=True)


def test_a_slope_stands_beside_what_falls() -> None:
    flat = run("b", 1.0)
    flat.metrics["value"] = 1.0
    options = {"lines": "training", "xscale": "log", "yscale": "log"}
    figure = drawn([run("a", 1.0), flat], slopes=[-0.5, -0.5], **options)
    (slope,) = [line for line in figure.axes[0].lines if line.get_label() == "_slope"]
    (x0, y0), (x1, y1) = slope.get_xydata()
    assert (x0, x1) == (10, 100) and y1 / y0 == pytest.approx(10**-0.5)
    assert [text.get_text() for text in figure.axes[0].texts] == ["$k^{-0.5}$"]
    figure = drawn([run("a", 1.0), flat], slopes=[-0.5], **options)  # the legend has one alone
    assert not figure.axes[0].texts
    assert "$k^{-0.5}$" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_fitted_exponents_are_written_in_the_panel() -> None:
    figure = drawn([run("a", 1.0)], lines="training", exponent="floor")
    (text,) = figure.axes[0].texts
    assert text.get_text() == "A: fitted exponent 0.0050 [0.0040, 0.0060]"


def test_panels_share_limits_that_hold_all_lines() -> None:
    low, high = run("a", 1.0), run("b", 1.0)
    high.metrics.loc[high.metrics["metric"] == "distance", ["value", "lo", "hi"]] *= 50
    figure = drawn([low, high], lines="agent", columns="training")
    bottom, top = figure.axes[0].get_ylim()
    assert bottom < 1 / 101 and top > 50
    assert figure.axes[1].get_ylim() == (bottom, top)


def test_mistakes_are_named() -> None:
    with pytest.raises(ConcordError, match="draw one agent, or lines: agent"):
        drawn([run("a", 1.0)], lines="training", agents=[0, "network"])
    with pytest.raises(ConcordError, match="has no metric 'nothing'"):
        drawn([run("a", 1.0)], metric="nothing")
    with pytest.raises(ConcordError, match="would both be"):
        drawn([run("a", 1.0), run("b", 1.0)], lines="agent")


def posterior(cells: int = 20) -> Measured:
    edge = np.linspace(-3, 3, cells + 1)
    center = 0.5 * (edge[1:] + edge[:-1])
    density = np.exp(-0.5 * (center[:, None] ** 2 + center**2)) / (2 * np.pi)
    rows = [
        (i, "network", f"cell_{axis}", center[i], edge[i], edge[i + 1])
        for axis in range(2)
        for i in range(cells)
    ]
    for agent, factor in (("posterior", 1.0), ("0", 0.5), ("1", 2.0)):
        rows += [
            (i, agent, "density", v, np.nan, np.nan) for i, v in enumerate(factor * density.ravel())
        ]
    rows += [(9, agent, "w", 0.25, 0.2, 0.3) for agent in "01"]
    return Measured(made_up_runs.run(), pandas.DataFrame(rows, columns=made_up_runs.COLUMNS))


def test_maps_show_exact_first_and_then_agents_with_their_distance() -> None:
    params = build(posterior_maps.Params, {"distance": "w", "printed": [0.1]}, "options")
    figure = posterior_maps.draw(params, [posterior()])
    titles = [axes.get_title(loc="left") for axes in figure.axes if axes.get_visible()]
    assert titles == [
        "(a) exact posterior",
        "(b) agent 1\n$W_1$ 0.250 ± 0.050, print 0.1",
        "(c) agent 2\n$W_1$ 0.250 ± 0.050",
        "",  # the scale of shades
    ]
    assert figure.axes[-1].get_ylabel() == "density"
    meshes = [axes.collections[0].get_array().max() for axes in figure.axes[:3]]
    assert meshes[1] == pytest.approx(0.5 * meshes[0])


def test_contours_hold_the_stated_mass() -> None:
    mass = np.array([[0.4, 0.1], [0.3, 0.2]])
    assert posterior_maps.mass_levels(mass, (0.5, 0.8)) == [0.2, 0.3]


def test_two_runs_cannot_share_a_map() -> None:
    with pytest.raises(ConcordError, match="would both be"):
        posterior_maps.draw(build(posterior_maps.Params, {}, "options"), [posterior(), posterior()])


def test_x_may_be_another_metric_and_panels_have_rows_too() -> None:
    runs = []
    for training, scale in (("a", 2.0), ("b", 30.0)):
        made = run(training, scale)
        made.run["labels"]["size"] = training
        steps = [(k, "network", "step", scale * k + 1, np.nan, np.nan) for k in range(0, 101, 10)]
        table = pandas.DataFrame(steps[::-1], columns=made_up_runs.COLUMNS)
        runs.append(Measured(made.run, pandas.concat([table.iloc[::-1], made.metrics])))
    figure = drawn(runs, lines="agent", rows="training", over="step", xlabel="step size")
    k = np.arange(0, 101, 10)
    for panel, scale in zip(figure.axes, (2.0, 30.0), strict=True):
        (line,) = panel.get_lines()
        assert np.allclose(line.get_xydata(), np.column_stack([scale * k + 1, 1 / (1 + k)]))
    assert [panel.get_xlabel() for panel in figure.axes] == ["", "step size"]
    params = build(metric_curves.Params, {"metric": "distance", "over": "step"}, "options")
    assert [read.metric for read in metric_curves.reads(params)] == ["distance", "step"]
