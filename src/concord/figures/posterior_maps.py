"""Posteriors of two parameters: a map of each agent's draws under contours of the exact density.

Drawn from the metric family ``posterior_density``; the first panel is the exact posterior. The
contours enclose the stated parts of the exact posterior's mass.

What a researcher writes in a paper's YAML (Bhar et al., Fig 1)::

    agents: [0, 1, 2, 3, 4]
    distance: w1_marginal
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from concord import results, selection
from concord.contracts import Read
from concord.figures import _panels, style
from concord.figures._options import AxisNames, Mass
from concord.options import NamesRuns, Options, Some
from concord.results import Measured

KIND = "figure posterior_maps"
EXACT = "posterior"


class Params(Options):
    """Options of a figure of posterior maps."""

    agents: Annotated[Some[int] | None, "agents with a panel; none: all"] = None
    select: Annotated[dict | None, NamesRuns("the run drawn: {label: value}")] = None
    mass: Mass = (0.5, 0.8, 0.95)
    distance: Annotated[str | None, "metric written in each agent's panel"] = None
    symbol: Annotated[str, "how that metric is called there"] = "$W_1$"
    printed: Annotated[
        Some[float] | None, "printed values of that metric, one for each agent, written beside it"
    ] = None
    axes: AxisNames = (r"$\theta_1$", r"$\theta_2$")


def reads(params: Params) -> list[Read]:
    """Return the metrics that the runs must have."""
    names = ["density", *([params.distance] if params.distance else [])]
    return [Read(name, params.select, params.agents or ()) for name in names]


@style.marks_divergence
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw the figure.

    Raises
    ------
    ConcordError
        If the run lacks ``density`` or an agent, or there is more than one run.
    """
    run = selection.only(selection.select(runs, params.select, KIND), "the figure", KIND)
    table = run.metrics[(run.metrics["metric"] == "density").to_numpy()]
    agents = params.agents
    if agents is None:
        agents = tuple(int(a) for a in dict.fromkeys(table["agent"]) if a != EXACT)
    shown: list[int | str] = [EXACT, *agents]
    places = _panels.wrap(len(shown))
    cells = [
        _panels.Cell(_title(run, agent, params), [run], *place)
        for agent, place in zip(shown, places, strict=True)
    ]
    figure, panels = _panels.axes_of(cells, "all", "full", 2.05)
    edges = [grid_edges(run, axis) for axis in range(2)]
    shape = tuple(len(edge) - 1 for edge in edges)
    exact = results.series(run, "density", EXACT, KIND, "posterior_density").value.reshape(shape)
    levels = mass_levels(exact, params.mass)
    for agent, axes in zip(shown, panels, strict=True):
        density = results.series(run, "density", agent, KIND, "posterior_density").value
        _map(axes, edges, density.reshape(shape), exact, levels)
    area = np.prod([edge[1] - edge[0] for edge in edges])
    inside = [
        float(results.series(run, "density", agent, KIND, "posterior_density").value.sum() * area)
        for agent in agents
    ]
    shade = figure.colorbar(panels[0].collections[0], ax=panels, aspect=40, pad=0.01)
    shade.set_label("density", fontsize=style.RC["axes.labelsize"])
    shade.outline.set_linewidth(style.RC["axes.linewidth"])
    _panels.label(cells, panels, "all", params.axes[0], params.axes[1])
    parts = ", ".join(f"{100 * part:g}" for part in params.mass)
    text = f"contours around {parts} % of the exact posterior"
    handles = [style.entry(text, color=style.VERMILLION, linewidth=_LINE)]
    outside = 100 * (1 - min(inside))
    if outside >= 0.05:
        text = f"at most {outside:.1f} % of an agent's draws lie outside the panels"
        handles.append(style.entry(text, linestyle=""))
    style.legend_of(figure, handles)
    return figure


def _title(run: Measured, agent: int | str, params: Params) -> str:
    if agent == EXACT:
        return "exact posterior"
    text = style.name("agent", agent)
    if params.distance is None:
        return text
    distance = results.series(run, params.distance, agent, KIND)
    value, lo, hi = distance.value[-1], distance.lo[-1], distance.hi[-1]
    spread = f" ± {(hi - lo) / 2:.3f}" if np.isfinite(lo) else ""
    number = int(agent)
    known = params.printed is not None and number < len(params.printed)
    printed = f", print {params.printed[number]:g}" if known and params.printed else ""
    return f"{text}\n{params.symbol} {value:.3f}{spread}{printed}"


def grid_edges(run: Measured, axis: int) -> np.ndarray:
    """Return the edges of the coarse grid's cells along an axis."""
    cells = results.series(run, f"cell_{axis}", "network", KIND, "posterior_density")
    return np.append(cells.lo, cells.hi[-1])


def mass_levels(density: np.ndarray, mass: Sequence[float]) -> list[float]:
    """Return the densities whose upper level sets hold the given parts of the mass."""
    falling = np.sort(density, axis=None)[::-1]
    held = np.cumsum(falling) / falling.sum()
    return sorted({float(falling[np.searchsorted(held, part)]) for part in mass})


_LINE = 0.8
MAP = LinearSegmentedColormap.from_list("density", ["#ffffff", "#9ecae1", style.BLUE, "#08306b"])


def _map(
    axes: Axes,
    edges: Sequence[np.ndarray],
    density: np.ndarray,
    exact: np.ndarray,
    levels: Sequence[float],
) -> None:
    axes.pcolormesh(
        edges[0], edges[1], density.T, cmap=MAP, vmin=0, vmax=1.05 * exact.max(), rasterized=True
    )
    centers = [0.5 * (edge[1:] + edge[:-1]) for edge in edges]
    axes.contour(*centers, exact.T, levels=levels, colors=style.VERMILLION, linewidths=_LINE)
    axes.grid(False)
