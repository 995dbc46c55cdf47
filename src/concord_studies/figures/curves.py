"""Curves of any metric over iterations, or over what has been paid, in layers.

Panels come from labels of the runs, and so do the lines in them. A key is a swept label or a
parameter by dotted path; ``topology`` and ``sampler`` stand for their kinds. ``x`` counts
iterations, a price of the whole network such as ``unicast_bytes``, another metric of the network,
or, of the last values alone, a label of numbers.

``layers`` names what is shown beside the estimates of a metric, where a run has it, such as
``exact``, or ``{sd: accuracy_sd}`` with its option. Each is a file of ``concord_studies/layers``,
or of a study's ``plugins/layers``; ``concord list layers`` has all of them.

A run of which a chain diverged is drawn up to that iteration; a cross marks it, at the top of the
panel if the curve left it, and a note says the iteration and the part of the chains. A floor or
point more than half a decade beyond the curves is a number in the legend. At the right of a log
axis are the values at the ends of the lines. ``printed`` are numbers in
print, as hairlines that leave the panel at its right edge.

What a researcher writes in a paper's YAML
------------------------------------------
One panel per topology, one line per agent (Gürbüzbalaban et al., Figs 2 and 3)::

    metric: w2
    columns: topology
    agents: [0, 1, 2, 3, average]
    y: { scale: log, share: all }

Rows for the number of agents, columns for topologies, a color per sampler, agent 1 solid and the
average dashed (Tzikas et al., Figs 1 and 2)::

    metric: w2
    rows: agents
    columns: topology
    lines: sampler
    agents: [0, average]

Panels with their own runs, lines and scales (Gürbüzbalaban et al., Fig 4; Tzikas et al., Fig 3)::

    metric: w2
    panels:
      - { title: Batch size, select: { experiment: linear_batch }, lines: sampler.batch_size }
      - { title: At the end, x: { over: penalty }, lines: reading }

Accuracies with a standard deviation (Tzikas et al., Fig 6)::

    metric: accuracy_mean
    layers: [{ sd: accuracy_sd }]
    y: { shows: percent }

``select`` keeps runs by label or parameter, such as ``{reading: corrected}``; a list of values also
sets the order of panels and lines.
"""

import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from concord.errors import ConcordError
from concord.options import Options, Positive, Some
from concord_studies import metrics, selection, words
from concord_studies.contracts import Read
from concord_studies.figures import _axes, style
from concord_studies.figures.layer import ChosenLayer
from concord_studies.figures.lines import (
    Line,
    LinePanel,
    draw_levels,
    draw_lines,
    list_levels_beyond,
    list_marks,
    mark_divergence,
    read_panel,
)
from concord_studies.figures.panels import (
    Colors,
    Columns,
    Names,
    Panels,
    Rows,
    Select,
    Width,
    arrange_panels,
    cross_panels,
)
from concord_studies.option_notes import NamesLabel
from concord_studies.results import Measured

LABELS = dict.fromkeys(("w2", "w2_exact"), "$W_2$ to the posterior")
USUAL = ("intervals", "exact", "recorded", "floor", "point")  # layers
HALF_DECADE = math.sqrt(10)


Layers = Annotated[
    tuple[ChosenLayer, ...],
    f"what is drawn beside the estimates, in the place of {', '.join(USUAL[:-1])} and {USUAL[-1]}",
]
Printed = Annotated[tuple[float, ...], "numbers in print, hairlines that leave the right edge"]
Scale = Literal["linear", "log"]
Limits = tuple[float | None, float | None]


class Axis(Options):
    """What both axes have."""

    scale: Annotated[Scale, "scale of the axis"] = "linear"
    limits: Annotated[Limits, "[low, high]; null leaves a side to the data"] = (None, None)
    label: Annotated[str | None, "text beside the axis; none: what it shows"] = None


class X(Axis):
    """The x axis."""

    counts: _axes.Price = _axes.ITERATION
    over: Annotated[str | None, NamesLabel("label of numbers: the last values over it")] = None

    @property
    def can_place_divergence(self) -> bool:
        """Whether the axis counts iterations or a price, so that a divergence has a place on it."""
        return not self.over and (self.counts == _axes.ITERATION or self.counts in metrics.prices())


