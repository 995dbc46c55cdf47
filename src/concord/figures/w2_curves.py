"""Curves of the 2-Wasserstein distance to the posterior, over iterations or what has been paid.

Drawn from the metrics ``w2`` (the Gaussian fitted to the chains; its interval from lo to hi is a
band, on a log axis bars at some iterations, since what reaches 0 would fill the panel),
``w2_exact`` (the exact law, a thin dark line over each curve) and ``w2_floor`` (what as many exact
draws of the posterior would show, a dotted line), where a run has them. A gray line is how far a
point at the posterior's mean is, sqrt(tr V): ``w2_point``, or from the run's problem. A run of
which a chain diverged is drawn up to that iteration; a cross marks it, at the top of the panel if
the curve left it, and a note beside says the iteration and the part of the chains.

What a researcher writes in a paper's YAML
------------------------------------------
Panels come from labels of the runs, and so do the lines in them. A key is a swept label or a
parameter by dotted path; ``topology`` and ``sampler`` stand for their kinds.

One panel per topology, one line per agent (Gürbüzbalaban et al., Figs 2 and 3)::

    columns: topology
    lines: agent
    agents: [0, 1, 2, 3, average]

Rows for the number of agents, columns for topologies, a color per sampler, agent 0 solid and the
average dashed (Tzikas et al., Figs 1 and 2)::

    rows: agents
    columns: topology
    lines: sampler
    agents: [0, average]

Panels of different kinds side by side, each with its own runs, lines and scale (Gürbüzbalaban et
al., Fig 4)::

    agents: [0]
    share_y: none
    panels:
      - title: Batch size
        select: {experiment: linear_batch}
        lines: sampler.batch_size
        yscale: log
      - title: Step size
        select: {experiment: linear_step}
        lines: sampler.step_size
        yscale: log
      - title: Network
        select: {experiment: linear_network}
        lines: topology

Two readings in one panel, a color per sampler, a line pattern per reading::

    columns: topology
    lines: sampler
    styles: reading
    agents: [0]

The last distances over a number, in a panel of its own (Tzikas et al., Fig 3)::

    panels:
      - { title: Published, select: { reading: published } }
      - { title: At the end, over: penalty, lines: reading }

``select`` keeps runs by label or parameter, such as ``{reading: corrected}``; a list of values also
sets the order of panels and lines.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from concord import results, selection
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
    Sharing,
    Width,
)
from concord.figures._panels import Cell
from concord.figures._prices import Price
from concord.options import NamesLabel, NamesRuns, Options, Some
from concord.results import AVERAGE, Measured, Series
from concord.runs.run import posterior_width

KIND = "figure w2_curves"


class Panel(Options):
    """One entry of ``panels``; what it leaves out is taken from the figure."""

    title: Annotated[str, "text above the panel, after its letter"] = ""
    select: Annotated[dict | None, NamesRuns("runs of this panel: {label: value or [values]}")] = (
        None
    )
    lines: Annotated[str | None, NamesLabel("'agent', or the label that colors tell apart")] = None
    agents: Annotated[Some[int | str] | None, "agents drawn: indices, 'average'"] = None
    over: Annotated[
        str | None, NamesLabel("label of numbers: W2 at the last iteration over it, on a log axis")
    ] = None
    yscale: Annotated[Scale | None, "scale of W2"] = None
    ylim: Annotated[Limits, "[low, high] of W2"] = None


class Params(Options):
    """Options of a figure of W2 curves; see the module's text for examples."""

    rows: Rows = None
    columns: Columns = None
    panels: Annotated[tuple[Panel, ...], "panels listed one by one, instead of rows"] = ()
    select: Select = None
    lines: Lines = "agent"
    styles: Annotated[
        str | None,
        NamesLabel("label that line patterns tell apart, of one agent, where lines is a label"),
    ] = None
    agents: Annotated[Some[int | str], "agents drawn: indices, 'average'"] = (0, AVERAGE)
    x: Price = "iteration"
    xscale: Annotated[Scale, "scale of x"] = "linear"
    yscale: Annotated[Scale, "scale of W2"] = "linear"
    ylim: Annotated[Limits, "[low, high] of W2; null leaves a side to the data"] = None
    share_y: Sharing = "row"
    exact: Annotated[bool, "draw w2_exact where a run has it"] = True
    floor: Annotated[bool, "draw w2_floor where a run has it"] = True
    point: Annotated[bool, "draw how far a point at the posterior's mean is"] = True
    muted: Annotated[
        dict[str, Some[Any]] | None, "lines drawn gray, {text in the legend: [values of lines]}"
    ] = None
    width: Width = "auto"
    names: Names = None


