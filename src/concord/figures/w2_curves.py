"""Curves of the 2-Wasserstein distance to the posterior, over iterations or what is sent.

Drawn from the metrics ``w2`` (the Gaussian fitted to the chains; its interval from lo to hi is the
band), ``w2_exact`` (the exact law, a thin dark line over each curve), ``w2_floor`` (what as many
exact draws of the posterior would show, a dashed line) and ``w2_point`` (a point at the posterior's
mean, a dotted line); the last three where a run has them. A run of which a chain diverged is drawn
up to that iteration; a cross marks it, at the top of the panel if the curve left it, and a note
gives the iteration and the part of the chains, if not all diverged.

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

``select`` keeps runs by label or parameter, such as ``{reading: corrected}``; a list of values also
sets the order of panels and lines.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from concord import results
from concord.contracts import Read
from concord.errors import ConcordError
from concord.figures import _common, style
from concord.figures._common import Cell
from concord.figures._options import (
    Columns,
    Limits,
    Lines,
    Names,
    Price,
    Rows,
    Scale,
    Select,
    Sharing,
    Width,
)
from concord.options import Options, Some
from concord.results import AVERAGE, Measured, Series

KIND = "w2_curves"


class Panel(Options):
    """One entry of ``panels``; what it leaves out is taken from the figure."""

    title: Annotated[str, "text above the panel, after its letter"] = ""
    select: Annotated[dict | None, "runs of this panel: {label: value or [values]}"] = None
    lines: Annotated[str | None, "'agent', or the label that colors tell apart"] = None
    agents: Annotated[Some[int | str] | None, "agents drawn: indices, 'average'"] = None
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
        str | None, "label that line patterns tell apart, of one agent, where lines is a label"
    ] = None
    agents: Annotated[Some[int | str], "agents drawn: indices, 'average'"] = (0, AVERAGE)
    x: Price = "iteration"
    xscale: Annotated[Scale, "scale of x"] = "linear"
    yscale: Annotated[Scale, "scale of W2"] = "linear"
    ylim: Annotated[Limits, "[low, high] of W2; null leaves a side to the data"] = None
    share_y: Sharing = "row"
    exact: Annotated[bool, "draw w2_exact where a run has it"] = True
    floor: Annotated[bool, "draw w2_floor where a run has it"] = True
    point: Annotated[bool, "draw w2_point where a run has it"] = True
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


def reads(params: Params) -> list[Read]:
    """Return the metrics that the runs must have."""
    found = []
    for panel in params.panels or (Panel(),):
        select = {**(params.select or {}), **(panel.select or {})}
        found.append(Read("w2", select, panel.agents or params.agents))
        found += _common.price_reads(params.x, select)
    return found


@style.styled
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw the figure.

    Raises
    ------
    ConcordError
        If a run lacks ``w2`` or an agent, if two runs would be one line, or if options conflict.
    """
    panels = _panels(params, results.select(runs, params.select, KIND))
    cells = [panel.cell for panel in panels]
    one_legend = len({panel.lines for panel in panels}) == 1
    height = 1.75 if len(cells) > 1 else 2.1
    figure, axes = _common.axes_of(cells, params.share_y, params.width, height)
    _scale(panels, axes, params.share_y)
    for panel, ax in zip(panels, axes, strict=True):
        if panel.curves:
            _draw_curves(panel, ax, params.xscale == "log")
            _note_divergence(panel, ax)
    xlabel = _common.price_axis(axes, params.x, params.xscale)
    _common.label(cells, axes, params.share_y, xlabel, "$W_2$ to the posterior")

    common = _common_handles(params, panels)
    if one_legend:
        own = {h.get_label(): h for panel in panels for h in panel.handles}
        style.legend_of(figure, [*own.values(), *common])
    else:
        width = figure.get_figwidth() / (1 + max(cell.column for cell in cells)) - 0.3
        style.legends_below(axes, [panel.handles for panel in panels], width)
        style.legend_of(figure, common)
    return figure


def _panels(params: Params, runs: list[Measured]) -> list[_Panel]:
    if params.panels and (params.rows or params.columns):
        raise ConcordError(
            f"figure {KIND}: panels are listed and also come from rows or columns; keep one of them"
        )
    if params.panels:
        places = _common.wrap(len(params.panels))
        specs = [
            (Cell(panel.title, results.select(runs, panel.select, KIND), *place), panel)
            for panel, place in zip(params.panels, places, strict=True)
        ]
    else:
        cells = _common.cross(runs, params.rows, params.columns, params.names, KIND)
        specs = [(cell, Panel()) for cell in cells]
    scales = {panel.yscale or params.yscale for _, panel in specs}
    if len(scales) > 1 and params.share_y != "none":
        raise ConcordError(
            f"figure {KIND}: panels with linear and log scale cannot share a y axis "
            f"(share_y: {params.share_y}); set share_y: none"
        )
    keys = [panel.lines or params.lines for _, panel in specs]
    everything = [m for cell, _ in specs for m in cell.runs]
    built = []
    for (cell, panel), key in zip(specs, keys, strict=True):
        # One legend for all panels needs one look for a value in all of them.
        scope = everything if len(set(keys)) == 1 else cell.runs
        agents = panel.agents or params.agents
        curves = _curves(cell, key, agents, scope, params) if cell.runs else []
        where = f"figure {KIND}: ylim"
        built.append(
            _Panel(
                cell,
                curves,
                key,
                panel.yscale or params.yscale,
                _common.limits(panel.ylim if panel.ylim is not None else params.ylim, where),
                _floors(curves) if params.floor else [],
                _points(curves) if params.point else [],
                [_handle(curve, key) for curve in curves if curve.first],
            )
        )
    return built