class Y(Axis):
    """The y axis."""

    share: Annotated[Literal["all", "row", "none"], "panels with one y axis"] = "row"
    shows: Annotated[
        Literal["value", "percent", "error"], "percent: 100 times the metric; error: 1 minus it"
    ] = "value"

    def convert(self, values: np.ndarray) -> np.ndarray:
        """Return the metric's values as the axis shows them."""
        return {"value": values, "percent": 100 * values, "error": 1 - values}[self.shows]


class Panel(Options):
    """One entry of ``panels``; an option it leaves out is taken from the figure."""

    title: Annotated[str, "text above the panel, after its letter"] = ""
    select: Select = None
    lines: Annotated[str | None, NamesLabel("'agent', or the label that colors tell apart")] = None
    agents: Annotated[Some[int | str] | None, "agents drawn: indices, 'average'"] = None
    layers: Layers | None = None
    x: Annotated[X | None, "the x axis"] = None
    y: Annotated[Y | None, "the y axis"] = None
    printed: Printed | None = None


class Params(Options):
    """Options of a figure of curves; see the module's text for examples."""

    metric: Annotated[str, "metric on the y axis"]
    rows: Rows = None
    columns: Columns = None
    panels: Annotated[tuple[Panel, ...], "panels listed one by one, instead of rows"] = ()
    select: Select = None
    lines: Annotated[str, NamesLabel("'agent', or the label that colors tell apart")] = "agent"
    agents: Annotated[
        Some[int | str], "agents drawn: indices, average, network, or as the metric has them"
    ] = (0,)
    layers: Layers = msgspec.field(default_factory=lambda: tuple(map(ChosenLayer, USUAL)))
    x: Annotated[X, "the x axis"] = X()
    y: Annotated[Y, "the y axis"] = Y()
    printed: Printed = ()
    legend: Annotated[
        Literal["below", "ends"], "below: under the panels; ends: names at the lines' ends"
    ] = "below"
    height: Annotated[
        Positive | None, "of a row of panels, in inches; none: 1.75, of a panel alone 2.1"
    ] = None
    width: Width = "auto"
    names: Names = None
    colors: Colors = None

    def with_panel(self, panel: Panel) -> "Params":
        """Return the figure's options with those that a panel states in their place."""
        keys = ("lines", "agents", "layers", "x", "y", "printed")
        options = {key: value for key in keys if (value := getattr(panel, key)) is not None}
        return msgspec.structs.replace(self, **options)


def reads(params: Params) -> list[Read | str]:
    """Return the metrics that the runs of the figure must have."""
    metrics: list[Read | str] = []
    for panel in params.panels or (Panel(),):
        select = {**(params.select or {}), **(panel.select or {})}
        options = params.with_panel(panel)
        if options.x.over:  # some runs have no score
            metrics.append(params.metric)
            continue
        metrics.append(Read(params.metric, select, options.agents))
        if options.x.counts not in (_axes.ITERATION, _axes.SHARE):
            metrics.append(Read(options.x.counts, select, ("network",)))
        for layer in options.layers:
            metrics += layer.params.reads(select, options.agents)
    return metrics


