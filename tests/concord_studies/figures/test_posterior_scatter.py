"""Draws of several networks under exact contours."""

import numpy as np
import pandas
import pytest

import made_up_runs
from concord.errors import ConcordError
from concord.options import build
from concord_studies.figures import posterior_scatter
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
    return posterior_scatter.draw(
        build(posterior_scatter.Params, {"networks": "network", **options}, "options"), runs
    )


def visible(figure):
    return [axes for axes in figure.axes if axes.get_visible()]


def test_the_exact_panel_comes_first_then_every_agent_of_every_network():
    figure = drawn([network(1), network(2)], titles={1: "C-ULA", 2: "D-ULA"})
    panels = visible(figure)
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


def test_two_runs_of_one_network_are_refused():
    with pytest.raises(ConcordError, match="would both be network network = 2"):
        drawn([network(2), network(2)])


def test_a_run_without_draws_is_told_what_to_record():
    run = network(2)
    bare = Measured(run.run, run.metrics[~run.metrics["metric"].str.startswith("draw_")])
    with pytest.raises(ConcordError, match="posterior_draws"):
        drawn([bare])
