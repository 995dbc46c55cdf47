"""Curves of any metric over iterations, or over what has been paid, in layers.

Panels come from labels of the runs, and so do the lines in them. A key is a swept label or a
parameter by dotted path; ``topology`` and ``sampler`` stand for their kinds. Lines are over
iterations; over a price of the whole network, such as ``unicast_bytes``, which compares samplers at
equal communication; over another metric (``x_metric``); or, of the last values alone, over a label
of numbers (``over``).

Layers, each of a metric ``m`` where a run has what it draws:

- intervals, from lo to hi: bands, or on a log axis bars at some iterations, since what reaches 0
  would fill the panel (``auto``, which also sets the limits of y by the curves and not by
  intervals); bands everywhere (``band``); one standard deviation over chains, of the metric that is
  named; or ``none``;
- ``m_exact``: the exact law, a thin dark line over each curve;
- ``m_floor``: what as many exact draws would show, a dotted line; ``floor`` names another metric;
- ``m_point``: how far a point at the posterior's mean is, a gray line;
- ``m_recorded``: what a paper's authors recorded of the run, a dashed dark line;
- divergence: a run of which a chain diverged is drawn up to that iteration; a cross marks it, at
  the top of the panel if the curve left it, and a note says the iteration and the part of the
  chains. What is not over iterations has a note on top;
- predictions: powers of k (``slopes``), and fitted exponents (``exponent``, a metric);
- ``others``: every other recorded agent as a hairline.

What a researcher writes in a paper's YAML
------------------------------------------
One panel per topology, one line per agent (Gürbüzbalaban et al., Figs 2 and 3)::

    metric: w2
    columns: topology
    lines: agent
    agents: [0, 1, 2, 3, average]

Rows for the number of agents, columns for topologies, a color per sampler, agent 0 solid and the
average dashed (Tzikas et al., Figs 1 and 2)::

    metric: w2
    rows: agents
    columns: topology
    lines: sampler
    agents: [0, average]

Panels of different kinds side by side, each with its own runs, lines and scale (Gürbüzbalaban et
al., Fig 4), and the last distances over a number (Tzikas et al., Fig 3)::

    metric: w2
    share_y: none
    panels:
      - { title: Batch size, select: { experiment: linear_batch }, lines: sampler.batch_size }
      - { title: Network, select: { experiment: linear_network }, lines: topology, yscale: log }
      - { title: At the end, over: penalty, lines: reading }

Two readings in one panel, a color per sampler, a line pattern per reading::

    metric: w2
    lines: sampler
    styles: reading

Accuracies with a standard deviation and hairlines (Tzikas et al., Fig 6); those above ``stretch``
take half of the axis, so that what ends near 1 can be told apart::

    metric: accuracy_mean
    intervals: accuracy_sd
    others: true
    lines: sampler
    ylim: [0.2, 1.0]
    stretch: 0.9

How a score grows with the number of agents: medians over the data sets of each run, hollow where
they are estimated from chains, and the exponent in the legend::

    metric: gradients_to_0.01
    over: agents
    lines: entry
    agents: [worst]
    intervals: none
    growth: true

``select`` keeps runs by label or parameter, such as ``{reading: corrected}``; a list of values also
sets the order of panels and lines.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from msgspec import Meta

from concord.errors import ConcordError
from concord.options import Options, Positive, Some
from concord_studies import results, scores, selection, words
from concord_studies.contracts import Read
from concord_studies.figures import _layers, _prices, style
from concord_studies.figures._layers import Curve, Ends
from concord_studies.figures._options import (
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
from concord_studies.figures._panels import Cell, Panels, cross, limits, lines, listed
from concord_studies.figures._prices import Price
from concord_studies.option_notes import NamesLabel, NamesRuns
from concord_studies.results import AVERAGE, Measured, Series

LABELS = {"w2": "$W_2$ to the posterior"}
# Floors of as many exact draws as there are chains; others are of draws over time, too.
OF_CHAINS = ("w2_floor",)


class Panel(Options):
    """One entry of ``panels``; an option it leaves out is taken from the figure."""

    title: Annotated[str, "text above the panel, after its letter"] = ""
    select: Annotated[dict | None, NamesRuns("runs of this panel: {label: value or [values]}")] = (
        None
    )
    lines: Annotated[str | None, NamesLabel("'agent', or the label that colors tell apart")] = None
    agents: Annotated[Some[int | str] | None, "agents drawn: indices, 'average'"] = None
    over: Annotated[
        str | None, NamesLabel("label of numbers: the last values over it, on a log axis")
    ] = None
    yscale: Annotated[Scale | None, "scale of y"] = None
    ylim: Annotated[Limits, "[low, high] of y"] = None


class Params(Options):
    """Options of a figure of curves; see the module's text for examples."""

    metric: Annotated[str, "metric on the y axis"]
    rows: Rows = None
    columns: Columns = None
    panels: Annotated[tuple[Panel, ...], "panels listed one by one, instead of rows"] = ()
    select: Select = None
    lines: Lines = "agent"
    styles: Annotated[
        str | None,
        NamesLabel("label that line patterns tell apart, of one agent, where lines is a label"),
    ] = None
    agents: Annotated[
        Some[int | str], "agents drawn: indices, average, network, or as the metric has them"
    ] = (0,)
    x: Price = "iteration"
    x_metric: Annotated[
        str | None, "metric of the network that x counts, in rows of the same iteration"
    ] = None
    over: Annotated[
        str | None, NamesLabel("label of numbers: the last values over it, on a log axis")
    ] = None
    distribution: Annotated[
        bool, "draw values in rising order, over the share of iterations that have no larger one"
    ] = False
    intervals: Annotated[
        str,
        "auto: bands, on log axes bars; band; none; or the metric of a standard deviation",
    ] = "auto"
    exact: Annotated[bool, "draw <metric>_exact where a run has it"] = True
    floor: Annotated[
        bool | str, "draw <metric>_floor where a run has it; or the metric that is the floor"
    ] = True
    point: Annotated[bool, "draw <metric>_point, how far a point at the posterior's mean is"] = True
    others: Annotated[bool, "draw all other recorded agents as hairlines"] = False
    differences: Annotated[
        bool, "draw what each line differs from the mean of all, without intervals"
    ] = False
    slopes: Annotated[
        tuple[float, ...], "exponents of k drawn as gray lines, one beside each line in turn"
    ] = ()
    exponent: Annotated[
        str | None, "metric of the network, a fitted exponent of decay, written in each panel"
    ] = None
    growth: Annotated[bool, "write beside each line with which exponent it grows over a label"] = (
        False
    )
    muted: Annotated[
        dict[str, Some[Any]] | None, "lines drawn gray, {text in the legend: [values of lines]}"
    ] = None
    thin: Annotated[bool, "thinner lines and paler bands, where there are many"] = False
    xscale: Annotated[Scale, "scale of x"] = "linear"
    yscale: Annotated[Scale, "scale of y"] = "linear"
    xlim: Annotated[Limits, "[low, high] of x"] = None
    ylim: Annotated[Limits, "[low, high] of y; null leaves a side to the data"] = None
    share_y: Sharing = "row"
    stretch: Annotated[
        Annotated[float, Meta(gt=0, lt=1)] | None, "values above it take half of the axis"
    ] = None
    xlabel: Annotated[str | None, "text below the x axis"] = None
    ylabel: Annotated[str | None, "text beside the y axis; none: what the metric is"] = None
    height: Annotated[
        Positive | None, "of a row of panels, in inches; none: 1.75, of a panel alone 2.1"
    ] = None
    width: Width = "auto"
    names: Names = None

    @property
    def framed(self) -> bool:
        """Whether the y limits follow the curves alone, and not other layers."""
        return self.intervals == "auto" and not self.differences

    @property
    def spread(self) -> str | None:
        """The metric with the standard deviation over chains, if it is shown."""
        return None if self.intervals in ("auto", "band", "none") else self.intervals