@dataclass(frozen=True)
class _Curve:
    """One line of a panel, ready to draw; ``series`` and ``exact`` end where the run diverged.

    What x counts is in their ``iteration``, in ``span`` and in ``diverged_at``.
    """

    run: Measured
    agent: int | str
    series: Series
    exact: Series | None
    look: style.Look
    label: str
    name: str  # label and agent
    linestyle: Any
    first: bool  # carries the markers and the legend entry of its color
    diverged: results.Divergence | None
    diverged_at: float
    span: tuple[float, float]  # of the whole run, beyond where it diverged


@dataclass(frozen=True)
class _Panel:
    """A panel with everything it shows."""

    cell: Cell
    curves: list[_Curve]
    lines: str
    yscale: str
    limits: tuple[float | None, float | None]
    floors: list[tuple[float, int]]
    points: list[float]
    handles: list[Artist]
    over: str | None  # then x is not the iteration


def reads(params: Params) -> list[Read]:
    """Return the metrics that the runs must have."""
    found = []
    for panel in params.panels or (Panel(),):
        select = {**(params.select or {}), **(panel.select or {})}
        found.append(Read("w2", select, panel.agents or params.agents))
        found += _prices.reads(params.x, select)
    return found


@style.styled
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw the figure.

    Raises
    ------
    ConcordError
        If a run lacks ``w2`` or an agent, if two runs would be one line, or if options conflict.
    """
    panels = _shown(params, selection.select(runs, params.select, KIND))
    cells = [panel.cell for panel in panels]
    one_legend = len({panel.lines for panel in panels if panel.over is None}) == 1
    height = 1.75 if len(cells) > 1 else 2.1
    figure, axes = _panels.axes_of(cells, params.share_y, params.width, height)
    _scale(panels, axes, params.share_y)
    for panel, ax in zip(panels, axes, strict=True):
        if panel.curves and panel.over is None:
            _draw_curves(panel, ax, params.xscale == "log")
            _note_divergence(panel, ax)
    along = [ax for panel, ax in zip(panels, axes, strict=True) if panel.over is None]
    xlabel = _prices.axis(along, params.x, params.xscale)
    _panels.label(cells, axes, params.share_y, xlabel, "$W_2$ to the posterior")
    for panel, ax in zip(panels, axes, strict=True):
        if panel.over is not None:
            _draw_over(panel, panel.over, ax, params)

    common = _panels_handles(params, panels)
    if one_legend:
        own = {h.get_label(): h for panel in panels if panel.over is None for h in panel.handles}
        style.legend_of(figure, [*own.values(), *common])
    else:
        width = figure.get_figwidth() / (1 + max(cell.column for cell in cells)) - 0.3
        below = [panel.handles if panel.over is None else [] for panel in panels]
        style.legends_below(axes, below, width)
        style.legend_of(figure, common)
    return figure


def _shown(params: Params, runs: list[Measured]) -> list[_Panel]:
    if params.panels and (params.rows or params.columns):
        raise ConcordError(
            f"{KIND}: panels are listed and also come from rows or columns; keep one of them"
        )
    if params.panels:
        places = _panels.wrap(len(params.panels))
        specs = [
            (Cell(panel.title, selection.select(runs, panel.select, KIND), *place), panel)
            for panel, place in zip(params.panels, places, strict=True)
        ]
    else:
        cells = _panels.cross(runs, params.rows, params.columns, params.names, KIND)
        specs = [(cell, Panel()) for cell in cells]
    scales = {panel.yscale or params.yscale for _, panel in specs}
    if len(scales) > 1 and params.share_y != "none":
        raise ConcordError(
            f"{KIND}: panels with linear and log scale cannot share a y axis "
            f"(share_y: {params.share_y}); set share_y: none"
        )
    keys = [panel.lines or params.lines for _, panel in specs]
    everything = [m for cell, _ in specs for m in cell.runs]
    built = []
    for (cell, panel), key in zip(specs, keys, strict=True):
        # One legend for all panels needs one look for a value in all of them.
        scope = everything if len(set(keys)) == 1 else cell.runs
        agents = panel.agents or params.agents
        curves = _curves(cell, key, agents, scope, params, panel.over) if cell.runs else []
        where = f"{KIND}: ylim"
        built.append(
            _Panel(
                cell,
                curves,
                key,
                panel.yscale or params.yscale,
                _panels.limits(panel.ylim if panel.ylim is not None else params.ylim, where),
                _floors(curves) if params.floor else [],
                _points(curves) if params.point else [],
                list(
                    {curve.label: _handle(curve, key) for curve in curves if curve.first}.values()
                ),
                panel.over,
            )
        )
    return built


def _curves(
    cell: Cell,
    key: str,
    agents: Sequence[int | str],
    scope: Sequence[Measured],
    params: Params,
    over: str | None,
) -> list[_Curve]:
    for agent in agents:
        if isinstance(agent, str) and agent != AVERAGE:
            raise ConcordError(
                f"{KIND}: agents: {agent!r} is neither an index nor '{AVERAGE}'; write one"
            )
    where = f"panel {cell.title!r}" if cell.title else "the panel"
    if key == "agent":
        run = selection.only(cell.runs, where, KIND)
        looks = style.looks(key, agents)
        texts = [style.name(key, agent, params.names) for agent in agents]
        return [
            _curve(run, agent, look, (text, text), _linestyle(agent, ()), True, params)
            for agent, look, text in zip(agents, looks, texts, strict=True)
        ]
    if params.styles is not None and len(agents) != 1:
        raise ConcordError(
            f"{KIND}: styles: {params.styles} needs the line patterns, which tell "
            f"agents apart too; draw one agent instead of {list(agents)}"
        )
    curves = []
    for value, look, text, mine in _panels.lines(cell.runs, scope, key, params.names):
        if over is None and (muted := _muted(value, params)) is not None:
            look, text = style.Look(_MUTED, ""), muted
        first = True
        for run, agent, linestyle, part in _members(mine, key, value, agents, scope, params, over):
            name = f"{text}, {part}" if part else text
            label = text if first or params.styles is None else name
            curves.append(_curve(run, agent, look, (label, name), linestyle, first, params))
            first = False
    return curves


def _members(
    runs: list[Measured],
    key: str,
    value: Any,
    agents: Sequence[int | str],
    scope: Sequence[Measured],
    params: Params,
    over: str | None,
) -> Iterator[tuple[Measured, int | str, Any, str]]:
    """Yield the curves of one value of ``lines``: run, agent, pattern, what that stands for."""
    if not runs:
        return
    where = f"line {key} = {value}"
    if over is not None:
        yield from ((run, agents[0], "-", "") for run in runs)
    elif params.styles is None:
        run = selection.only(runs, where, KIND)
        for agent in agents:
            yield run, agent, _linestyle(agent, agents), style.name("agent", agent)
    else:
        for place, pattern in enumerate(selection.distinct(scope, params.styles)):
            if mine := selection.having(runs, params.styles, pattern):
                linestyle = style.AGENT_STYLES[place % len(style.AGENT_STYLES)]
                part = style.name(params.styles, pattern, params.names)
                yield selection.only(mine, f"{where}, {pattern}", KIND), agents[0], linestyle, part


def _muted(value: Any, params: Params) -> str | None:
    """Return the text of the gray lines that a value is among, none if it has its own color."""
    groups = (params.muted or {}).items()
    return next((text for text, vs in groups if any(selection.same(v, value) for v in vs)), None)


def _curve(
    run: Measured,
    agent: int | str,
    look: style.Look,
    texts: tuple[str, str],
    linestyle: Any,
    first: bool,
    params: Params,
) -> _Curve:
    diverged = results.divergence(run)
    end = diverged.iteration if diverged else math.inf
    whole = results.series(run, "w2", agent, KIND)

    def along(series: Series) -> Series:
        x = _prices.along(run, series.iteration, params.x, KIND)
        shown = (x > 0) | (params.xscale == "linear")  # a log axis has no place for what is free
        columns = (column[shown] for column in (x, series.value, series.lo, series.hi))
        return Series(*columns)

    exact = None
    if params.exact and results.has(run, "w2_exact"):
        exact = along(results.series(run, "w2_exact", agent, KIND).before(end))
    last = diverged.iteration if diverged else math.nan
    known = np.array([whole.iteration[0], whole.iteration[-1], last])
    first_x, last_x, diverged_at = _prices.along(run, known, params.x, KIND)
    return _Curve(
        run=run,
        agent=agent,
        series=along(whole.before(end)),
        exact=exact,
        look=look,
        label=texts[0],
        name=texts[1],
        linestyle=linestyle,
        first=first,
        diverged=diverged,
        diverged_at=float(diverged_at),
        span=(float(first_x), float(last_x)),
    )


def _linestyle(agent: int | str, agents: Sequence[int | str]) -> Any:
    """Solid for the first agent, other patterns for further ones; the average is always dashed."""
    if agent == AVERAGE:
        return style.AVERAGE_STYLE
    numbered = [a for a in agents if a != AVERAGE]
    place = numbered.index(agent) if agent in numbered else 0
    return style.AGENT_STYLES[place % len(style.AGENT_STYLES)]


def _floors(curves: Sequence[_Curve]) -> list[tuple[float, int]]:
    """Return the floors of a panel, each with its number of draws.

    Runs estimate the floor of one posterior each for itself; estimates that agree to 5 % are drawn
    once.
    """
    floors: dict[float, int] = {}
    for curve in curves:
        table = curve.run.metrics
        rows = table[(table["metric"] == "w2_floor").to_numpy()]
        if rows.empty:
            continue
        value = float(rows["value"].iloc[0])
        if not any(math.isclose(value, other, rel_tol=0.05) for other in floors):
            floors[value] = int(curve.run.run["chains"])
    return list(floors.items())


def _points(curves: Sequence[_Curve]) -> list[float]:
    """Return how far a point at the posterior's mean is, for each posterior of a panel."""
    found: dict[Any, float | None] = {}
    for curve in curves:
        run, table = curve.run.run, curve.run.metrics
        problem = str([run.get(key) for key in ("problem", "agents", "partition", "seed")])
        if problem not in found:
            measured = table["value"][(table["metric"] == "w2_point").to_numpy()]
            found[problem] = float(measured.iloc[0]) if len(measured) else posterior_width(run)
    widths = (value for value in found.values() if value is not None)
    return list(dict.fromkeys(float(f"{width:.6g}") for width in widths))


