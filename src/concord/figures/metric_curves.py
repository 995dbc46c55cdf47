"""Curves of any metric over iterations, updates, or what has been paid.

Drawn from rows of ``metric``, with its interval (from lo to hi) or one standard deviation over
chains (another metric) as a band. Over bytes, x is what the whole network has sent at the same
iteration, so that samplers are compared at equal communication: ``unicast_bytes``, if every
neighbor is sent its own copy, or ``broadcast_bytes``, if all hear the same one.

What a researcher writes in a paper's YAML (Bhar et al., Figs 2 and 3)::

    metric: accuracy_mean
    band: accuracy_sd
    lines: agent
    agents: [0, 1, 2, 3, 4, 5]

    metric: accuracy_after_mean
    band: accuracy_after_sd
    lines: training
    agents: [5]
    xlabel: updates of agent 5

and over another metric, such as the steps of ``stationary_steps``::

    metric: by_step.stationary_w2
    over: by_step.step_size
    rows: heterogeneity
    columns: topology
    lines: sampler

and for a comparison at equal communication::

    metric: w1_marginal_window
    lines: training
    agents: [network]
    x: broadcast_bytes
    floor: w1_marginal_floor
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from concord import results, selection, words
from concord.contracts import Read
from concord.errors import ConcordError
from concord.figures import _panels, _prices, style
from concord.figures._options import (
    Columns,
    Limits,
    Lines,
    Names,
    Rows,
    Scale,
    Select,
    Width,
)
from concord.figures._prices import Price
from concord.options import Options, Some
from concord.results import Measured

KIND = "figure metric_curves"


class Params(Options):
    """Options of a figure of metric curves; see the module's text for examples."""

    metric: Annotated[str, "metric on the y axis"]
    lines: Lines = "agent"
    agents: Annotated[
        Some[int | str],
        "agents drawn: indices, average or network; several only where lines is agent",
    ] = ("network",)
    rows: Rows = None
    columns: Columns = None
    select: Select = None
    x: Price = "iteration"
    over: Annotated[
        str | None, "metric of the network that x counts, in rows of the same iteration"
    ] = None
    band: Annotated[
        str,
        "interval (lo to hi), none, or the metric that holds the standard deviation over chains",
    ] = "interval"
    floor: Annotated[str | None, "metric drawn as a dotted line, of the network"] = None
    differences: Annotated[
        bool, "draw what each line differs from the mean of all, without a band"
    ] = False
    slopes: Annotated[
        tuple[float, ...], "exponents of k drawn as gray lines, one beside each line in turn"
    ] = ()
    exponent: Annotated[
        str | None, "metric of the network, a fitted exponent of decay, written in each panel"
    ] = None
    xscale: Annotated[Scale, "scale of x"] = "linear"
    yscale: Annotated[Scale, "scale of y"] = "linear"
    xlim: Annotated[Limits, "[low, high] of x"] = None
    ylim: Annotated[Limits, "[low, high] of y"] = None
    xlabel: Annotated[str | None, "text below the x axis"] = None
    ylabel: Annotated[str | None, "text beside the y axis; none: the metric's name"] = None
    width: Width = "auto"
    names: Names = None


@dataclass(frozen=True)
class _Line:
    run: Measured
    agent: int | str
    look: style.Look
    label: str


def reads(params: Params) -> list[Read | str]:
    """Return the metrics that the runs must have."""
    band = [] if params.band in ("interval", "none") else [params.band]
    paid = _prices.reads(params.x, params.select)
    curves = [Read(name, params.select, params.agents) for name in (params.metric, *band)]
    if params.over:
        curves.append(Read(params.over, params.select, ("network",)))
    others = [metric for metric in (params.floor, params.exponent) if metric]
    return [*curves, *paid, *others]