def reads(params: Params) -> list[Read | str]:
    """Return the metrics that the runs of the figure must have."""
    found: list[Read | str] = []
    for panel in params.panels or (Panel(),):
        select = {**(params.select or {}), **(panel.select or {})}
        if panel.over or params.over:  # some runs have no score
            found.append(params.metric)
            continue
        agents = panel.agents or params.agents
        spread = [params.spread] if params.spread else []
        found += [Read(name, select, agents) for name in (params.metric, *spread)]
        if params.x_metric:
            found.append(Read(params.x_metric, select, ("network",)))
        found += _prices.reads(params.x, select)
    named = [params.floor if isinstance(params.floor, str) else None, params.exponent]
    return [*found, *(metric for metric in named if metric)]


@style.drawing
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw curves of a metric over iterations, a price or a label, in panels."""
    panels = _shown(params, selection.select(runs, params.select))
    height = params.height or (1.75 if len(panels) > 1 else 2.1)
    drawn = Panels([panel.cell for panel in panels], height, params.share_y, params.width)
    axes = drawn.axes
    if params.framed:
        _frame(panels, axes, params.share_y)
    along = [(panel, ax) for panel, ax in zip(panels, axes, strict=True) if panel.over is None]
    for panel, ax in along:
        if panel.curves:
            _draw(panel, ax, params)
    for panel, ax in zip(panels, axes, strict=True):  # after all have drawn into what they share
        if not params.framed and panel.limits != (None, None):
            ax.set_ylim(*panel.limits)
        if not params.framed and panel.yscale == "log" and panel.over is None:
            style.plain_log_axis(ax)
    for panel, ax in along:
        _layers.mark_divergence(panel, ax)
    xlabel = _prices.axis([ax for _, ax in along], params.x, params.xscale)
    xlabel = params.x_metric.replace("_", " ") if params.x_metric else xlabel
    xlabel = "share of iterations" if params.distribution else xlabel
    ylabel = params.ylabel or LABELS.get(params.metric, words.metric(params.metric))
    drawn.label(params.xlabel or xlabel, ylabel)
    for panel, ax in zip(panels, axes, strict=True):
        if panel.over is not None:
            _draw_over(panel, panel.over, ax, params, bool(along))
    _legends(params, panels, drawn)
    if not along or params.x_metric:  # no cross marks them
        style.name_diverged(drawn.figure, params, runs)
    return drawn.figure


def _shown(params: Params, runs: list[Measured]) -> list[_layers.Panel]:
    """Return the figure's panels with everything that they show; refuse mixed y scales."""
    if params.panels and (params.rows or params.columns):
        raise ConcordError("panels are listed and also come from rows or columns; keep one of them")
    if params.panels:
        cells = listed((p.title, selection.select(runs, p.select)) for p in params.panels)
        specs = list(zip(cells, params.panels, strict=True))
    else:
        cells = cross(runs, params.names, params.columns, params.rows)
        specs = [(cell, Panel()) for cell in cells]
    scales = {panel.yscale or params.yscale for _, panel in specs}
    if len(scales) > 1 and params.share_y != "none":
        raise ConcordError(
            f"panels with linear and log scale cannot share a y axis "
            f"(share_y: {params.share_y}); set share_y: none"
        )
    keys = [panel.lines or params.lines for _, panel in specs]
    everything = [m for cell, _ in specs for m in cell.runs]
    built = []
    for (cell, panel), key in zip(specs, keys, strict=True):
        # One legend for all panels needs one look for a value in all of them.
        scope = everything if len(set(keys)) == 1 else cell.runs
        agents = panel.agents or params.agents
        over = panel.over or params.over
        curves: list[Curve] = []
        ends: list[Ends] = []
        if over is not None:
            ends = [*_ends(cell, key, agents[0], scope, params, over)]
        elif cell.runs:
            found = _lines(cell, key, agents, scope, params)
            curves = [_curve(*line, params) for line in found]
        here = [curve.run for curve in curves] or cell.runs
        asked = panel.ylim if panel.ylim is not None else params.ylim
        built.append(
            _layers.Panel(
                cell,
                key,
                over,
                panel.yscale or params.yscale,
                limits(asked, "ylim"),
                _apart(curves) if params.differences else curves,
                ends,
                _floors(here, params) if params.floor else [],
                _points(here, params.metric) if params.point else [],
            )
        )
    return built


