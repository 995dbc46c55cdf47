"""How wide samplers' stationary distributions are, relative to the posterior: 1 is right.

Drawn from the metric family ``stationary``: the trace of an agent's covariance (filled) and of the
network average's (hollow) over the posterior's, with the numbers beside the marks. A point mass
(ratio 0) is an arrow at the left edge, a sampler without a stationary distribution a cross at the
right edge.

What a researcher writes in a paper's YAML::

    rows: agents
    columns: topology
    lines: sampler
    agent: 0
"""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from concord.options import Index, Options, Positive
from concord_studies import results, selection
from concord_studies.contracts import Read
from concord_studies.figures import style
from concord_studies.figures._options import Columns, Names, Rows, Select, Width
from concord_studies.figures._panels import Panels, cross, lines
from concord_studies.option_notes import NamesLabel
from concord_studies.results import AVERAGE, Measured


class Params(Options):
    """Options of a figure of stationary covariances."""

    rows: Rows = None
    columns: Columns = None
    select: Select = None
    lines: Annotated[str, NamesLabel("label with one line per value, from the top")] = "sampler"
    agent: Annotated[Index, "agent shown beside the average"] = 0
    xlim: Annotated[tuple[Positive, Positive], "[low, high] of the ratio"] = (0.1, 300.0)
    width: Width = "auto"
    names: Names = None


def reads(params: Params) -> list[Read]:
    """Return the metrics that the runs of the figure must have."""
    return [Read("stationary_trace", params.select, (params.agent, AVERAGE))]


@style.marks_divergence
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw the traces of stationary covariances over the posterior's, a line for each run."""
    chosen = selection.select(runs, params.select)
    cells = cross(chosen, params.names, params.columns, params.rows)
    values = selection.distinct(chosen, params.lines)
    panels = Panels(cells, 0.55 + 0.27 * len(values), width=params.width)
    low, high = params.xlim
    for cell, panel in panels:
        panel.set_xscale("log")
        panel.set_xlim(low, high)
        panel.set_ylim(len(values) - 0.4, -0.6)
        panel.set_yticks(range(len(values)))
        panel.set_yticklabels([style.name(params.lines, v, params.names) for v in values])
        panel.tick_params(axis="y", length=0)
        panel.axvspan(low, 1, color="#f2f2f2", zorder=0)
        panel.axvline(1, color="#222222", linewidth=0.9, zorder=1)
        panel.xaxis.set_major_locator(LogLocator(numticks=9))
        panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        panel.xaxis.set_minor_formatter(NullFormatter())
        panel.grid(visible=False, axis="y")
        own = lines(cell.runs, chosen, params.lines, params.names)
        for place, (value, look, _, mine) in enumerate(own):
            if mine:
                what = f"line {params.lines} = {value} of panel {cell.title!r}"
                run = selection.only(mine, what)
                _mark(panel, run, params.agent, place - 0.2, look.color, "full", (low, high))
                _mark(panel, run, AVERAGE, place + 0.2, look.color, "none", (low, high))
    panels.label("variance over the posterior's", "")
    markers = {line.get_marker() for panel in panels.axes for line in panel.lines}
    return panels.with_legend([h for h in _handles(params) if h.get_marker() in markers])


def _mark(
    axes: Axes,
    run: Measured,
    agent: int | str,
    height: float,
    color: str,
    fill: Any,
    edges: tuple[float, float],
) -> None:
    """Draw the trace of an agent's stationary covariance as a point at a height."""
    low, high = edges
    trace = float(results.series(run, "stationary_trace", agent).value[-1])
    marker: dict[str, Any] = {"color": color, "markersize": 4.5, "fillstyle": fill, "zorder": 3}
    if not np.isfinite(trace):
        axes.plot([high], [height], marker="x", clip_on=False, **marker)
        return
    if trace < low:
        axes.plot([low], [height], marker="<", clip_on=False, **marker)
    left = 0.4 < trace < 1  # or the line at 1 would cross it
    axes.annotate(
        f"{trace:.{2 if trace < 2 else 1 if trace < 10 else 0}f}" if trace >= low else "0",
        (min(max(trace, low), high), height),
        (-4 if left else 4, 0),
        textcoords="offset points",
        ha="right" if left else "left",
        va="center_baseline",
        fontsize=style.SMALL,
        color=style.darken(color),
    )
    if trace < low:
        return
    shape: dict[str, Any] = {"marker": "D" if agent == AVERAGE else "o"}
    if agent == AVERAGE:
        shape |= {"markerfacecolor": "white", "fillstyle": "full", "markersize": 3.8}
    axes.plot([min(trace, high)], [height], clip_on=False, **{**marker, **shape})


def _handles(params: Params) -> list[Line2D]:
    """Return the legend's entries of the agent, the average and missing laws."""
    gray: dict[str, Any] = {"color": style.GRAY, "linestyle": ""}
    return [
        style.entry(style.name("agent", params.agent), marker="o", **gray),
        style.entry("average", marker="D", markerfacecolor="white", **gray),
        style.entry("a point: no spread at all", marker="<", **gray),
        style.entry("no stationary law", marker="x", **gray),
    ]
