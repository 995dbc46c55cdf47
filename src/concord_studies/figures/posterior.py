"""Draws of agents about the exact posterior of two parameters: dots, or maps of their density.

The first panel is the exact posterior, each further one an agent of a run; contours enclose parts
of the exact mass. Dots are up to 1500 draws of one chain (metric family ``posterior_draws``), maps
the density of all draws (``posterior_density``, which both need).

What a researcher writes in a paper's YAML (Parayil et al., Fig 1; Bhar et al., Fig 1)::

    { networks: agents, titles: { 1: C-ULA }, distance: sinkhorn, symbol: Sinkhorn }
    { shows: maps, distance: w1_marginal, printed: [0.1089, 0.0942] }

A network's panels are titled by its entry of ``titles``, and by the agent if it has several.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from concord.errors import ConcordError
from concord.options import Count, Options, Some
from concord_studies import results, selection, words
from concord_studies.contracts import Read
from concord_studies.figures import style
from concord_studies.figures.panels import Panels, arrange_panels
from concord_studies.option_notes import NamesLabel
from concord_studies.results import Measured

EXACT = "posterior"
MASS = (0.5, 0.8, 0.95)  # parts of the exact mass that contours enclose
LINE: dict[str, Any] = {"color": style.VERMILION, "linewidth": 0.8}
MAP = LinearSegmentedColormap.from_list("density", ["#ffffff", "#9ecae1", style.BLUE, "#08306b"])
_DOT: dict[str, Any] = {"color": style.BLUE, "marker": "o", "markersize": 1.2, "linestyle": ""}
_DOT |= {"markeredgewidth": 0, "alpha": 0.35, "rasterized": True}
_CROSS: dict[str, Any] = {**style.CROSS, "color": style.BLACK}


class Params(Options):
    """Options of a figure of draws about the exact posterior; see the module's text."""

    shows: Annotated[Literal["dots", "maps"], "how draws are shown"] = "dots"
    networks: Annotated[
        str | None, NamesLabel("label of the runs, one network each; none: a single run")
    ] = None
    titles: Annotated[dict | None, "titles of networks by the label's value"] = None
    agents: Annotated[Some[int] | None, "agents with a panel; none: all"] = None
    columns: Annotated[Count, "panels side by side"] = 3
    distance: Annotated[str | None, "metric written in each agent's title"] = None
    floor: Annotated[str | None, "metric of exact draws, written in the exact panel's"] = None
    symbol: Annotated[str, "how these metrics are called there"] = "$W_1$"
    printed: Annotated[
        Some[float | str] | None, "printed values of the metric, one for each agent's panel"
    ] = None
    marks: Annotated[tuple[tuple[float, float], ...], "modes in print, marked by a cross"] = ()


def reads(params: Params) -> list[Read]:
    """Return the metrics that the runs of the figure must have."""
    drawn = ["density"] if params.shows == "maps" else ["draw_0", "density"]
    names = [*drawn, *(name for name in (params.distance, params.floor) if name)]
    return [Read(name) for name in names]