def _lines(
    cell: Cell, key: str, agents: Sequence[int | str], scope: Sequence[Measured], params: Params
) -> Iterator[tuple[Measured, int | str, style.Look, str, str, Any, bool]]:
    """Yield run, agent, look, texts and line pattern of each curve of a panel."""
    if key == "agent":
        where = f"panel {cell.title!r}" if cell.title else "the panel"
        run = selection.only(cell.runs, where)
        for agent, look in zip(agents, style.looks(key, agents), strict=True):
            text = style.name(key, agent, params.names)
            pattern = style.AVERAGE_STYLE if agent == AVERAGE else style.AGENT_STYLES[0]
            yield run, agent, look, text, text, pattern, True
        return
    if params.styles is not None and len(agents) != 1:
        raise ConcordError(
            f"styles: {params.styles} needs the line patterns, which tell "
            f"agents apart too; draw one agent instead of {list(agents)}"
        )
    for value, look, text, mine in lines(cell.runs, scope, key, params.names):
        if (muted := _muted(value, params)) is not None:
            look, text = style.Look(_layers.MUTED, ""), muted
        members = _members(mine, f"line {key} = {value}", agents, scope, params)
        for place, (run, agent, pattern, part) in enumerate(members):
            name, first = f"{text}, {part}", place == 0
            label = text if first or params.styles is None else name
            yield run, agent, look, label, name, pattern, first