def _draw_curves(panel: _Panel, axes: Axes, log_x: bool) -> None:
    low, high = axes.get_ylim()
    # PDF cannot hold a band that reaches 1e300, and a log axis has no 0: cut bands out of sight.
    reach = (low / 100, high * 100) if panel.yscale == "log" else (low, low + 100 * (high - low))
    _draw_lines(panel, axes)
    for order, curve in enumerate(panel.curves):
        shown = curve.series
        step = max(1, len(shown.iteration) // 8)
        first = step * order // len(panel.curves)
        # The first curve is on top: it is the one that the figure is about.
        depth = 2 + 0.5 * (1 - order / len(panel.curves)) + 0.1 * (curve.agent == AVERAGE)
        if np.isfinite(shown.lo).any():
            lo, hi = np.clip(shown.lo, *reach), np.clip(shown.hi, *reach)
            if panel.yscale == "log":
                at = slice(first, None, step)
                ends = shown.iteration[at], shown.value[at], shown.lo[at], hi[at]
                _bars(axes, *ends, curve.look.color, depth - 0.6)
            else:
                axes.fill_between(
                    shown.iteration, lo, hi, color=curve.look.color, **style.BAND, zorder=1.5
                )
        line = curve.look.line if curve.first else {**curve.look.line, "marker": ""}
        axes.plot(
            shown.iteration,
            shown.value,
            **line,
            linestyle=curve.linestyle,
            linewidth=0.6 if curve.look.color == _MUTED else style.RC["lines.linewidth"],
            # Staggered, or lines that coincide would hide each other's markers.
            markevery=(first, step),
            label=curve.name,
            zorder=depth,
        )
        if curve.exact is not None and curve.look.color != _MUTED:
            axes.plot(
                curve.exact.iteration,
                curve.exact.value,
                color=style.dark(curve.look.color),
                linewidth=_THIN,
                label=f"_exact {curve.name}",
                zorder=3,
            )
    start = min(curve.span[0] for curve in panel.curves)
    end = max(curve.span[1] for curve in panel.curves)
    if log_x:
        start = min(
            np.concatenate([c.series.iteration[:1] for c in panel.curves]), default=end / 10
        )
        axes.set_xlim(start / 1.1, end * 1.1)
        return
    margin = 0.02 * ((end - start) or 1)
    axes.set_xlim(start - margin, end + margin)


def _draw_lines(panel: _Panel, axes: Axes) -> None:
    """Draw the panel's points and floors; one floor on a log axis, which has room, is named."""
    for value in panel.points:
        axes.axhline(value, **style.POINT, label="_point", zorder=1.8)
    for value, _ in panel.floors:
        axes.axhline(value, **style.FLOOR, label="_floor", zorder=1.8)
        if panel.yscale == "log" and len(panel.floors) == 1 and value > axes.get_ylim()[0]:
            axes.annotate(
                "floor",
                (0.01, value),
                (0, 1),
                xycoords=("axes fraction", "data"),
                textcoords="offset points",
                fontsize=5.5,
                color="#555555",
                in_layout=False,
                zorder=1.8,
            )


def _bars(
    axes: Axes,
    x: np.ndarray,
    value: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    color: str,
    depth: float,
) -> None:
    """Draw intervals on a log axis: one that reaches 0 ends in a small arrow."""
    endless = lo < value / 10
    low = np.where(endless, value / 1.8, lo)
    axes.vlines(x, low, hi, colors=color, **_BAR, zorder=depth)
    axes.plot(x[endless], low[endless], color=color, **_TO_ZERO, zorder=depth, label="_to_zero")


def _draw_over(panel: _Panel, key: str, axes: Axes, params: Params) -> None:
    """Draw W2 at the last iteration over a label's numbers, one line per value of ``lines``."""
    _draw_lines(panel, axes)
    for label in dict.fromkeys(curve.label for curve in panel.curves):
        mine = [c for c in panel.curves if c.label == label and c.series.value.size]
        x = np.array([float(selection.lookup(c.run.run, key)) for c in mine])
        ends = np.array([[c.series.value[-1], c.series.lo[-1], c.series.hi[-1]] for c in mine])
        look = mine[0].look
        order = np.argsort(x)
        axes.plot(x[order], ends[order, 0], **look.line, label=label, zorder=3)
        _bars(axes, x, ends[:, 0], ends[:, 1], ends[:, 2], look.color, 2)
        exact = [c.exact.value[-1] if c.exact is not None else np.nan for c in mine]
        axes.plot(
            x[order],
            np.array(exact)[order],
            color=style.dark(look.color),
            linewidth=_THIN,
            zorder=3,
        )
    axes.set_xscale("log")
    style.sparse_log_axis(axes.xaxis)
    names = params.names or {}
    axes.set_xlabel(str(names.get(key, style.SYMBOLS.get(key, key.replace("_", " ")))))
    axes.legend(handles=panel.handles, loc="best", fontsize=6)


def _scale(panels: Sequence[_Panel], axes: Sequence[Axes], share: str) -> None:
    """Set the y limits: of all panels with one axis together, and not by curves that diverge."""
    groups: dict[Any, list[int]] = {}
    for index, panel in enumerate(panels):
        if panel.curves:
            key = {"all": 0, "row": panel.cell.row, "none": index}[share]
            groups.setdefault(key, []).append(index)
    for members in groups.values():
        log = panels[members[0]].yscale == "log"
        low, high = _bounds([panels[i] for i in members], log)
        for i in members:
            asked_low, asked_high = panels[i].limits
            low = low if asked_low is None else asked_low
            high = high if asked_high is None else asked_high
        for i in members:
            axes[i].set_yscale(panels[i].yscale)
            axes[i].set_ylim(low, high)
            if log:
                style.plain_log_axis(axes[i])


def _bounds(panels: Sequence[_Panel], log: bool) -> tuple[float, float]:
    values = [np.array([value for value, _ in p.floors] + p.points) for p in panels]
    tops = []
    diverged = False
    for curve in (curve for panel in panels for curve in panel.curves):
        if curve.diverged:
            # Only where it starts: where it goes would press every other curve flat.
            diverged = True
            values.append(curve.series.value[:1])
            continue
        values.append(curve.series.value)
        tops.append(curve.series.hi)
        if curve.exact is not None:
            values.append(curve.exact.value)
    # Lower ends of bands do not count: near 0 they would stretch a log axis without end.
    known = np.concatenate(values)
    known = known[np.isfinite(known) & (known > 0)]
    if not known.size:
        return (0.1, 1.0) if log else (0.0, 1.0)
    every = np.concatenate([known, *tops])
    low, high = known.min(), min(every[np.isfinite(every)].max(), 1e300)
    if log:
        return low / 1.3, high * (30 if diverged else 1.3)
    # A little below 0, so that curves near it are seen in full.
    return -0.02 * high, high * (1.6 if diverged else 1.05)


def _note_divergence(panel: _Panel, axes: Axes) -> None:
    """Cross and note where runs diverged; at the top of the panel for curves that left it."""
    top = axes.get_ylim()[1]
    noted: list[str] = []
    for curve in panel.curves:
        if curve.diverged is None:
            continue
        k = curve.diverged.iteration
        last = curve.series.value[-1] if curve.series.value.size else math.inf
        inside = last < top
        axes.plot(
            [curve.diverged_at],
            [last if inside else 0.97],
            transform=axes.transData if inside else axes.get_xaxis_transform(),
            **_CROSS,
            color=curve.look.color,
            label=f"_diverged {curve.name}",
            clip_on=False,
            zorder=4,
        )
        if curve.run.name in noted:
            continue
        noted.append(curve.run.name)
        part = curve.diverged.fraction
        who = "" if panel.lines == "agent" else f"{curve.label}: "
        share = "all" if part >= 1 else f"{100 * part:.2g} % of the"
        # An arrow from the text, in the room that the limits leave above the other curves, to where
        # the curve leaves the panel.
        out = np.flatnonzero(curve.series.value > top)
        exit_at = curve.series.iteration[out[0]] if out.size else curve.diverged_at
        axes.annotate(
            f"{who}{share} chains diverged,\nthe first at $k$ = {k:g}",
            (exit_at, 0.99),
            xycoords=("data", "axes fraction"),
            xytext=(0.99, 0.9 - 0.16 * (len(noted) - 1)),
            textcoords="axes fraction",
            ha="right",
            va="top",
            fontsize=6,
            color=style.dark(curve.look.color),
            arrowprops={
                "arrowstyle": "->",
                "linewidth": 0.6,
                "color": style.dark(curve.look.color),
            },
            in_layout=False,
            zorder=4,
        )


_MUTED = "#a6a6a6"
_THIN = 0.6
_BAR: dict[str, Any] = {"linewidth": 0.9, "alpha": 0.6}
_TO_ZERO: dict[str, Any] = {
    **{"marker": 11, "markersize": 3, "linestyle": "", "alpha": 0.6, "markeredgewidth": 0},
}
_CROSS: dict[str, Any] = {
    "marker": "x",
    "markersize": 5,
    "markeredgewidth": 1.3,
    "linestyle": "",
}


def _handle(curve: _Curve, key: str) -> Artist:
    pattern = curve.linestyle if key == "agent" else "-"
    return style.entry(curve.label, **curve.look.line, linestyle=pattern)


def _panels_handles(params: Params, panels: Sequence[_Panel]) -> list[Artist]:
    """Legend entries that belong to no single line: agents, band, exact law, floor, cross."""
    handles: list[Artist] = []
    styles: dict[str, Any] = {}
    for panel in panels:
        if panel.lines != "agent":
            for c in panel.curves:
                text = style.name("agent", c.agent, params.names)
                if params.styles is not None:
                    value = selection.lookup(c.run.run, params.styles)
                    text = style.name(params.styles, value, params.names)
                styles[text] = c.linestyle
    handles += [
        style.entry(text, color=style.GRAY, linestyle=pattern) for text, pattern in styles.items()
    ]
    curves = [curve for panel in panels for curve in panel.curves]
    if any(np.isfinite(curve.series.lo).any() for curve in curves):
        scales = {panel.yscale for panel in panels if panel.curves}
        axis = "" if len(scales) == 1 else " (log axis)"
        if "log" in scales:
            bar: dict[str, Any] = {"marker": "|", "markersize": 8, "markeredgewidth": 0.9}
            text = f"95 % interval{axis}"
            handles.append(style.entry(text, color=style.GRAY, linestyle="", **bar))
        if "linear" in scales:
            axis = axis.replace("log", "linear")
            handles.append(Patch(color=style.GRAY, **style.BAND, label=f"95 % interval{axis}"))
    if any(curve.exact is not None for curve in curves):
        handles.append(style.entry("exact law", color="#222222", linewidth=_THIN))
    draws = dict.fromkeys(str(count) for panel in panels for _, count in panel.floors)
    if draws:
        handles.append(style.entry(f"floor of {' or '.join(draws)} exact draws", **style.FLOOR))
    if any(panel.points for panel in panels):
        handles.append(style.entry("a point at the posterior's mean", **style.POINT))
    if any(curve.diverged for curve in curves):
        handles.append(style.entry("diverged", color=style.GRAY, **_CROSS))
    return handles
