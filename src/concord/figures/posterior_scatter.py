"""Draws of each agent of one or more networks under contours of the exact density.

Drawn from the metric families ``posterior_draws`` (up to 1500 draws of one chain) and
``posterior_density`` (the exact density); the first panel is the exact posterior. The contours
enclose the stated parts of the exact posterior's mass.

What a researcher writes in a paper's YAML (Parayil et al., Fig 1)::

    networks: agents
    titles: { 1: C-ULA }

A network's panels are titled by its entry of ``titles``, and by the agent if it has several.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from concord import results, selection, words
from concord.contracts import Read
from concord.errors import ConcordError
from concord.figures import _panels, posterior_maps, style
from concord.figures._options import AxisNames, Mass, Select
from concord.options import Count, NamesLabel, Options, Some
from concord.results import Measured

KIND = "figure posterior_scatter"


class Params(Options):
    """Options of a figure of draws over exact contours."""

    networks: Annotated[str, NamesLabel("label of the runs, one network each, in this order")] = (
        "agents"
    )
    titles: Annotated[dict | None, "titles of networks by the label's value"] = None
    agents: Annotated[Some[int] | None, "agents with a panel; none: all"] = None
    select: Select = None
    mass: Mass = (0.5, 0.8, 0.95)
    axes: AxisNames = (r"$\theta_1$", r"$\theta_2$")
    columns: Annotated[Count, "panels side by side"] = 4
    distance: Annotated[str | None, "metric written in each agent's panel"] = None
    floor: Annotated[str | None, "metric of exact draws, written in the exact panel"] = None
    symbol: Annotated[str, "how these metrics are called there"] = "distance"


def reads(params: Params) -> list[Read]:
    """Return the metrics that the runs must have."""
    names = [name for name in (params.distance, params.floor) if name]
    return [Read(name, params.select) for name in ("draw_0", "density", *names)]


@style.marks_divergence
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw the figure.

    Raises
    ------
    ConcordError
        If a run lacks draws, the density or an agent, or if two runs would be one network.
    """
    chosen = selection.select(runs, params.select, KIND)
    title = "exact posterior" + _distance(chosen[0], params.floor, "network", "floor")
    shown: list[tuple[str, Measured, str | None]] = [(title, chosen[0], None)]
    for value, group in selection.split(chosen, params.networks, KIND):
        run = selection.only(group, f"network {params.networks} = {value}", KIND)
        shown += [(title, run, agent) for title, agent in _titles(run, value, params)]
    cells = [
        _panels.Cell(title, [run], *place)
        for place, (title, run, _) in zip(
            _panels.wrap(len(shown), params.columns), shown, strict=True
        )
    ]
    figure, panels = _panels.axes_of(cells, "all", "full", 1.75)
    for axes, (_, run, agent) in zip(panels, shown, strict=True):
        _panel(axes, run, agent, params)
    for axes in panels[1:]:
        axes.set_xlim(panels[0].get_xlim())
    _panels.label(cells, panels, "all", params.axes[0], params.axes[1])
    parts = ", ".join(f"{100 * part:g}" for part in params.mass)
    style.legend_of(
        figure,
        [
            style.entry(f"contours: {parts} % of the exact mass", **_LINE),
            style.entry("draws of one chain", linestyle="", **{**_DOT, "markersize": 3}),
        ],
    )
    return figure


def _titles(run: Measured, value: Any, params: Params) -> list[tuple[str, str]]:
    """Return title and agent of each panel of a network."""
    table = run.metrics[(run.metrics["metric"] == "draw_0").to_numpy()]
    if table.empty:
        raise ConcordError(
            f"{KIND}: run {run.name} has no draws; add 'posterior_draws' to its metrics"
        )
    agents = [str(agent) for agent in dict.fromkeys(table["agent"])]
    if params.agents is not None:
        agents = [str(agent) for agent in params.agents if len(agents) > 1] or agents
    titles: Mapping[str, str] = {str(key): text for key, text in (params.titles or {}).items()}
    own = titles.get(str(value))
    if len(agents) == 1:
        said = [own or style.name(params.networks, value)]
    else:
        said = [(f"{own}, " if own else "") + words.agent(agent) for agent in agents]
    return [
        (text + _distance(run, params.distance, agent, params.symbol), agent)
        for text, agent in zip(said, agents, strict=True)
    ]


def _distance(run: Measured, metric: str | None, agent: str, symbol: str) -> str:
    if metric is None:
        return ""
    return f"\n{symbol} {results.series(run, metric, agent, KIND).value[-1]:.3f}"


def _panel(axes: Axes, run: Measured, agent: str | None, params: Params) -> None:
    edges = [posterior_maps.grid_edges(run, axis) for axis in range(2)]
    shape = tuple(len(edge) - 1 for edge in edges)
    table = results.series(run, "density", posterior_maps.EXACT, KIND, "posterior_density")
    exact = table.value.reshape(shape)
    if agent is None:
        colors = posterior_maps.MAP
        axes.pcolormesh(edges[0], edges[1], exact.T, cmap=colors, vmin=0, rasterized=True)
    else:
        first, second = (
            results.series(run, f"draw_{d}", agent, KIND, "posterior_draws").value for d in range(2)
        )
        axes.plot(first, second, linestyle="", zorder=3, **_DOT)
    centers = [0.5 * (edge[1:] + edge[:-1]) for edge in edges]
    levels = posterior_maps.mass_levels(exact, params.mass)
    axes.contour(
        *centers, exact.T, levels=levels, colors=_LINE["color"], linewidths=_LINE["linewidth"]
    )
    axes.set_xlim(edges[0][0], edges[0][-1])
    axes.set_ylim(edges[1][0], edges[1][-1])
    axes.grid(visible=False)


_LINE: dict[str, Any] = {"color": style.VERMILLION, "linewidth": 0.8}
_DOT: dict[str, Any] = {
    "color": style.BLUE,
    "marker": "o",
    "markersize": 1,
    "markeredgewidth": 0,
    "alpha": 0.5,
    "rasterized": True,
}