def _members(
    runs: list[Measured],
    where: str,
    agents: Sequence[int | str],
    scope: Sequence[Measured],
    params: Params,
) -> Iterator[tuple[Measured, int | str, Any, str]]:
    """Yield run, agent, pattern and its meaning for each curve of one value of ``lines``."""
    if params.styles is None:
        for agent in agents if runs else ():
            run = selection.only(runs, where)
            yield run, agent, _pattern(agent, agents), style.name("agent", agent)
        return
    for place, pattern in enumerate(selection.distinct(scope, params.styles)):
        if mine := selection.having(runs, params.styles, pattern):
            linestyle = style.AGENT_STYLES[place % len(style.AGENT_STYLES)]
            part = style.name(params.styles, pattern, params.names)
            yield selection.only(mine, f"{where}, {pattern}"), agents[0], linestyle, part


def _muted(value: Any, params: Params) -> str | None:
    """Return the text under which a value's line is drawn gray, None if it has a color."""
    groups = (params.muted or {}).items()
    return next((text for text, vs in groups if any(selection.same(v, value) for v in vs)), None)


def _pattern(agent: int | str, agents: Sequence[int | str]) -> Any:
    """Return an agent's line pattern: solid for the first one, dashed for the average."""
    if agent == AVERAGE and len(agents) > 1:
        return style.AVERAGE_STYLE
    numbered = [a for a in agents if a != AVERAGE]
    place = numbered.index(agent) if agent in numbered else 0
    return style.AGENT_STYLES[place % len(style.AGENT_STYLES)]


