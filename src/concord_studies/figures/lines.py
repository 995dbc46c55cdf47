"""The lines of a panel of curves: read from runs, changed by its layers, and drawn."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes

from concord.values import FINITE_RANGE
from concord_studies import results, scores, selection
from concord_studies.figures import _axes, style
from concord_studies.figures.panels import Cell, split_lines
from concord_studies.results import AVERAGE, Divergence, Measured, Series

Params = Any  # those of curves, of one panel
DENSE = 400  # points
NOTHING = Series.without_intervals(np.zeros(0), np.zeros(0))


@dataclass(frozen=True)
class Line:
    """One line of a panel; ``iteration`` of its series has the positions on the x axis.

    params: the panel's options.
    value, text, look: the line's value of the label, its text in the legend, its color and marker.
    estimate: the metric, until the run diverged.
    law: the exact series that is drawn as the line; None: the estimate is.
    companions: further series, by the layer that draws them.
    has_interval: whether the ends of the estimate's intervals are shown.
    drawn_as: matplotlib's options of the line, in place of those of its look.
    end: the iteration at which the run diverged, infinite if it did not.
    diverged_at: the place of the divergence on the x axis, nan without one.
    span: the ends of the whole run on the x axis.
    """

    params: Params
    run: Measured
    agent: int | str
    value: Any
    text: str
    look: style.Look
    estimate: Series = NOTHING
    law: Series | None = None
    companions: Mapping[str, Series] = field(default_factory=dict)
    has_interval: bool = False
    drawn_as: Mapping[str, Any] = field(default_factory=dict)
    first: bool = True  # carries the markers and the legend's entry of its color
    end: float = math.inf
    diverged: Divergence | None = None
    diverged_at: float = math.nan
    span: tuple[float, float] | None = None

    @property
    def name(self) -> str:
        """The line's text, with its agent where text and color do not tell the agent."""
        alone = self.params.lines == "agent" or self.params.x.over
        return self.text if alone else f"{self.text}, {style.name('agent', self.agent)}"

    @property
    def options(self) -> dict[str, Any]:
        """The line's options for matplotlib; first lines and single points have markers."""
        marker = self.look.marker if self.first and not self.is_trace else ""
        if len(self.main.value) == 1:
            marker = self.look.marker or "o"
        return {**self.look.line, "marker": marker, "linestyle": self.pattern, **self.drawn_as}

    @property
    def pattern(self) -> Any:
        """Return the line's pattern: dashed for the average, solid for an agent or a trace."""
        return style.AVERAGE_STYLE if self.agent == AVERAGE and not self.is_trace else "-"

    @property
    def is_trace(self) -> bool:
        """Return whether the line is one of single draws, too many for dashes and markers."""
        points, known = self.estimate.value, np.isfinite(self.estimate.lo).any()
        return self.law is None and len(points) > DENSE and not known

    @property
    def is_muted(self) -> bool:
        """Return whether the line is one of a gray group."""
        return self.look.color == style.MUTED

    @property
    def main(self) -> Series:
        """Return the series that is the line: the law, or else the estimate."""
        return self.estimate if self.law is None else self.law

    @property
    def last_point(self) -> list[tuple[float, float]]:
        """Return the last finite point within x's limits, in a list that is empty without one."""
        end = self.params.x.limits[1]
        within = self.main.iteration <= (math.inf if end is None else end)
        last = np.flatnonzero(np.isfinite(self.main.value) & within)[-1:]
        return [(float(self.main.iteration[at]), float(self.main.value[at])) for at in last]

    @property
    def has_finite_interval(self) -> bool:
        """Return whether an interval is shown."""
        return self.has_interval and bool(np.isfinite(self.estimate.lo).any())

    def read(self, companion: str) -> Series | None:
        """Return the metric ``<metric>_<companion>`` of the line; None if its run has none."""
        metric = f"{self.params.metric}_{companion}"
        if not len(self.run.values(metric, self.agent)):
            return None
        return self.convert(results.series(self.run, metric, self.agent))

    def convert(self, whole: Series) -> Series:
        """Return the part of a run's series before it diverged, in the units of the axes.

        A share is one of all iterations recorded, those that diverged included. whole: the series.
        """
        series, x, y = whole.finite_before(self.end), self.params.x, self.params.y
        value, lo, hi = (y.convert(column) for column in (series.value, series.lo, series.hi))
        if y.shows == "error":
            lo, hi = hi, lo
        if x.counts == _axes.SHARE:
            share = (np.arange(len(value)) + 1) / len(whole.value)
            return Series.without_intervals(share, np.sort(value))
        at = _axes.place_iterations(self.run, series.iteration, x.counts)
        # A log axis has no place for what is free.
        return Series(at, value, lo, hi).take((at > 0) | (x.scale == "linear"))


