"""Curves of the accuracy of agents' predictions, mean and spread over chains.

Over iterations, or what the network has paid: ``accuracy_mean`` of the chosen agents with a band of
one standard deviation over chains (``accuracy_sd``), that of every other recorded agent as a
hairline. Accuracies above ``stretch`` take half of the axis, on gray, so that what ends near 1 can
be told apart.

What a researcher writes in a paper's YAML (Tzikas et al., Fig 6)::

    rows: agents
    columns: topology
    lines: sampler
    ylim: [0.4, 1.0]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from msgspec import Meta

from concord import results, selection
from concord.contracts import Read
from concord.figures import _panels, _prices, style
from concord.figures._options import Columns, Limits, Names, Rows, Scale, Select, Width
from concord.figures._prices import Price
from concord.options import NamesLabel, Options, Some
from concord.results import Measured

KIND = "figure accuracy_curves"


class Params(Options):
    """Options of a figure of accuracy curves."""

    rows: Rows = None
    columns: Columns = None
    select: Select = None
    lines: Annotated[str, NamesLabel("label that colors tell apart")] = "sampler"
    agents: Annotated[Some[int], "agents drawn with a band"] = (0,)
    others: Annotated[bool, "draw the means of all other recorded agents as hairlines"] = True
    x: Price = "iteration"
    xscale: Annotated[Scale, "scale of x"] = "linear"
    xlim: Annotated[Limits, "[low, high] of x"] = None
    ylim: Annotated[Limits, "[low, high] of the accuracy"] = None
    stretch: Annotated[
        Annotated[float, Meta(gt=0, lt=1)] | None, "accuracies above it take half of the axis"
    ] = None
    width: Width = "auto"
    names: Names = None


def reads(params: Params) -> list[Read]:
    """Return the metrics that the runs must have."""
    names = "accuracy_mean", "accuracy_sd"
    paid = _prices.reads(params.x, params.select)
    return [*(Read(name, params.select, params.agents) for name in names), *paid]


@style.marks_divergence
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw the figure.

    Raises
    ------
    ConcordError
        If a run lacks ``accuracy_mean`` or an agent, or if two runs would be one line.
    """
    chosen = selection.select(runs, params.select, KIND)
    cells = _panels.cross(chosen, params.rows, params.columns, params.names, KIND)
    figure, axes = _panels.axes_of(cells, "all", params.width, 1.6 if len(cells) > 1 else 2.1)
    low, high = _panels.limits(params.ylim, f"{KIND}: ylim")
    first, last = _panels.limits(params.xlim, f"{KIND}: xlim")
    for cell, panel in zip(cells, axes, strict=True):
        lines = list(_panels.lines(cell.runs, chosen, params.lines, params.names))
        # The first last: it is the one that the figure is about.
        for order, (value, look, _, mine) in reversed(list(enumerate(lines))):
            if mine:
                what = f"line {params.lines} = {value} of panel {cell.title!r}"
                _draw_run(panel, selection.only(mine, what, KIND), look, params, order, len(lines))
        if params.stretch is not None:
            _stretch(panel, params.stretch, low or 0.0, high or 1.0)
        panel.set_ylim(low, high)
        panel.margins(x=0.02)
        panel.set_xlim(first, last)
    xlabel = _prices.axis(axes, params.x, params.xscale)
    _panels.label(cells, axes, "all", xlabel, "accuracy")
    style.legend_of(figure, _handles(params, chosen))
    return figure


def _draw_run(
    axes: Axes, run: Measured, look: style.Look, params: Params, order: int, lines: int
) -> None:
    if params.others:
        table = run.metrics[(run.metrics["metric"] == "accuracy_mean").to_numpy()]
        for agent, rows in table.groupby("agent", sort=False):
            if str(agent) not in map(str, params.agents):
                axes.plot(
                    _prices.along(run, rows["iteration"].to_numpy(float), params.x, KIND),
                    rows["value"],
                    color=look.color,
                    linewidth=_HAIR,
                    alpha=0.5,
                    zorder=1.7,
                    label="_agent",
                )
    for agent in params.agents:
        mean = results.series(run, "accuracy_mean", agent, KIND, "accuracy")
        sd = results.series(run, "accuracy_sd", agent, KIND, "accuracy").value
        lo, hi = mean.value - sd, np.minimum(mean.value + sd, 1.0)
        x = _prices.along(run, mean.iteration, params.x, KIND)
        axes.fill_between(x, lo, hi, color=look.color, **style.BAND, zorder=1.5)
        step = max(1, len(mean.iteration) // 6)
        axes.plot(
            x,
            mean.value,
            **look.line,
            markevery=(step * order // lines, step),
            zorder=2,
        )


def _stretch(axes: Axes, knee: float, low: float, high: float) -> None:
    """Give the accuracies above the knee as much room as those below."""
    ends, half = (low, knee, high), (0.0, 0.5, 1.0)

    def forward(values: np.ndarray) -> np.ndarray:
        return np.interp(values, ends, half, left=-1.0, right=2.0)

    def inverse(places: np.ndarray) -> np.ndarray:
        return np.interp(places, half, ends)

    axes.set_yscale("function", functions=(forward, inverse))
    axes.axhspan(knee, high, color="#f5f5f5", zorder=0)
    ticks = [*np.arange(low, knee - 0.12, 0.2), *np.linspace(knee, high, 3)]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in np.round(ticks, 3)])


_HAIR = 0.35


def _handles(params: Params, runs: Sequence[Measured]) -> list[Artist]:
    handles: list[Artist] = [
        style.entry(text, **look.line)
        for _, look, text, _ in _panels.lines(runs, runs, params.lines, params.names)
    ]
    who = ", ".join(style.name("agent", agent) for agent in params.agents)
    handles.append(Patch(color=style.GRAY, **style.BAND, label=f"{who}: mean ± 1 sd over chains"))
    if params.others:
        handles.append(style.entry("mean of each other agent", color=style.GRAY, linewidth=_HAIR))
    return handles