def _curve(
    run: Measured,
    agent: int | str,
    look: style.Look,
    label: str,
    name: str,
    linestyle: Any,
    first: bool,
    params: Params,
) -> Curve:
    """Return the curve of an agent's metric in a run, with intervals and exact law."""
    diverged = results.divergence(run)
    end = diverged.iteration if diverged else math.inf
    whole = results.series(run, params.metric, agent)
    if params.intervals == "none":
        whole = _with_ends(whole, np.nan, np.nan)
    elif params.spread:
        sd = results.series(run, params.spread, agent).value
        whole = _with_ends(whole, whole.value - sd, whole.value + sd)
    exact = _beside(run, "exact", agent, end, params) if params.exact else None
    last = diverged.iteration if diverged else math.nan
    known = np.array([whole.iteration[0], whole.iteration[-1], last])
    first_x, last_x, diverged_at = _prices.along(run, known, params.x)
    if params.distribution:
        first_x, last_x = 0.0, 1.0
    return Curve(
        run=run,
        agent=agent,
        series=_along(run, whole.before(end), params),
        exact=exact,
        recorded=_beside(run, "recorded", agent, end, params),
        look=look,
        label=label,
        name=name,
        linestyle=linestyle,
        first=first,
        diverged=None if params.x_metric else diverged,  # x has no place for a cross
        diverged_at=float(diverged_at),
        span=(float(first_x), float(last_x)),
    )


def _beside(
    run: Measured, what: str, agent: int | str, end: float, params: Params
) -> Series | None:
    """Return a companion metric of an agent over iterations, such as its exact law, if any."""
    table, name = run.metrics, f"{params.metric}_{what}"
    if not ((table["metric"] == name) & (table["agent"] == str(agent))).any():
        return None
    return _along(run, results.series(run, name, agent).before(end), params)


def _with_ends(series: Series, lo: np.ndarray | float, hi: np.ndarray | float) -> Series:
    """Return a series with other ends of its intervals."""
    none = np.zeros(len(series.value))
    return Series(series.iteration, series.value, none + lo, none + hi)


def _along(run: Measured, series: Series, params: Params) -> Series:
    """Return a series with iterations replaced by the quantity on the x axis."""
    if params.distribution:
        share = (np.arange(len(series.value)) + 1) / len(series.value)
        ordered = Series(share, np.sort(series.value), series.lo, series.hi)
        return _with_ends(ordered, np.nan, np.nan)
    x = _prices.along(run, series.iteration, params.x)
    if params.x_metric:
        over = results.series(run, params.x_metric, "network")
        x = over.value[np.searchsorted(over.iteration, series.iteration)]
    shown = (x > 0) | (params.xscale == "linear")  # a log axis has no place for what is free
    return Series(*(column[shown] for column in (x, series.value, series.lo, series.hi)))


def _apart(curves: Sequence[Curve]) -> list[Curve]:
    """Return curves minus the mean of all, without intervals."""
    values = [curve.series.value for curve in curves]
    if len({len(value) for value in values}) > 1:
        raise ConcordError("differences: the lines have different iterations; record the same")
    middle = np.mean(values, axis=0)
    found = []
    for curve in curves:
        series = Series(curve.series.iteration, curve.series.value - middle, middle, middle)
        found.append(replace(curve, series=_with_ends(series, np.nan, np.nan), exact=None))
    return found


