"""Draws of each agent of one or more networks under contours of the exact density.

Drawn from the metric families ``posterior_draws`` (up to 1500 draws of one chain) and
``posterior_density`` (the exact density); the first panel is the exact posterior. The contours
enclose the stated parts of the exact posterior's mass.

What a researcher writes in a paper's YAML (Parayil et al., Fig 1)::

    networks: agents
    titles: { 1: C-ULA }

A network's panels are titled by its entry of ``titles``, and by the agent if it has several.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from matplotlib.figure import Figure

from concord.errors import ConcordError
from concord.options import Count, Options, Some
from concord_studies import results, selection, words
from concord_studies.contracts import Read
from concord_studies.figures import style
from concord_studies.figures._exact import LINE, Exact
from concord_studies.figures._options import AxisNames, Mass, Select
from concord_studies.figures._panels import Panels, listed
from concord_studies.option_notes import NamesLabel
from concord_studies.results import Measured


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
    """Return the metrics that the runs of the figure must have."""
    names = [name for name in (params.distance, params.floor) if name]
    return [Read(name, params.select) for name in ("draw_0", "density", *names)]


@style.marks_divergence
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw the figure, with panels of each run, which is one network."""
    chosen = selection.select(runs, params.select)
    title = "exact posterior" + _distance(chosen[0], params.floor, "network", "floor")
    shown: list[tuple[str, Measured, str | None]] = [(title, chosen[0], None)]
    for value, group in selection.split(chosen, params.networks):
        run = selection.only(group, f"network {params.networks} = {value}")
        shown += [(title, run, agent) for title, agent in _titles(run, value, params)]
    cells = listed(((title, [run]) for title, run, _ in shown), params.columns)
    panels = Panels(cells, 1.75, width="full")
    for axes, (_, run, agent) in zip(panels.axes, shown, strict=True):
        exact = Exact.from_run(run, params.mass)
        if agent is None:
            exact.shade(axes, exact.density)
        else:
            draws = (results.series(run, f"draw_{d}", agent).value for d in range(2))
            axes.plot(*draws, linestyle="", zorder=3, **_DOT)
        exact.contour(axes)
        axes.set_xlim(exact.edges[0][0], exact.edges[0][-1])
        axes.set_ylim(exact.edges[1][0], exact.edges[1][-1])
    for axes in panels.axes[1:]:
        axes.set_xlim(panels.axes[0].get_xlim())
    panels.label(*params.axes)
    parts = ", ".join(f"{100 * part:g}" for part in params.mass)
    lines = style.entry(f"contours: {parts} % of the exact mass", **LINE)
    dots = style.entry("draws of one chain", linestyle="", **{**_DOT, "markersize": 3})
    return panels.with_legend([lines, dots])


def _titles(run: Measured, value: Any, params: Params) -> list[tuple[str, str]]:
    """Return title and agent of each panel of a network."""
    table = run.metrics[(run.metrics["metric"] == "draw_0").to_numpy()]
    if table.empty:
        raise ConcordError(f"run {run.name} has no draws; add 'posterior_draws' to its metrics")
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
    """Return the title's line with an agent's last distance; "" without a metric."""
    if metric is None:
        return ""
    return f"\n{symbol} {results.series(run, metric, agent).value[-1]:.3f}"


_DOT: dict[str, Any] = {
    "color": style.BLUE,
    "marker": "o",
    "markersize": 1,
    "markeredgewidth": 0,
    "alpha": 0.5,
    "rasterized": True,
}