@dataclass(frozen=True)
class LineOverLabel(Line):
    """A line of the last values of runs, each at the number that is its label.

    runs: in the order of their numbers; ``run`` is the last of the sweep.
    sets: the values, of each data set, (runs, sets).
    hollow: mask of points that are estimated where others are exact.
    """

    runs: Sequence[Measured] = ()
    sets: np.ndarray = field(default_factory=lambda: np.zeros((0, 1)))
    hollow: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))

    def read(self, companion: str) -> Series | None:
        """Return the last values of ``<metric>_<companion>``, or the estimates of runs without.

        None if no run has a finite one.
        """
        metric, sound = f"{self.params.metric}_{companion}", np.isfinite(self.estimate.value)
        last = [run.values(metric, self.agent)[-1:] for run in self.runs]
        value = np.array([float(of[0]) if len(of) else math.nan for of in last])
        if not np.isfinite(value).any():  # none of a run that diverged
            return None
        shown = np.where(sound & np.isfinite(value), value, self.estimate.value)
        return replace(self.estimate, value=shown)


class Level(NamedTuple):
    """A horizontal line of a panel: its value, its text, and matplotlib's options.

    draws: of a floor, the number of exact draws (0 if not known).
    """

    value: float
    text: str
    look: Mapping[str, Any]
    draws: int = 0