def _ends(
    cell: Cell,
    key: str,
    agent: int | str,
    scope: Sequence[Measured],
    params: Params,
    over: str,
) -> Iterator[Ends]:
    """Yield the lines of a panel whose x axis is a numeric label, in its order."""
    exact = f"{params.metric}_exact"
    for _, look, text, mine in lines(cell.runs, scope, key, params.names):
        found = {}
        for run in mine:
            values = scores.of_sets(run, params.metric, agent)
            if not len(values):
                continue
            row = [np.nan, np.nan, np.nan]
            if len(values) == 1 and len(run.values(params.metric)):
                last = results.series(run, params.metric, agent)
                row[:2] = last.lo[-1], last.hi[-1]
            if params.exact and len(run.values(exact)):
                row[2] = results.series(run, exact, agent).value[-1]
            found[float(selection.lookup(run.run, over))] = values, row, scores.estimated(run)
        x = np.array(sorted(found))
        sets = np.array([found[n][0] for n in x]).reshape(len(x), -1 if len(x) else 1)
        middle = np.median(sets, axis=1)
        sound = np.isfinite(middle) & ((middle > 0) | (params.yscale == "linear"))
        lo, hi, law = np.array([found[n][1] for n in x]).reshape(len(x), 3).T
        drawn = np.array([found[n][2] for n in x], dtype=bool)
        if params.growth and (fitted := scores.exponent(x, sets)) is not None:
            p, half = fitted
            text += f" ({p:.1f})" if np.isnan(half) else f" ({p:.2f} ± {max(half, 0.01):.2f})"
        yield Ends(text, look, x, np.where(sound, middle, np.nan), lo, hi, law, drawn)


def _floors(runs: Sequence[Measured], params: Params) -> list[tuple[float, int]]:
    """Return the floors of a panel, each with its number of draws (0 if not known).

    Runs estimate the floor of one posterior each for itself; estimates that agree to 5 % are drawn
    once. A floor that is named is the first run's.
    """
    named = params.floor if isinstance(params.floor, str) else None
    metric = named or f"{params.metric}_floor"
    floors: dict[float, int] = {}
    for run in runs[:1] if named else runs:
        for value in run.values(metric)[-1:].tolist():
            if not any(math.isclose(value, other, rel_tol=0.05) for other in floors):
                floors[value] = int(run.run["chains"]) if metric in OF_CHAINS else 0
    return list(floors.items())


def _points(runs: Sequence[Measured], metric: str) -> list[float]:
    """Return the distance of a point at the posterior's mean, for each posterior shown."""
    first = (value for run in runs for value in run.values(f"{metric}_point")[:1])
    return list(dict.fromkeys(float(f"{value:.6g}") for value in first))


def _frame(panels: Sequence[_layers.Panel], axes: Sequence[Axes], share: str) -> None:
    """Set the y limits of panels, together for those that share an axis."""
    groups: dict[Any, list[int]] = {}
    for index, panel in enumerate(panels):
        if panel.curves or panel.ends:
            key = {"all": 0, "row": panel.cell.row, "none": index}[share]
            groups.setdefault(key, []).append(index)
    for members in groups.values():
        log = panels[members[0]].yscale == "log"
        low, high = _layers.bounds([panels[i] for i in members], log)
        for i in members:
            asked_low, asked_high = panels[i].limits
            low = low if asked_low is None else asked_low
            high = high if asked_high is None else asked_high
        for i in members:
            axes[i].set_yscale(panels[i].yscale)
            axes[i].set_ylim(low, high)
            if log:
                style.plain_log_axis(axes[i])


def _draw(panel: _layers.Panel, axes: Axes, params: Params) -> None:
    """Draw the layers of a panel of curves."""
    if not params.framed:
        axes.set_yscale(panel.yscale)
    _layers.draw_levels(panel, axes, params.framed)
    if params.others:
        for curve in reversed(panel.curves):  # the first on top
            _layers.draw_others(curve, _others(curve, params), axes)
    _layers.draw_curves(panel, axes, params.framed, params.thin, params.others)
    _layers.draw_slopes(panel, axes, params.slopes)
    if params.exponent:
        metric = params.exponent
        fitted = [(c.label, results.series(c.run, metric, "network")) for c in panel.curves]
        _layers.write_exponents(axes, fitted)
    if params.stretch is not None:
        low, high = panel.limits
        _layers.stretch(axes, params.stretch, low or 0.0, high or 1.0)
    if params.framed:
        _across(panel, axes, params.xscale == "log")
    else:
        axes.margins(x=0.02)
    if params.xlim is not None:
        axes.set_xlim(*limits(params.xlim, "xlim"))


