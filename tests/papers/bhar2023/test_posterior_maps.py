"""Maps of posteriors."""

import numpy as np
import pandas
import pytest

import everything
import made_up_runs
from concord.errors import ConcordError
from concord.options import build
from concord_studies.figures._exact import mass_levels
from concord_studies.results import Measured

posterior_maps = everything.kind("figures", "posterior_maps")


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
    assert mass_levels(mass, (0.5, 0.8)) == [0.2, 0.3]


def test_two_runs_cannot_share_a_map() -> None:
    with pytest.raises(ConcordError, match="would both be"):
        posterior_maps.draw(build(posterior_maps.Params, {}, "options"), [posterior(), posterior()])
