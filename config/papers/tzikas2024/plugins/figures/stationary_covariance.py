"""How wide samplers' stationary distributions are, relative to the posterior: 1 is right.

Drawn from the metric family ``stationary``: the trace of an agent's covariance (filled) and of the
network average's (hollow) over the posterior's, with the numbers beside the marks. A point mass
(ratio 0) is an arrow at the left edge, a sampler without a stationary distribution a cross at the
right edge.

What a researcher writes in a paper's YAML::

    rows: agents
    columns: topology
    lines: sampler
"""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from concord.options import Options
from concord_studies import results, selection
from concord_studies.contracts import Read
from concord_studies.figures import style
from concord_studies.figures.panels import (
    Columns,
    Names,
    Panels,
    Rows,
    Select,
    cross_panels,
    split_lines,
)
from concord_studies.option_notes import NamesLabel
from concord_studies.results import AVERAGE, Measured


class Params(Options):
    """Options of a figure of stationary covariances."""

    rows: Rows = None
    columns: Columns = None
    select: Select = None
    lines: Annotated[str, NamesLabel("label with one line per value, from the top")] = "sampler"
    names: Names = None


AGENT = 0  # shown beside the average
LOW, HIGH = 0.1, 300.0  # the ratios on the axis


def reads(params: Params) -> list[Read]:
    """Return the metrics that the runs of the figure must have."""
    return [Read("stationary_trace", params.select, (AGENT, AVERAGE))]


@style.marks_divergence
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw the traces of stationary covariances over the posterior's, a line for each run."""
    chosen = selection.select(runs, params.select)
    cells = cross_panels(chosen, params.names, params.columns, params.rows)
    names = [
        style.name(params.lines, value, params.names)
        for value in selection.distinct(chosen, params.lines)
    ]
    panels = Panels(cells, 0.55 + 0.27 * len(names))
    for cell, panel in panels:
        panel.set_xscale("log")
        panel.set_xlim(LOW, HIGH)
        panel.set_ylim(len(names) - 0.4, -0.6)
        panel.set_yticks(range(len(names)), names)
        panel.tick_params(axis="y", length=0)
        panel.axvspan(LOW, 1, color="#f2f2f2", zorder=0)
        panel.axvline(1, color="#222222", linewidth=0.9, zorder=1)
        panel.xaxis.set_major_locator(LogLocator(numticks=9))
        panel.xaxis.set_major_formatter("{x:g}")
        panel.xaxis.set_minor_formatter(NullFormatter())
        panel.grid(visible=False, axis="y")
        all_lines = split_lines(cell.runs, chosen, params.lines, params.names)
        for place, (value, look, _, line_runs) in enumerate(all_lines):
            if line_runs:
                what = f"line {params.lines} = {value} of panel {cell.title!r}"
                run = selection.take_single(line_runs, what)
                _mark_trace(panel, run, AGENT, place - 0.2, look.color)
                _mark_trace(panel, run, AVERAGE, place + 0.2, look.color)
    panels.label("variance over the posterior's", "")
    gray: dict[str, Any] = {"color": style.GRAY, "linestyle": ""}
    handles = [
        style.entry(style.name("agent", AGENT), marker="o", **gray),
        style.entry("average", marker="D", markerfacecolor="white", **gray),
        style.entry("a point: no spread at all", marker="<", **gray),
        style.entry("no stationary law", marker="x", **gray),
    ]
    markers = {line.get_marker() for panel in panels.axes for line in panel.lines}
    return panels.with_legend([handle for handle in handles if handle.get_marker() in markers])


def _mark_trace(axes: Axes, run: Measured, agent: int | str, height: float, color: str) -> None:
    """Draw the trace of an agent's stationary covariance as a point at a height."""
    trace = float(results.series(run, "stationary_trace", agent).value[-1])
    x, hollow = min(max(trace, LOW), HIGH), agent == AVERAGE
    shape = "x" if not np.isfinite(trace) else "<" if trace < LOW else "D" if hollow else "o"
    look: dict[str, Any] = {"markersize": 4.5, "fillstyle": "none" if hollow else "full"}
    if shape == "D":
        look = {"markersize": 3.8, "markerfacecolor": "white"}
    axes.plot([x], [height], shape, color=color, zorder=3, clip_on=False, **look)
    if np.isfinite(trace):
        left = 0.3 < trace < 1  # or the line at 1 would cross it
        axes.annotate(
            f"{trace:.{2 if trace < 2 else 1 if trace < 10 else 0}f}" if trace >= LOW else "0",
            (x, height),
            (-4 if left else 4, 0),
            textcoords="offset points",
            ha="right" if left else "left",
            va="center_baseline",
            fontsize=style.SMALL,
            color=style.darken(color),
        )
