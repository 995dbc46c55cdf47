"""Draws of several networks under exact contours."""

import numpy as np
import pandas
import pytest
from matplotlib.text import Text

import made_up_runs
from concord.errors import ConcordError
from concord.options import build
from concord_studies.figures import posterior
from concord_studies.results import Measured


def network(agents: int) -> Measured:
    """A network's metrics: a 3 x 2 exact density, and four draws of each agent."""
    rows: list[tuple] = []
    for axis, cells in ((0, 3), (1, 2)):
        rows += [(c, "network", f"cell_{axis}", c + 0.5, c, c + 1) for c in range(cells)]
    density = [0.1, 0.05, 0.3, 0.2, 0.25, 0.1]
    rows += [(c, "posterior", "density", value, np.nan, np.nan) for c, value in enumerate(density)]
    for agent in range(agents):
        for k in range(4):
            rows.append((k, str(agent), "draw_0", 0.1 * agent + 0.5 * k, np.nan, np.nan))
            rows.append((k, str(agent), "draw_1", 0.2 * agent, np.nan, np.nan))
    table = pandas.DataFrame(rows, columns=made_up_runs.COLUMNS)
    return Measured(made_up_runs.run("gmm", agents=agents, network=agents), table)


def drawn(runs, **options):
    return posterior.draw(
        build(posterior.Params, {"networks": "network", **options}, "options"), runs
    )


def visible(figure):
    return [axes for axes in figure.axes if axes.get_visible()]


def test_the_exact_panel_comes_first_then_every_agent_of_every_network():
    figure = drawn([network(1), network(2)], titles={1: "C-ULA", 2: "D-ULA"})
    panels = [axes for axes in visible(figure) if axes.axison]  # without the legend's
    assert [axes.get_title(loc="left") for axes in panels] == [
        "(a) exact posterior",
        "(b) C-ULA",
        "(c) D-ULA, agent 1",
        "(d) D-ULA, agent 2",
    ]
    assert not panels[0].lines
    assert panels[3].lines[0].get_xdata() == pytest.approx([0.1, 0.6, 1.1, 1.6])
    assert set(panels[3].lines[0].get_ydata()) == {0.2}
    assert all(axes.get_xlim() == (0, 3) and axes.get_ylim() == (0, 2) for axes in panels)


def test_chosen_agents_and_rows_of_panels():
    figure = drawn([network(1), network(3)], agents=[0, 2], columns=2)
    assert len(visible(figure)) == 4
    assert visible(figure)[3].lines[0].get_ydata()[0] == pytest.approx(0.4)


def test_a_run_without_draws_is_told_what_to_record():
    run = network(2)
    bare = Measured(run.run, run.metrics[~run.metrics["metric"].str.startswith("draw_")])
    with pytest.raises(ConcordError, match="posterior_draws"):
        drawn([bare])


def mapped(cells: int = 20) -> Measured:
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


def test_maps_show_exact_first_and_then_agents_with_their_distance():
    params = {"shows": "maps", "distance": "w", "printed": [0.1]}
    figure = posterior.draw(build(posterior.Params, params, "options"), [mapped()])
    assert [axes.get_title(loc="left") for axes in visible(figure)] == [
        "(a) exact posterior",
        "(b) agent 1\n$W_1$ 0.25 ± 0.05, print 0.1",
        "(c) agent 2\n$W_1$ 0.25 ± 0.05",
        "",  # the scale of shades
    ]
    assert figure.axes[-1].get_ylabel() == "density"
    meshes = [axes.collections[0].get_array().max() for axes in figure.axes[:3]]
    assert meshes[1] == pytest.approx(0.5 * meshes[0])
    with pytest.raises(ConcordError, match="would both be"):
        posterior.draw(build(posterior.Params, {"shows": "maps"}, "options"), [mapped(), mapped()])


def test_the_most_mass_outside_is_that_of_all_networks():
    wide, narrow = (Measured(made_up_runs.run(network=n), mapped().metrics) for n in (1, 2))
    narrow.metrics.loc[narrow.metrics["agent"] == "0", "value"] *= 2
    figure = drawn([wide, narrow], shows="maps")
    assert any("at most 50.3 %" in text.get_text() for text in figure.findobj(Text))


def test_contours_hold_the_stated_mass():
    mass = np.array([[0.4, 0.1], [0.3, 0.2]])
    assert posterior.find_mass_levels(mass, (0.5, 0.8)) == [0.2, 0.3]


def test_draws_outside_the_panel_are_counted():
    far = network(2)
    draws = far.metrics["metric"] == "draw_0"
    far.metrics.loc[draws & (far.metrics["agent"] == "1"), "value"] = [1.0, 2.0, 7.0, 9.0]
    titles = [axes.get_title(loc="left") for axes in visible(drawn([far]))]
    assert titles[1:] == ["(b) agent 1", "(c) agent 2\n50 % of the draws outside"]


def test_points_may_be_marked():
    figure = drawn([network(1)], marks=[[0.5, 1.0]], titles={1: "C-ULA"})
    crosses = [line.get_xydata().tolist() for axes in visible(figure) for line in axes.lines]
    assert crosses.count([[0.5, 1.0]]) == 2