def _curves(
    cell: Cell,
    key: str,
    agents: Sequence[int | str],
    scope: Sequence[Measured],
    params: Params,
) -> list[_Curve]:
    for agent in agents:
        if isinstance(agent, str) and agent != AVERAGE:
            raise ConcordError(
                f"figure {KIND}: agents: {agent!r} is neither an index nor '{AVERAGE}'; write one"
            )
    where = f"panel {cell.title!r}" if cell.title else "the panel"
    if key == "agent":
        run = results.only(cell.runs, where, KIND)
        looks = style.looks(key, agents)
        return [
            _curve(run, agent, look, style.name(key, agent, params.names), True, params)
            for agent, look in zip(agents, looks, strict=True)
        ]
    if params.styles is not None:
        if len(agents) != 1:
            raise ConcordError(
                f"figure {KIND}: styles: {params.styles} needs the line patterns, which tell "
                f"agents apart too; draw one agent instead of {list(agents)}"
            )
        return _styled_curves(cell, key, agents[0], scope, params)
    values = results.distinct(scope, key)
    looks = style.looks(key, values)
    curves = []
    for value, group in results.split(cell.runs, key, KIND):
        text = style.name(key, value, params.names)
        run = results.only(group, f"line {key} = {value} of {where}", KIND)
        look = next(k for v, k in zip(values, looks, strict=True) if results.same(v, value))
        for place, agent in enumerate(agents):
            curves.append(_curve(run, agent, look, text, place == 0, params, agents))
    return curves


def _styled_curves(
    cell: Cell, key: str, agent: int | str, scope: Sequence[Measured], params: Params
) -> list[_Curve]:
    """Return a curve per value of ``lines`` and of ``styles``: colors and line patterns."""
    assert params.styles is not None
    values, patterns = results.distinct(scope, key), results.distinct(scope, params.styles)
    looks = style.looks(key, values)
    curves = []
    for value, look in zip(values, looks, strict=True):
        first = True
        for place, pattern in enumerate(patterns):
            mine = [
                m
                for m in cell.runs
                if results.same(results.lookup(m.run, key), value)
                and results.same(results.lookup(m.run, params.styles), pattern)
            ]
            if not mine:
                continue
            run = results.only(mine, f"line {value}, {pattern} of panel {cell.title!r}", KIND)
            text = style.name(key, value, params.names)
            curve = _curve(run, agent, look, text, first, params)
            linestyle = _PATTERNS[place % len(_PATTERNS)]
            name = f"{text}, {style.name(params.styles, pattern, params.names)}"
            label = text if first else name
            curves.append(replace(curve, linestyle=linestyle, name=name, label=label))
            first = False
    return curves


_PATTERNS = ("-", style.AVERAGE_STYLE, *style.AGENT_STYLES[1:])