@style.marks_divergence
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw the figure.

    Raises
    ------
    ConcordError
        If a run lacks the metric or an agent, or if two runs would be one line.
    """
    if params.lines != "agent" and len(params.agents) != 1:
        raise ConcordError(
            f"{KIND}: agents: {list(params.agents)} with lines: {params.lines}; "
            "draw one agent, or lines: agent"
        )
    chosen = selection.select(runs, params.select, KIND)
    cells = _panels.cross(chosen, params.rows, params.columns, params.names, KIND)
    figure, axes = _panels.axes_of(cells, "all", params.width, 1.75 if params.rows else 2.1)
    lines = [_lines(cell, chosen, params) for cell in cells]
    for panel, own in zip(axes, lines, strict=True):
        panel.set_yscale(params.yscale)
        middle = _middle(own, params) if params.differences else 0.0
        for order, line in enumerate(own):
            _draw_line(panel, line, params, order, len(own), middle)
        for line, slope in zip(own, params.slopes, strict=False):
            _draw_slope(panel, line, own, slope, params)
        if params.exponent:
            _write_exponents(panel, own, params.exponent)
        if params.floor and own:
            floor = results.series(own[0].run, params.floor, "network", KIND)
            panel.axhline(floor.value[-1], **style.FLOOR)
        panel.margins(x=0.02)
        if params.xlim is not None:
            panel.set_xlim(*_panels.limits(params.xlim, f"{KIND}: xlim"))
    for panel in axes:  # after all have drawn into the axis they share
        if params.ylim is not None:
            panel.set_ylim(*_panels.limits(params.ylim, f"{KIND}: ylim"))
        if params.yscale == "log":
            style.plain_log_axis(panel)
    default = _prices.axis(axes, params.x, params.xscale)
    default = params.over.replace("_", " ") if params.over else default
    ylabel = params.ylabel or params.metric.replace("_", " ")
    _panels.label(cells, axes, "all", params.xlabel or default, ylabel)
    style.legend_of(figure, _handles(params, [line for own in lines for line in own]))
    return figure


def _lines(cell: _panels.Cell, scope: Sequence[Measured], params: Params) -> list[_Line]:
    if params.lines == "agent":
        run = selection.only(cell.runs, f"panel {cell.title!r}", KIND)
        looks = style.looks("agent", params.agents)
        return [
            _Line(run, agent, look, style.name("agent", agent, params.names))
            for agent, look in zip(params.agents, looks, strict=True)
        ]
    return [
        _Line(
            selection.only(mine, f"line {params.lines} = {value}", KIND),
            params.agents[0],
            look,
            text,
        )
        for value, look, text, mine in _panels.lines(cell.runs, scope, params.lines, params.names)
        if mine
    ]


def _middle(lines: Sequence[_Line], params: Params) -> np.ndarray:
    """Return the mean over the lines, which have the same iterations."""
    values = [results.series(line.run, params.metric, line.agent, KIND).value for line in lines]
    if len({len(value) for value in values}) > 1:
        raise ConcordError(
            f"{KIND}: differences: the lines have different iterations; record the same"
        )
    return np.mean(values, axis=0)


def _draw_slope(
    axes: Axes, line: _Line, others: Sequence[_Line], slope: float, params: Params
) -> None:
    """Draw a power of x through a point above the line's first value, over what it shows."""
    drawn = [_shown(other, params) for other in others]
    x, y = drawn[others.index(line)]
    if not len(x) or y[-1] > 0.7 * y[0]:
        return  # nothing that falls
    start = 1.35 * y[0]
    ends = np.array([x[0], x[-1]])
    axes.plot(ends, start * (ends / x[0]) ** slope, **style.POINT, zorder=1.9, label="_slope")
    if len(params.slopes) == 1:
        return  # the legend has its name
    # Its name stands above or below it, where the lines are farthest from that.
    at = np.geomspace(x[0], x[-1], 9)[1:-1]
    along = np.log(start * (at / x[0]) ** slope)
    aside = 0.05 * np.ptp(np.log(np.concatenate([y for _, y in drawn])))
    gaps = [
        [abs(np.interp(np.log(at), np.log(x), np.log(y)) - along - up) for x, y in drawn if len(x)]
        for up in (aside, -aside)
    ]
    below, place = divmod(int(np.round(np.min(gaps, axis=1), 2).argmax()), len(at))
    axes.annotate(
        f"$k^{{{slope:g}}}$",
        (at[place], np.exp(along[place])),
        (-2, -1) if below else (2, 1),
        textcoords="offset points",
        ha="right" if below else "left",
        va="top" if below else "baseline",
        fontsize=6.5,
        color="#666666",
    )


def _shown(line: _Line, params: Params) -> tuple[np.ndarray, np.ndarray]:
    """Return what log axes show of a line."""
    series = results.series(line.run, params.metric, line.agent, KIND)
    x = _prices.along(line.run, series.iteration, params.x, KIND)
    shown = (x > 0) & (series.value > 0)
    return x[shown], series.value[shown]


def _write_exponents(axes: Axes, lines: Sequence[_Line], metric: str) -> None:
    fitted = []
    for line in lines:
        last = results.series(line.run, metric, "network", KIND)
        text = words.rounded(last.value[-1], last.lo[-1], last.hi[-1])
        fitted.append(f"{line.label}: fitted exponent {text}")
    axes.text(0.03, 0.04, "\n".join(fitted), transform=axes.transAxes, fontsize=6, va="bottom")


def _draw_line(
    axes: Axes, line: _Line, params: Params, order: int, lines: int, middle: float | np.ndarray
) -> None:
    series = results.series(line.run, params.metric, line.agent, KIND)
    x = _prices.along(line.run, series.iteration, params.x, KIND)
    if params.over:
        over = results.series(line.run, params.over, "network", KIND)
        x = over.value[np.searchsorted(over.iteration, series.iteration)]
    shown = np.isfinite(series.value) & ((x > 0) | (params.xscale == "linear"))
    if not shown.any():
        return
    lo, hi = series.lo, series.hi
    if params.differences:
        lo = hi = np.full(len(lo), np.nan)
    elif params.band not in ("interval", "none"):
        sd = results.series(line.run, params.band, line.agent, KIND).value
        lo, hi = series.value - sd, series.value + sd
    if params.band != "none" and np.isfinite(lo).any():
        pale = {**style.BAND, "alpha": 0.2 if lines < 5 else 0.08}  # many overlap
        axes.fill_between(x[shown], lo[shown], hi[shown], color=line.look.color, **pale, zorder=1.5)
    axes.plot(
        x[shown],
        (series.value - middle)[shown],
        **line.look.line,
        linewidth=1.3 if lines < 5 else 0.9,
        # At equal distances on the page, and staggered: lines that coincide hide no markers.
        markevery=(0.03 + 0.15 * order / lines, 0.15),
        label=line.label,
        zorder=2,
    )


def _handles(params: Params, lines: Sequence[_Line]) -> list[Artist]:
    own = {line.label: style.entry(line.label, **line.look.line) for line in lines}
    handles: list[Artist] = list(own.values())
    if params.differences:
        return handles
    if params.band == "interval":
        shown = (results.series(line.run, params.metric, line.agent, KIND) for line in lines)
        if any(np.isfinite(series.lo).any() for series in shown):
            handles.append(Patch(color=style.GRAY, **style.BAND, label="95 % interval"))
    elif params.band != "none":
        handles.append(Patch(color=style.GRAY, **style.BAND, label="± 1 sd over chains"))
    if len(params.slopes) == 1:
        handles.append(style.entry(f"$k^{{{params.slopes[0]:g}}}$", **style.POINT))
    if params.floor:
        handles.append(style.entry("floor of exact draws", **style.FLOOR))
    return handles