@style.marks_divergence
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw the exact posterior, then each agent of each run (a network) in a panel of its own."""
    title = "exact posterior" + _format_distance(runs[0], params.floor, "network", "floor")
    shown = [(title, runs[0], EXACT)]
    for value, group in selection.split(runs, params.networks):
        what = f"network {params.networks} = {value}" if params.networks else "the figure"
        run = selection.take_single(group, what)
        shown += _list_panels(run, value, params, len(shown) - 1)
    cells = arrange_panels(((title, [run]) for title, run, _ in shown), params.columns)
    panels = Panels(cells, 1.75 if params.columns > 3 else 2.05, width="full")
    outside, frame = [], ExactDensity(runs[0])
    for axes, (_, run, agent) in zip(panels.axes, shown, strict=True):
        exact = ExactDensity(run)
        if agent == EXACT or params.shows == "maps":
            density = results.series(run, "density", agent).value
            shades = exact.shade(axes, density)
            outside += [1 - density.sum() * exact.area] * (agent != EXACT)
        else:
            x, y = (results.series(run, f"draw_{d}", agent).value for d in range(2))
            axes.plot(x, y, zorder=1.5, **_DOT)
            share = 100 * (~exact.contains(x, y)).mean()
            if share >= 1:
                title = axes.get_title(loc="left")
                axes.set_title(f"{title}\n{share:.0f} % of the draws outside")
        exact.contour(axes)
        axes.set(xlim=frame.edges[0][[0, -1]], ylim=frame.edges[1][[0, -1]])
        for at in params.marks:
            axes.plot(*at, **_CROSS)
    if params.shows == "maps":
        bar = panels.figure.colorbar(shades, ax=panels.axes, aspect=40, pad=0.01)
        bar.set_label("density", fontsize=style.RC["axes.labelsize"])
        bar.outline.set_linewidth(style.RC["axes.linewidth"])
    panels.label(r"$\theta_1$", r"$\theta_2$")
    return panels.with_legend([*_list_entries(params, outside)])


def _list_entries(params: Params, outside: Sequence[float]) -> Iterator[Artist]:
    """Yield the legend's entries.

    outside: the share of draws outside of the grid, for each map.
    """
    parts = ", ".join(f"{100 * part:g}" for part in MASS)
    yield style.entry(f"contours: {parts} % of the exact posterior", **LINE)
    if params.marks:
        yield style.entry("modes in print", **_CROSS)
    if params.shows == "dots":
        yield style.entry("draws of one chain", **{**_DOT, "markersize": 3, "alpha": 1})
        return
    share = 100 * max(outside)
    if share >= 0.05:
        text = f"at most {share:.1f} % of an agent's draws lie outside the panels"
        yield style.entry(text, linestyle="")


def _list_panels(
    run: Measured, value: Any, params: Params, panels_before: int
) -> list[tuple[str, Measured, str]]:
    """Return the title, run and agent of each panel of one run.

    value: the run's value of the label ``networks``. panels_before: the number of panels of earlier
    runs, whose printed values are skipped.
    """
    metric = "density" if params.shows == "maps" else "draw_0"
    table = run.metrics[(run.metrics["metric"] == metric).to_numpy()]
    if table.empty:
        raise ConcordError(f"run {run.name} has no draws; add 'posterior_draws' to its metrics")
    agents = [str(agent) for agent in dict.fromkeys(table["agent"]) if agent != EXACT]
    if params.agents is not None:
        agents = [str(agent) for agent in params.agents if len(agents) > 1] or agents
    titles = {str(key): text for key, text in (params.titles or {}).items()}
    network, printed, panels = titles.get(str(value)), params.printed or (), []
    for place, agent in enumerate(agents, start=panels_before):
        text = ", ".join(filter(None, (network, words.agent(agent))))
        if len(agents) == 1 and params.networks:
            text = network or style.name(params.networks, value)
        text += _format_distance(run, params.distance, agent, params.symbol)
        if params.distance and place < len(printed):
            text += f", print {printed[place]}"
        panels.append((text, run, agent))
    return panels


def _format_distance(run: Measured, metric: str | None, agent: str, symbol: str) -> str:
    """Return a title's line, "symbol 0.12 ± 0.01", of a metric's last value. "" without one."""
    if metric is None:
        return ""
    distance = results.series(run, metric, agent)
    value, lo, hi = distance.value[-1], distance.lo[-1], distance.hi[-1]
    half = (hi - lo) / 2
    if not half > 0:
        return f"\n{symbol} {value:.3f}"
    digits = max(0, -int(np.floor(np.log10(half / 2))))  # of the half width one, of 0.012 two
    return f"\n{symbol} {value:.{digits}f} ± {half:.{digits}f}"


def find_mass_levels(density: np.ndarray, mass: Sequence[float]) -> list[float]:
    """Return the levels, ascending, above which the given parts of a density's mass lie."""
    falling = np.sort(density, axis=None)[::-1]
    below = np.cumsum(falling) / falling.sum()
    return sorted({float(falling[np.searchsorted(below, part)]) for part in mass})


class ExactDensity:
    """The exact posterior density of a run on a grid of cells of the two parameters.

    edges: of the cells along each parameter, two arrays of shape (cells + 1,).
    density: (cells of the first, cells of the second parameter).
    """

    def __init__(self, run: Measured) -> None:
        cells = [results.series(run, f"cell_{axis}", "network") for axis in range(2)]
        self.edges = [np.append(cell.lo, cell.hi[-1]) for cell in cells]
        density = results.series(run, "density", EXACT).value
        self.density = density.reshape([len(cell.value) for cell in cells])

    @property
    def area(self) -> float:
        """The area of one cell of the grid."""
        return float(np.prod([edge[1] - edge[0] for edge in self.edges]))

    def contains(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return a mask of the points (x, y) that lie on the grid."""
        inside = [(e[0] <= v) & (v <= e[-1]) for e, v in zip(self.edges, (x, y), strict=True)]
        return np.logical_and(*inside)

    def shade(self, axes: Axes, density: np.ndarray) -> QuadMesh:
        """Draw a density of the grid's cells as a map, on the color scale of the exact density."""
        values, top = density.reshape(self.density.shape).T, 1.05 * self.density.max()
        return axes.pcolormesh(*self.edges, values, cmap=MAP, vmin=0, vmax=top, rasterized=True)

    def contour(self, axes: Axes) -> None:
        """Draw the contours of the exact density."""
        centers = [0.5 * (edge[1:] + edge[:-1]) for edge in self.edges]
        levels = find_mass_levels(self.density, MASS)
        look = {"colors": LINE["color"], "linewidths": LINE["linewidth"]}
        axes.contour(*centers, self.density.T, levels=levels, **look)
        axes.locator_params(nbins=5)
        axes.grid(False)
