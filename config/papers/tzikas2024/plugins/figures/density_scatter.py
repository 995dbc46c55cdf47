"""Draws of several agents at a few iterations, over the density of the posterior (one dimension).

Drawn from the metric family ``draws``: every chain's position is a tick on its agent's line, with
the density of the agent's exact law above it, scaled to the room between two lines; the posterior's
density is the gray area behind. All panels share the axis of positions, so that motion is seen.

What a researcher writes in a paper's YAML (Tzikas et al., Fig 5)::

    rows: reading
    iterations: [0, 1, 2, 5, 50]
"""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from concord.options import Index, Options, Some
from concord_studies import results, selection
from concord_studies.contracts import Read
from concord_studies.figures import style
from concord_studies.figures._options import Names, Rows, Select
from concord_studies.option_notes import NamesIterations
from concord_studies.results import Measured


class Params(Options):
    """Options of a figure of draws over the posterior's density."""

    rows: Rows = None
    select: Select = None
    agents: Annotated[Some[int], "agents drawn, one line of ticks each"] = (0, 1, 2, 3, 4)
    iterations: Annotated[
        Some[Index] | None,
        NamesIterations("iterations, one column of panels each; none: all recorded"),
    ] = None
    xlim: Annotated[tuple[float, float] | None, "[low, high] of the positions"] = None
    names: Names = None


def reads(params: Params) -> list[Read]:
    """Return the metrics that the runs of the figure must have."""
    names = "posterior_mean", "posterior_sd"
    return [
        Read("draw", params.select, params.agents),
        *(Read(name, params.select) for name in names),
    ]


@style.marks_divergence
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw agents' draws and laws over the posterior's density, a row for each run."""
    chosen = selection.select(runs, params.select)
    groups = selection.split(chosen, params.rows)
    first = results.series(chosen[0], "draw", params.agents[0]).iteration
    recorded = [int(k) for k in np.unique(first)]
    # Smoke scale runs fewer iterations.
    iterations = [k for k in params.iterations or recorded if k in recorded] or recorded
    size = (style.FULL, 1.25 * len(groups) + 0.2)
    figure = Figure(figsize=size, layout="constrained")
    table = figure.subplots(len(groups), len(iterations), squeeze=False, sharex=True, sharey=True)
    for row, (value, group) in enumerate(groups):
        run = selection.only(group, f"row {params.rows} = {value}")
        for column, k in enumerate(iterations):
            axes = table[row, column]
            _draw_panel(axes, run, k, params)
            if row == 0:
                axes.set_title(f"$k$ = {k}")
            if row == len(groups) - 1:
                axes.set_xlabel("$x$")
        text = style.name(params.rows, value, params.names) if params.rows else ""
        table[row, 0].set_ylabel(f"{text}\nagent".strip(), fontsize=style.RC["axes.labelsize"])
    heights = [_height(place, params) for place in range(len(params.agents))]
    table[0, 0].set_yticks(heights, [str(agent + 1) for agent in params.agents])
    table[0, 0].set_ylim(0, 1.05)
    if params.xlim is not None:
        table[0, 0].set_xlim(*params.xlim)
    style.legend_of(figure, _handles(chosen))
    return figure


def _draw_panel(axes: Axes, run: Measured, k: int, params: Params) -> None:
    """Draw the posterior's density and the agents' draws of a run at iteration k."""
    center, width = (
        results.series(run, name, "network").value[0] for name in ("posterior_mean", "posterior_sd")
    )
    axes.fill_between(*_bell(center, width, 4.5), **_POSTERIOR)
    looks = style.looks("agent", params.agents)
    for place, (agent, look) in enumerate(zip(params.agents, looks, strict=True)):
        here = _at(run, "draw", agent, k)
        height = _height(place, params)
        axes.plot(
            here,
            np.full(len(here), height),
            linestyle="",
            marker="|",
            markersize=5.5,
            markeredgewidth=0.35,
            color=look.color,
            alpha=0.5,
            zorder=2,
        )
        if len(run.values("law_sd")):
            mean, sd = (_at(run, name, agent, k)[0] for name in ("law_mean", "law_sd"))
            if 0 < sd < np.inf:
                x, density = _bell(mean, sd, 4)
                room = 0.8 * (_height(1, params) - _height(0, params))
                axes.plot(x, height + room * density, color=look.color, linewidth=0.8, zorder=1.8)
    axes.grid(visible=False)


def _at(run: Measured, metric: str, agent: int, k: int) -> np.ndarray:
    """Return a metric's values of an agent at iteration k."""
    series = results.series(run, metric, agent)
    return series.value[series.iteration == k]


def _bell(mean: float, sd: float, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """Return x and a normal density of height one, up to ``reach`` standard deviations."""
    x = np.linspace(mean - reach * sd, mean + reach * sd, 200)
    return x, np.exp(-0.5 * ((x - mean) / sd) ** 2)


def _height(place: int, params: Params) -> float:
    """Return the height at which the agent at a place has its ticks, on the density axis."""
    return (place + 0.6) / (len(params.agents) + 0.5)


_POSTERIOR: dict[str, Any] = {"color": "#d0d0d0", "linewidth": 0, "zorder": 1}


def _handles(runs: Sequence[Measured]) -> list[Artist]:
    """Return the legend's entries of draws, posterior and exact laws."""
    tick: dict[str, Any] = {"linestyle": "", "marker": "|", "markersize": 6}
    handles: list[Artist] = [
        style.entry("a chain", color=style.AGENTS[0], **tick),
        Patch(color="#d0d0d0", label="posterior density (scaled)"),
    ]
    if any(len(run.values("law_sd")) for run in runs):
        text = "exact law of an agent (scaled)"
        handles.append(style.entry(text, color=style.AGENTS[0], linewidth=0.8))
    return handles