def _curve(
    run: Measured,
    agent: int | str,
    look: style.Look,
    label: str,
    first: bool,
    params: Params,
    agents: Sequence[int | str] = (),
) -> _Curve:
    diverged = results.divergence(run)
    end = diverged.iteration if diverged else math.inf
    whole = results.series(run, "w2", agent, KIND)

    def along(series: Series) -> Series:
        x = _common.priced(run, series.iteration, params.x, KIND)
        shown = (x > 0) | (params.xscale == "linear")  # a log axis has no place for what is free
        columns = (column[shown] for column in (x, series.value, series.lo, series.hi))
        return Series(*columns)

    exact = None
    if params.exact and results.has(run, "w2_exact"):
        exact = along(results.series(run, "w2_exact", agent, KIND).before(end))
    last = diverged.iteration if diverged else math.nan
    known = np.array([whole.iteration[0], whole.iteration[-1], last])
    first_x, last_x, diverged_at = _common.priced(run, known, params.x, KIND)
    return _Curve(
        run=run,
        agent=agent,
        series=along(whole.before(end)),
        exact=exact,
        look=look,
        label=label,
        name=f"{label}, {style.name('agent', agent)}" if agents else label,
        linestyle=_linestyle(agent, agents),
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
    tables = [curve.run.metrics for curve in curves]
    found = [table["value"][(table["metric"] == "w2_point").to_numpy()] for table in tables]
    return list(dict.fromkeys(float(value) for values in found for value in values))


def _draw_curves(panel: _Panel, axes: Axes, log_x: bool) -> None:
    low, high = axes.get_ylim()
    # PDF cannot hold a band that reaches 1e300, and a log axis has no 0: cut bands out of sight.
    reach = (low / 100, high * 100) if panel.yscale == "log" else (low, low + 100 * (high - low))
    for value, _ in panel.floors:
        axes.axhline(value, **_FLOOR, label="_floor", zorder=1.8)
    for value in panel.points:
        axes.axhline(value, **_POINT, label="_point", zorder=1.8)
    for order, curve in enumerate(panel.curves):
        shown = curve.series
        if np.isfinite(shown.lo).any():
            lo, hi = np.clip(shown.lo, *reach), np.clip(shown.hi, *reach)
            axes.fill_between(shown.iteration, lo, hi, color=curve.look.color, **_BAND, zorder=1.5)
        step = max(1, len(shown.iteration) // 8)
        line = curve.look.line if curve.first else {**curve.look.line, "marker": ""}
        axes.plot(
            shown.iteration,
            shown.value,
            **line,
            linestyle=curve.linestyle,
            # Staggered, or lines that coincide would hide each other's markers.
            markevery=(step * order // len(panel.curves), step),
            label=curve.name,
            zorder=2 + 0.1 * (curve.agent == AVERAGE),
        )
        if curve.exact is not None:
            axes.plot(
                curve.exact.iteration,
                curve.exact.value,
                color=style.dark(curve.look.color),
                linewidth=_THIN,
                linestyle=_thin(curve.linestyle),
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
    margin = 0.02 * max(end - start, 1)
    axes.set_xlim(start - margin, end + margin)


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
    values = [np.array([value for value, _ in panel.floors]) for panel in panels]
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
        who = "" if panel.lines == "agent" else f"{curve.label} "
        share = "" if part >= 1 else f" ({100 * part:.2g} %)"
        axes.annotate(
            f"{who}diverged, $k$ = {k:g}{share}",
            (0.99, 0.97),
            xycoords="axes fraction",
            # Below the crosses, in the room that the limits leave above the other curves.
            xytext=(0, -3 - 8 * len(noted)),
            textcoords="offset points",
            ha="right",
            va="center",
            fontsize=6,
            color=style.dark(curve.look.color),
            in_layout=False,
            zorder=4,
        )


def _thin(linestyle: Any) -> Any:
    """The same pattern for an exact curve: matplotlib scales dashes with the line's width."""
    if not isinstance(linestyle, tuple):
        return linestyle
    ratio = style.RC["lines.linewidth"] / _THIN
    return (linestyle[0], tuple(ratio * dash for dash in linestyle[1]))


_THIN = 0.6
_BAND: dict[str, Any] = {"alpha": 0.25, "linewidth": 0}
_CROSS: dict[str, Any] = {
    "marker": "x",
    "markersize": 5,
    "markeredgewidth": 1.3,
    "linestyle": "",
}
_POINT: dict[str, Any] = {"color": "#555555", "linewidth": 1.0, "linestyle": (0, (1, 2))}
_FLOOR: dict[str, Any] = {"color": "#555555", "linewidth": 0.8, "linestyle": (0, (6, 3))}


def _handle(curve: _Curve, key: str) -> Artist:
    return Line2D(
        [],
        [],
        **curve.look.line,
        linestyle=curve.linestyle if key == "agent" else "-",
        label=curve.label,
    )


def _common_handles(params: Params, panels: Sequence[_Panel]) -> list[Artist]:
    """Legend entries that belong to no single line: agents, band, exact law, floor, cross."""
    handles: list[Artist] = []
    styles: dict[str, Any] = {}
    for panel in panels:
        if panel.lines != "agent":
            for c in panel.curves:
                text = style.name("agent", c.agent, params.names)
                if params.styles is not None:
                    value = results.lookup(c.run.run, params.styles)
                    text = style.name(params.styles, value, params.names)
                styles[text] = c.linestyle
    handles += [
        Line2D([], [], color=style.GRAY, linestyle=pattern, label=text)
        for text, pattern in styles.items()
    ]
    curves = [curve for panel in panels for curve in panel.curves]
    if any(np.isfinite(curve.series.lo).any() for curve in curves):
        handles.append(Patch(color=style.GRAY, **_BAND, label="bootstrap interval"))
    if any(curve.exact is not None for curve in curves):
        handles.append(Line2D([], [], color="#222222", linewidth=_THIN, label="exact law"))
    draws = dict.fromkeys(str(count) for panel in panels for _, count in panel.floors)
    if draws:
        text = f"floor of {' or '.join(draws)} exact draws"
        handles.append(Line2D([], [], **_FLOOR, label=text))
    if any(panel.points for panel in panels):
        handles.append(Line2D([], [], **_POINT, label="a point at the posterior's mean"))
    if any(curve.diverged for curve in curves):
        text = "diverged (part of the chains)"
        handles.append(Line2D([], [], color=style.GRAY, label=text, **_CROSS))
    return handles