@style.drawing
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw curves of a metric over iterations, a price or a label, in panels."""
    panels = _build_panels(params, selection.select(runs, params.select))
    height = params.height or (1.75 if len(panels) > 1 else 2.1)
    drawn = Panels([panel.cell for panel in panels], height, params.y.share, params.width)
    shown = [(panel, ax) for panel, ax in zip(panels, drawn.axes, strict=True) if panel.cell.runs]
    _set_limits(shown, params.y.share)
    for panel, ax in shown:
        draw_levels(panel, ax)
        for layer in panel.params.layers:
            layer.params.draw(panel, ax)
        draw_lines(panel, ax)
        _set_x(panel, ax)
        mark_divergence(panel, ax)
        _axes.mark_printed(ax, panel.params.printed)
        _axes.label_ends(ax, _list_ends(panel, *ax.get_ylim()))
    x, y = params.x, params.y
    xlabel = _axes.name_price(x.over or x.counts)
    if x.over:
        xlabel = str((params.names or {}).get(x.over, style.SYMBOLS.get(x.over, xlabel)))
    ylabel = LABELS.get(params.metric, words.metric(params.metric))
    drawn.label(x.label or xlabel, y.label or ylabel)
    for panel, ax in shown:
        if panel.params.x is not x:
            ax.set_xlabel(panel.params.x.label or panel.params.x.over or ax.get_xlabel())
        if panel.params.y.label and panel.params.y is not y:
            ax.set_ylabel(panel.params.y.label)
    _add_legends(params, shown, drawn)
    if not params.x.can_place_divergence:  # no cross marks them
        style.name_diverged(drawn.figure, params, runs)
    return drawn.figure


def _build_panels(params: Params, runs: list[Measured]) -> list[LinePanel]:
    """Return the panels with lines and layers. A ConcordError for two scales on one y axis."""
    if params.panels and (params.rows or params.columns):
        raise ConcordError("panels are listed and also come from rows or columns; keep one of them")
    if params.panels:
        cells = arrange_panels((p.title, selection.select(runs, p.select)) for p in params.panels)
        options = [params.with_panel(panel) for panel in params.panels]
    else:
        cells = cross_panels(runs, params.names, params.columns, params.rows)
        options = [params] * len(cells)
    if len({each.y.scale for each in options}) > 1 and params.y.share != "none":
        raise ConcordError(
            f"panels with linear and log scale cannot share a y axis "
            f"(y.share: {params.y.share}); set it to none"
        )
    # One legend for all panels needs one look for a value in all of them.
    all_runs = [run for cell in cells for run in cell.runs]
    alike = len({each.lines for each in options}) == 1
    return [
        read_panel(cell, all_runs if alike else cell.runs, each)
        for cell, each in zip(cells, options, strict=True)
    ]


def _set_limits(shown: Sequence[tuple[LinePanel, Axes]], share: str) -> None:
    """Set scale, limits and ticks of y; ``share``: panels with one axis ("all", "row", "none")."""
    groups: dict[Any, list[tuple[LinePanel, Axes]]] = {}
    for index, (panel, ax) in enumerate(shown):
        key = {"all": 0, "row": panel.cell.row, "none": index}[share]
        groups.setdefault(key, []).append((panel, ax))
    for group in groups.values():
        panels = [panel for panel, _ in group]
        low, high = _compute_bounds(panels)
        for panel in panels:
            bottom, top = panel.params.y.limits
            low, high = low if bottom is None else bottom, high if top is None else top
        for panel, ax in group:
            ax.set_yscale(panel.params.y.scale)
            ax.set_ylim(low, high)
            if panel.is_log:
                _axes.label_log_axis(ax.yaxis)


def _compute_bounds(panels: Sequence[LinePanel]) -> tuple[float, float]:
    """Return the y limits that hold the curves; of diverging curves only the start counts.

    Lower ends of intervals do not count on a log axis, which near 0 they would stretch without end,
    and neither do floors, points and printed numbers half a decade away.
    """
    log, lines = panels[0].is_log, [line for panel in panels for line in panel.lines]
    curves, ends = [np.zeros(0)], [np.zeros(0)]
    for line in lines:
        parts = filter(None, (line.estimate, line.law, *line.companions.values()))
        curves += [part.value[:1] if line.diverged else part.value for part in parts]
        if line.has_interval and not line.diverged:
            ends += [line.estimate.hi] if log else [line.estimate.hi, line.estimate.lo]
    values = np.concatenate(curves)
    values = values[np.isfinite(values) & (values > 0 if log else True)]
    if not values.size:
        return (0.1, 1.0) if log else (0.0, 1.0)
    levels = [level.value for panel in panels for level in panel.levels]
    levels += [value for panel in panels for value in panel.params.printed]
    reach = (values.min() / HALF_DECADE, values.max() * HALF_DECADE)
    values = np.append(values, [level for level in levels if reach[0] <= level <= reach[1]])
    tops = np.concatenate([values, *ends])
    tops = tops[np.isfinite(tops)]
    high = min(tops.max(), 1e300)
    diverged = any(line.diverged for line in lines)
    if log:
        return values.min() / 1.2, high * (30 if diverged else 1.2)
    low = tops.min()
    room = high - low or abs(high) or 1.0
    if 0 <= low < 0.3 * high:  # from a little below 0, so that curves near it are seen in full
        return -0.02 * high, high * (1.6 if diverged else 1.05)
    return low - 0.05 * room, high + (0.6 if diverged else 0.05) * room


def _set_x(panel: LinePanel, axes: Axes) -> None:
    """Set scale, limits and ticks of x, by whole runs even where a curve ends early."""
    x = panel.params.x
    numbers = np.concatenate([np.zeros(0), *(line.main.iteration for line in panel.lines)])
    if x.over:
        numbers = np.unique(numbers)
        if not (numbers.size and numbers.min() > 0):
            return
        axes.set_xscale("log")
        if len(numbers) <= 6 or (np.log2(numbers) % 1 == 0).all():
            texts = [f"{n:g}" for n in numbers]
            texts = [s if len(s) < 7 else style.round_number(float(s)) for s in texts]
            axes.set_xticks(numbers, texts)
            axes.minorticks_off()
        else:
            _axes.label_log_axis(axes.xaxis)
        return
    axes.set_xscale(x.scale)
    spans = [line.span for line in panel.lines if line.span]
    start, end = min((s for s, _ in spans), default=0), max((e for _, e in spans), default=1)
    if x.scale == "log":
        start = min(numbers, default=end / 10)
        axes.set_xlim(start / 1.1, end * 1.1)
    else:
        margin = 0.02 * (end - start) or 1
        axes.set_xlim(start - margin, end + margin)
    axes.set_xlim(*x.limits)
    if x.scale == "log":
        _axes.label_log_axis(axes.xaxis)
    _axes.number_axis(axes, x.counts)
    if start == end:  # one iteration, beside which matplotlib would write offsets such as +3e2
        axes.set_xticks([start], [f"{start:g}"])


def _list_ends(panel: LinePanel, low: float, high: float) -> list[_axes.End]:
    """Return the labels at the ends of a panel's lines, and of what its layers draw.

    On a log axis they have the values between its limits, unless printed numbers stand there; and
    names if no legend has them. Lines with one label have it once, in gray.
    """
    ends: dict[str, _axes.End] = {}
    for line in panel.lines:
        counted = panel.is_log and not (panel.params.printed or line.diverged or line.is_muted)
        for x, value in line.last_point:
            parts = [line.text] * (panel.params.legend == "ends")
            parts += [style.round_number(value)] * bool(counted and low <= value <= high)
            if text := ", ".join(parts):
                color = style.NOTE if text in ends else style.darken(line.look.color)
                ends[text] = _axes.End(text, color, x, value)
    of_layers = (end for layer in panel.params.layers for end in layer.params.list_ends(panel))
    return [*ends.values(), *of_layers]


def _add_legends(params: Params, shown: Sequence[tuple[LinePanel, Axes]], drawn: Panels) -> None:
    """Add a legend below all panels; lines that are named at their ends are not in it.

    shown: panels with their axes. drawn: the figure with its grid of panels.
    """
    panels = [panel for panel, _ in shown]
    marks = [*list_marks(panels, {line.get_label() for _, ax in shown for line in ax.lines})]
    marks += list_levels_beyond(shown)
    if params.legend == "ends":
        style.legend_of(drawn.figure, marks)
        return
    noted = {(line.text, _is_note(line, ax)) for panel, ax in shown for line in panel.lines}
    gone = {text for text, is_note in noted if is_note and (text, False) not in noted}
    by_text = {h.get_label(): h for panel in panels for h in panel.handles}
    entries = [handle for text, handle in by_text.items() if text not in gone]
    titled = all(
        len(panel.lines) == 1 and panel.lines[0].text.lower() in panel.cell.title.lower()
        for panel in panels
    )
    entries = [] if len(entries) < 2 or titled else entries  # names that a reader needs
    drawn.with_legend([*entries, *_list_patterns(params, panels)], marks)


def _is_note(line: Line, axes: Axes) -> bool:
    """Return whether of a line that diverged nothing is seen but the note that names it."""
    named = line.diverged is not None and line.params.lines != "agent"
    return named and not (line.main.value <= axes.get_ylim()[1]).any()


def _list_patterns(params: Params, panels: Sequence[LinePanel]) -> list[Artist]:
    """Return the legend's entries of line patterns, if there are several or the one is dashed.

    A label of y that names the average says what dashes are.
    """
    shown = [p for p in panels if p.params.lines != "agent" and not p.params.x.over]
    lines = [line for panel in shown for line in panel.lines if not line.drawn_as]
    patterns = {style.name("agent", line.agent, params.names): line.pattern for line in lines}
    entries: list[Artist] = [
        style.entry(text, color=style.GRAY, linestyle=p) for text, p in patterns.items()
    ]
    unsaid = any(p != "-" for p in patterns.values()) and "average" not in (params.y.label or "")
    return entries if len({str(p) for p in patterns.values()}) > 1 or unsaid else []