def _others(curve: Curve, params: Params) -> Iterator[Series]:
    """Yield the metric of the other recorded agents of a curve's run, one series each."""
    table = curve.run.metrics
    recorded = table["agent"][(table["metric"] == params.metric).to_numpy()]
    for agent in dict.fromkeys(recorded):
        if str(agent) not in map(str, params.agents):
            whole = results.series(curve.run, params.metric, agent)
            end = curve.diverged.iteration if curve.diverged else math.inf
            yield _along(curve.run, whole.before(end), params)


def _across(panel: _layers.Panel, axes: Axes, log: bool) -> None:
    """Set the x limits of a panel by whole runs, even where a curve ends early."""
    start = min(curve.span[0] for curve in panel.curves)
    end = max(curve.span[1] for curve in panel.curves)
    if log:
        begun = [curve.series.iteration[:1] for curve in panel.curves]
        start = min(np.concatenate(begun), default=end / 10)
        axes.set_xlim(start / 1.1, end * 1.1)
        return
    margin = 0.02 * ((end - start) or 1)
    axes.set_xlim(start - margin, end + margin)


def _draw_over(panel: _layers.Panel, over: str, axes: Axes, params: Params, legend: bool) -> None:
    """Draw a panel over a label, with its own legend if ``legend``."""
    _layers.draw_levels(panel, axes, params.framed)
    _layers.draw_ends(panel, axes, params.framed, params.thin)
    text = str((params.names or {}).get(over, style.SYMBOLS.get(over, over.replace("_", " "))))
    axes.set_xlabel(text if legend else params.xlabel or text)
    if legend:
        axes.legend(handles=panel.handles, loc="best", fontsize=6)


def _legends(params: Params, panels: Sequence[_layers.Panel], drawn: Panels) -> None:
    """Put a legend below all panels, or one below each if their lines differ."""
    common = _common(params, panels)
    along = [panel for panel in panels if panel.over is None]
    if not along:
        size = {"ms": 3} if params.thin else {}
        own = {ends.label: ends for panel in panels for ends in panel.ends}.values()
        seen = [ends.look for ends in own if np.isfinite(ends.value).any()]
        named = ((ends.label, ends.look) for ends in own)
        common = [*style.entries_drawn(drawn.axes[0], named, seen, **size), *common]
    elif len({panel.lines for panel in along}) == 1:
        entries = {h.get_label(): h for panel in along for h in panel.handles}
        common = [*entries.values(), *common]
    else:
        width = drawn.figure.get_figwidth() / drawn.columns - 0.3
        below = [panel.handles if panel.over is None else [] for panel in panels]
        style.legends_below(drawn.axes, below, width)
    style.legend_of(drawn.figure, common)


def _common(params: Params, panels: Sequence[_layers.Panel]) -> list[Artist]:
    """Return the legend's entries of line patterns and layers, which panels share."""
    if params.differences:
        return []
    patterns: dict[str, Any] = {}
    for curve in (c for panel in panels if panel.lines != "agent" for c in panel.curves):
        text = style.name("agent", curve.agent, params.names)
        if params.styles is not None:
            value = selection.lookup(curve.run.run, params.styles)
            text = style.name(params.styles, value, params.names)
        elif curve.agent == "network" or params.intervals not in ("auto", "band"):
            continue
        patterns[text] = curve.linestyle
    entries: list[Artist] = [
        style.entry(text, color=style.GRAY, linestyle=pattern) for text, pattern in patterns.items()
    ]
    if params.spread:
        entries += _layers.spread_entries(params.agents, params.others)
    else:
        entries += _layers.intervals_entries(panels, params.framed)
    if len(params.slopes) == 1:
        entries.append(style.entry(f"$k^{{{params.slopes[0]:g}}}$", **style.POINT))
    return [*entries, *_layers.levels_entries(panels)]