@dataclass(frozen=True)
class LinePanel:
    """A panel with its options, its lines, and its levels."""

    cell: Cell
    params: Params
    lines: list[Line]
    levels: Sequence[Level] = ()

    @property
    def is_log(self) -> bool:
        """Whether the y axis is logarithmic."""
        return self.params.y.scale == "log"

    @property
    def has_bars(self) -> bool:
        """Whether intervals are drawn as bars rather than bands, as for points and many lines."""
        points = all(len(line.estimate.iteration) < 2 for line in self.lines)
        return self.is_log or len(self.lines) > 2 or bool(self.params.x.over) or points

    @property
    def handles(self) -> list[Artist]:
        """Return the legend's entries of the panel's lines, each text once."""
        size, looks = style.RC["lines.markersize"], {}
        for line in (line for line in self.lines if line.first):
            text = line.text if line.last_point or line.diverged else f"{line.text} (no point)"
            looks[text] = line.options
        return [style.entry(text, **look | {"markersize": size}) for text, look in looks.items()]

    def place_above(self, index: int) -> float:
        """Return matplotlib's zorder of the line ``index``; the first is on top."""
        return 2.0 + 0.5 * (1 - index / len(self.lines))

    def choose_places(self, index: int, x: np.ndarray, count: int = 8) -> np.ndarray:
        """Return the indices of x at which the line ``index`` has marks, at most about ``count``.

        They are as far apart on a log axis as on a linear one. Lines take places in turn, or marks
        of lines that coincide would hide each other; over a label, and where places are few, each
        point has one.
        """
        marks, lines = count * len(self.lines), len(self.lines)
        if self.params.x.over or len(x) < 2:
            return np.arange(len(x))
        places = np.arange(0, len(x), max(1, len(x) // marks))
        if self.params.x.scale == "log":
            along = np.log(x)
            spots = along[0] + np.ptp(along) * np.arange(marks) / marks
            places = np.unique(np.searchsorted(along, spots))
        return places[index::lines] if len(places) >= 3 * lines else np.arange(len(x))


def read_panel(cell: Cell, scope: Sequence[Measured], params: Params) -> LinePanel:
    """Return a panel with its lines and layers.

    scope: all runs of the figure, so that equal values look the same in all panels.
    """
    if not cell.runs:
        return LinePanel(cell, params, [])
    read = _read_lines_over_label if params.x.over else _read_lines
    panel = LinePanel(cell, params, list(read(cell, scope, params)))
    for layer in params.layers:
        panel = layer.params.show(panel)
    return panel


def _read_lines(cell: Cell, scope: Sequence[Measured], params: Params) -> Iterator[Line]:
    """Yield the lines of a panel, each for an agent of a run.

    cell: the place of the panel. scope: the runs of the figure.
    """
    key, agents = params.lines, params.agents
    if key == "agent":
        run = selection.take_single(cell.runs, f"panel {cell.title!r}")
        for agent, look in zip(agents, style.looks(key, agents), strict=True):
            text = style.name(key, agent, params.names)
            yield _read_line(Line(params, run, agent, agent, text, look))
        return
    for value, look, text, runs in split_lines(cell.runs, scope, key, params.names, params.colors):
        for place, agent in enumerate(agents if runs else ()):
            run = selection.take_single(runs, f"line {key} = {value}")
            yield _read_line(Line(params, run, agent, value, text, look, first=place == 0))


def _read_line(line: Line) -> Line:
    """Return a line with the metric of its agent."""
    run, x, diverged = line.run, line.params.x, results.divergence(line.run)
    line = replace(line, end=diverged.iteration if diverged else math.inf)
    whole = results.series(run, line.params.metric, line.agent)
    places = np.array([*whole.iteration[[0, -1]], line.end if diverged else math.nan])
    start, stop, at = _axes.place_iterations(run, places, x.counts).tolist()
    return replace(
        line,
        estimate=line.convert(whole),
        diverged=diverged if x.can_place_divergence else None,  # else there is no place for it
        diverged_at=at,
        span=(0.0, 1.0) if x.counts == _axes.SHARE else (start, stop),
    )


def _read_lines_over_label(cell: Cell, scope: Sequence[Measured], params: Params) -> Iterator[Line]:
    """Yield the lines of a panel over a numeric label: each run's last value at its number.

    cell: the place of the panel. scope: the runs of the figure.
    """
    agent, metric = params.agents[0], params.metric
    for value, look, text, runs in split_lines(
        cell.runs, scope, params.lines, params.names, params.colors
    ):
        scored = [run for run in runs if len(scores.read_scores(run, metric, agent))]
        scored.sort(key=lambda run: float(selection.lookup(run.run, params.x.over)))
        x = np.array([float(selection.lookup(run.run, params.x.over)) for run in scored])
        sets = np.array([scores.read_scores(run, metric, agent) for run in scored])
        sets = sets.reshape(len(x), -1 if len(x) else 1)
        middle = np.median(sets, axis=1)
        sound = np.isfinite(middle) & ((middle > 0) | (params.y.scale == "linear"))
        lo, hi = np.full((2, len(x)), math.nan)
        for place, run in enumerate(scored):
            if sets.shape[1] == 1 and len(run.values(metric, agent)):
                last = results.series(run, metric, agent).take(-1)
                lo[place], hi[place] = last.lo, last.hi
        yield LineOverLabel(
            *(params, runs[-1] if runs else cell.runs[0], agent, value, text, look),
            estimate=Series(x, np.where(sound, middle, np.nan), lo, hi),
            runs=scored,
            sets=sets,
            hollow=np.array([scores.is_estimated(run) for run in scored], bool),
        )


def draw_levels(panel: LinePanel, axes: Axes) -> None:
    """Draw a panel's levels within its limits as horizontal lines."""
    low, high = axes.get_ylim()
    for value, text, look, _ in panel.levels:
        if low <= value <= high:
            axes.axhline(value, **look, label=f"_{text}", zorder=1.8)


def list_levels_beyond(shown: Sequence[tuple[LinePanel, Axes]]) -> Iterator[Artist]:
    """Yield a legend's entry, with its values, for the levels of each name outside their panels.

    Values that agree to 5 % are of one posterior. Each has the letters of its panels, unless there
    is one for all of them.
    """
    beyond: dict[str, dict[float, set[str]]] = {}
    looks = {}
    for panel, axes in shown:
        low, high = axes.get_ylim()
        for value, text, look, _ in panel.levels:
            if value > high or (value < low and panel.is_log):
                values, looks[text] = beyond.setdefault(text, {}), look
                same = (other for other in values if math.isclose(value, other, rel_tol=0.05))
                values.setdefault(next(same, value), set()).add(str(axes.get_label()))
    for text, values in beyond.items():
        partly = any(len(of) < len(shown) for of in values.values())
        parts = [
            style.round_number(value) + f" ({', '.join(sorted(of))})" * partly
            for value, of in values.items()
        ]
        yield style.entry(f"{text}, off the axis: {', '.join(parts)}", **looks[text])


def draw_lines(panel: LinePanel, axes: Axes) -> None:
    """Draw a panel's lines, the first on top; one of a single point as its marker."""
    many = len(panel.lines) > 6
    for index, line in enumerate(panel.lines):
        x, y = line.main.iteration, line.main.value
        width = 0.9 if many else style.RC["lines.linewidth"]
        look = {
            "linewidth": 0.6 if line.is_muted or line.is_trace else width,
            "markersize": 2.8 if many else style.RC["lines.markersize"],
            "markevery": panel.choose_places(index, x).tolist(),
            "zorder": 1.85 if line.is_muted else panel.place_above(index),
            **line.options,
        }
        axes.plot(x, y, **look, label=line.name)
        if isinstance(line, LineOverLabel) and line.hollow.any():
            at, edge = line.estimate.take(line.hollow), {"markeredgecolor": line.look.color}
            look = {**style.HOLLOW, **edge, "markersize": 4, "label": "_hollow", "zorder": 3.2}
            axes.plot(at.iteration, at.value, **look)


def mark_divergence(panel: LinePanel, axes: Axes) -> None:
    """Mark with crosses and notes where runs diverged; at the top if a curve left the panel."""
    top = axes.get_ylim()[1]
    notes: dict[str, tuple[bool, float, float, str, str]] = {}
    for line in panel.lines:
        if line.diverged is None:
            continue
        last = line.main.value[-1] if line.main.value.size else math.inf
        inside = last < top
        look: dict[str, Any] = {
            **style.CROSS,
            "color": line.look.color,
            "clip_on": False,
            "zorder": 4,
        }
        look["transform"] = axes.transData if inside else axes.get_xaxis_transform()
        place = [last if inside else 0.97]
        axes.plot([line.diverged_at], place, **look, label=f"_diverged {line.name}")
        out = line.main.iteration[line.main.value > top]
        part, first = line.diverged.fraction, f"$k$ = {line.diverged.iteration:g}"
        who = "" if panel.params.lines == "agent" else f"{line.text}: "
        share = "all" if part >= 1 else f"{100 * part:.2g} % of the"
        text = f"{who}{share}\nchains diverged,\nthe first at {first}"
        if line.run.run.get("chains") == 1:
            text = f"{who}diverged at {first}"
        at, color = float([*out, line.diverged_at][0]), style.darken(line.look.color)
        notes.setdefault(line.run.name, (inside, at, last, text, color))
    # Arrows from the texts, in the room that the limits leave above the other curves, to crosses
    # below or to where curves leave the panel above; in this order no arrow crosses a text.
    arrow: dict[str, Any] = {"arrowstyle": "->", "linewidth": 0.6, "shrinkB": 4, "relpos": (0, 0.5)}
    look = {"ha": "right", "va": "top", "fontsize": style.SMALL, "bbox": style.PLATE, "zorder": 4}
    look |= {"textcoords": "axes fraction", "in_layout": False}
    height = top_text = 0.91
    for inside, at, last, text, color in sorted(
        notes.values(), key=lambda note: (note[0], note[1] if note[0] else -note[1])
    ):
        look |= {"color": color, "arrowprops": {**arrow, "color": color}}
        coordinates: Any = "data" if inside else ("data", "axes fraction")
        tip = 0.99 if height == top_text else 0.95  # lower ones pass below crosses on the right
        axes.annotate(text, (at, last if inside else tip), (0.99, height), coordinates, **look)
        height -= 0.1 * (1 + text.count("\n"))


def list_marks(panels: Sequence[LinePanel], labels: set[Any]) -> Iterator[Artist]:
    """Yield the legend's entries of layers and of marks, besides those of lines.

    labels: matplotlib's labels of the lines that are drawn, such as "_floor"; without its label, as
    of a floor that is an arrow at the edge, a mark needs no entry.
    """
    chosen = {layer.kind: layer.params for panel in panels for layer in panel.params.layers}
    for kind, layer in chosen.items():
        having = [p for p in panels if any(of.kind == kind for of in p.params.layers)]
        yield from layer.legend(having, labels)
    if "_printed" in labels:
        text = (panels[0].params.names or {}).get("print", "print")
        yield style.entry(text, **style.PRINTED)
    if any(line.diverged for panel in panels for line in panel.lines):
        text = f"diverged: beyond $10^{{{math.log10(FINITE_RANGE):.0f}}}$"
        yield style.entry(text, color=style.GRAY, **style.CROSS)
    if "_hollow" in labels:
        yield style.entry("estimated", color=style.GRAY, **style.HOLLOW)
