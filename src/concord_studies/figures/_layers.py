"""Layers of a panel of curves: what each draws, and the entries of the legend that it needs."""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from concord_studies.figures import _axes, style
from concord_studies.figures._lines import MUTED, Line, Params
from concord_studies.figures._panels import Cell

_RECORDED: dict[str, Any] = {
    **{"marker": "o", "markersize": 3.2, "markerfacecolor": "white", "markeredgewidth": 0.8},
    "linestyle": "",
}
_CROSS: dict[str, Any] = {"marker": "x", "markersize": 5, "markeredgewidth": 1.3, "linestyle": ""}


@dataclass(frozen=True)
class LinePanel:
    """A panel with its options and lines.

    floors: metrics of exact draws, each with the number of draws (0 if not known).
    points: metrics of a point mass at the posterior's mean.
    """

    cell: Cell
    params: Params
    lines: list[Line]
    floors: list[tuple[float, int]]
    points: list[float]

    @property
    def is_log(self) -> bool:
        """Whether the y axis is logarithmic."""
        return self.params.y.scale == "log"

    @property
    def levels(self) -> list[float]:
        """Return the values of the panel's floors and points."""
        return [*(value for value, _ in self.floors), *self.points]

    @property
    def has_bars(self) -> bool:
        """Whether intervals are bars: on a log axis, over a label, or of more than two lines."""
        return self.is_log or len(self.lines) > 2 or bool(self.params.x.over)

    @property
    def handles(self) -> list[Artist]:
        """Return the legend's entries of the panel's lines, each text once."""
        looks: dict[str, dict[str, Any]] = {}
        for line in (line for line in self.lines if line.first):
            text = line.text if len(line.last_value) or line.diverged else f"{line.text} (no point)"
            looks[text] = {"linestyle": line.pattern, **line.look.line}
            if self.params.has("deviation"):
                looks[text] = {**_RECORDED, "markeredgecolor": line.look.color}
        return [style.entry(text, **look) for text, look in looks.items()]


def draw_levels(panel: LinePanel, axes: Axes) -> None:
    """Draw a panel's floors and points as horizontal lines, or as arrows if beyond its limits."""
    low, high = axes.get_ylim()
    beyond = 0
    levels = [(value, "floor", style.FLOOR) for value, _ in panel.floors]
    levels += [(value, "point", style.POINT) for value in panel.points]
    for value, text, look in levels:
        if low <= value <= high:
            axes.axhline(value, **look, label=f"_{text}", zorder=1.8)
        elif value > high or panel.is_log:
            _axes.mark_edge(axes, value, text, beyond)
            beyond += 1


def draw_lines(panel: LinePanel, axes: Axes) -> None:
    """Draw a panel's lines with their layers; the first line is on top."""
    params, many = panel.params, len(panel.lines) > 6
    for index, line in enumerate(panel.lines):
        zorder = 2.0 + 0.5 * (1 - index / len(panel.lines))
        color, gray = line.look.color, line.look.color == MUTED
        if params.has("deviation"):
            _draw_deviation(line, axes)
            continue
        if line.exact is not None and not gray and not params.x.over:
            axes.plot(
                line.estimate.iteration,
                line.estimate.value,
                color=style.lighten(color),
                linestyle=line.pattern,
                linewidth=0.7,
                zorder=1.9,
                label=f"_estimate {line.name}",
            )
        axes.plot(
            line.main_series.iteration,
            line.main_series.value,
            **(line.look.line if line.first else {**line.look.line, "marker": ""}),
            linestyle=line.pattern,
            linewidth=0.6 if gray else 0.9 if many else style.RC["lines.linewidth"],
            markersize=2.8 if many else style.RC["lines.markersize"],
            markevery=_choose_places(panel, index, line.main_series.iteration).tolist(),
            label=line.name,
            zorder=1.85 if gray else zorder,
        )
        _draw_intervals(panel, index, axes, zorder)
        if line.recorded is not None:
            at = line.recorded.take(_choose_places(panel, index, line.recorded.iteration, 14))
            look = {**_RECORDED, "markeredgecolor": color, "label": f"_recorded {line.name}"}
            axes.plot(at.iteration, at.value, **look, zorder=3.2)
        if line.hollow.any():
            at = line.estimate.take(line.hollow)
            look = {"ms": 4, "mfc": "w", "mec": color, "label": "_hollow"}
            axes.plot(at.iteration, at.value, "o", **look, zorder=3.2)
    _draw_power_guides(panel, axes)


def _choose_places(panel: LinePanel, index: int, x: np.ndarray, count: int = 8) -> np.ndarray:
    """Return the indices of x at which the panel's line ``index`` has marks, about ``count``.

    They are as far apart on a log axis as on a linear one, and others for each line, or lines that
    coincide would hide each other's; over a label each point has one.
    """
    if panel.params.x.over or not len(x):
        return np.arange(len(x))
    apart = index / len(panel.lines)
    if panel.params.x.scale == "log":
        along = np.log(x)
        places = along[0] + np.ptp(along) * (np.arange(count) + apart) / count
        return np.unique(np.searchsorted(along, places).clip(0, len(x) - 1))
    step = max(1, len(x) // count)
    return np.arange(int(step * apart), len(x), step)


def _draw_intervals(panel: LinePanel, index: int, axes: Axes, zorder: float) -> None:
    """Draw the intervals of a line's estimate: a band, or bars at some of its points.

    On a log axis a bar that reaches 0 ends in a small arrow.
    index: the line's in the panel, by which its bars are apart from those of others.
    zorder: matplotlib's, of the line.
    """
    line = panel.lines[index]
    shown = line.estimate
    if not np.isfinite(shown.lo).any():
        return
    low, high = axes.get_ylim()
    reach = (low / 100, high * 100) if panel.is_log else (2 * low - high, 2 * high - low)
    lo, hi = np.clip(shown.lo, *reach), np.clip(shown.hi, *reach)  # PDF cannot hold 1e300
    if not panel.has_bars:
        axes.fill_between(shown.iteration, lo, hi, color=line.look.color, **style.BAND, zorder=1.5)
        return
    places = _choose_places(panel, index, shown.iteration)
    at, color = shown.take(places), style.lighten(line.look.color)
    endless = panel.is_log & (at.lo < at.value / 10)
    lo = np.where(endless, at.value / 1.8, at.lo)
    axes.vlines(at.iteration, lo, hi[places], colors=color, linewidth=1.0, zorder=zorder - 0.6)
    if endless.any():
        arrow: dict[str, Any] = {"marker": 11, "markersize": 3, "markeredgewidth": 0}
        arrow |= {"linestyle": "", "color": color, "label": "_to_zero"}
        axes.plot(at.iteration[endless], lo[endless], **arrow, zorder=zorder - 0.6)


def _draw_deviation(line: Line, axes: Axes) -> None:
    """Draw the relative deviation of recorded values, over the band where another run would be."""
    shown, color = line.estimate, line.look.color
    axes.axhline(0, **style.POINT, zorder=1.6)
    axes.fill_between(shown.iteration, shown.lo, shown.hi, color=color, **style.BAND, zorder=1.5)
    look = {**_RECORDED, "markeredgecolor": color, "markersize": 2}
    axes.plot(shown.iteration, shown.value, **look, label=line.name)


def _draw_power_guides(panel: LinePanel, axes: Axes) -> None:
    """Draw a line x^p above each falling curve, p the panel's option ``slopes``, on log axes."""
    slopes = panel.params.layer_option("slopes") or ()
    for line, slope in zip(panel.lines, slopes, strict=False):
        x, y = line.main_series.iteration, line.main_series.value
        x, y = x[(x > 0) & (y > 0)], y[(x > 0) & (y > 0)]
        if not len(x) or y[-1] > 0.7 * y[0]:
            continue  # nothing that falls
        ends = x[[0, -1]]
        along = 1.35 * y[0] * (ends / x[0]) ** slope
        axes.plot(ends, along, **style.POINT, zorder=1.9, label="_slope")
        if len(slopes) > 1:  # else the legend has its name
            axes.annotate(
                f"$k^{{{slope:g}}}$",
                (ends[1], along[1]),
                (3, 0),
                textcoords="offset points",
                va="center",
                ha="left",
                annotation_clip=False,
                fontsize=style.SMALL,
                color=style.NOTE,
            )


def mark_divergence(panel: LinePanel, axes: Axes) -> None:
    """Mark with crosses and notes where runs diverged; at the top if a curve left the panel."""
    top = axes.get_ylim()[1]
    notes: dict[str, tuple[bool, float, float, str, str]] = {}
    for line in panel.lines:
        if line.diverged is None:
            continue
        last = line.main_series.value[-1] if line.main_series.value.size else math.inf
        inside = last < top
        axes.plot(
            [line.diverged_at],
            [last if inside else 0.97],
            transform=axes.transData if inside else axes.get_xaxis_transform(),
            **_CROSS,
            color=line.look.color,
            label=f"_diverged {line.name}",
            clip_on=False,
            zorder=4,
        )
        out = np.flatnonzero(line.main_series.value > top)
        at = line.main_series.iteration[out[0]] if out.size else line.diverged_at
        part, first = line.diverged.fraction, f"$k$ = {line.diverged.iteration:g}"
        who = "" if panel.params.lines == "agent" else f"{line.text}: "
        share = "all" if part >= 1 else f"{100 * part:.2g} % of the"
        text = f"{who}{share} chains diverged,\nthe first at {first}"
        if line.run.run.get("chains") == 1:
            text = f"{who}diverged at {first}"
        notes.setdefault(
            line.run.name, (inside, float(at), last, text, style.darken(line.look.color))
        )
    # Arrows from the texts, in the room that the limits leave above the other curves, to crosses
    # below or to where curves leave the panel above; in this order no arrow crosses a text.
    arrow: dict[str, Any] = {"arrowstyle": "->", "linewidth": 0.6, "shrinkB": 4, "relpos": (0, 0.5)}
    height = 0.91
    for inside, at, last, text, color in sorted(
        notes.values(), key=lambda note: (note[0], note[1] if note[0] else -note[1])
    ):
        axes.annotate(
            text,
            (at, last if inside else 0.99),
            xycoords="data" if inside else ("data", "axes fraction"),
            xytext=(0.99, height),
            textcoords="axes fraction",
            ha="right",
            va="top",
            fontsize=style.SMALL,
            color=color,
            arrowprops={**arrow, "color": color},
            bbox=style.PLATE,
            in_layout=False,
            zorder=4,
        )
        height -= 0.1 * (1 + text.count("\n"))


def legend_of_marks(
    params: Params, panels: Sequence[LinePanel], labels: Collection[Any]
) -> Iterator[Artist]:
    """Yield the legend's entries of what is no curve: intervals, floors, points and crosses.

    labels: matplotlib's labels of the lines that are drawn, such as "_floor"; without its label, as
    of a floor that is an arrow at the edge, a mark needs no entry.
    """
    lines = [line for panel in panels for line in panel.lines]
    gray: dict[str, Any] = {"color": style.GRAY}
    if params.has("deviation"):
        yield Patch(**gray, **style.BAND, label="95 % interval for another run")
        return
    over = any(panel.params.x.over for panel in panels)
    with_ends = [p for p in panels if any(np.isfinite(li.estimate.lo).any() for li in p.lines)]
    sd = "± 1 sd over chains" if params.layer_option("sd") else "95 % interval"
    exact = [line.exact is not None for line in lines]
    pale = "estimate, " if any(exact) and not over else ""
    if any(p.has_bars for p in with_ends):
        bar: dict[str, Any] = {"marker": "|", "markersize": 8, "markeredgewidth": 1.0}
        bar |= {
            "linestyle": "-" if pale else "",
            "linewidth": 0.7,
            "color": style.lighten(style.GRAY),
        }
        yield style.entry(f"{pale}{sd}{', arrow: to 0' if '_to_zero' in labels else ''}", **bar)
    if not all(p.has_bars for p in with_ends):
        yield Patch(**gray, **style.BAND, label=f"{pale}{sd}")
    if any(exact) and not all(exact):
        yield style.entry("exact law (with a pale estimate)", **gray)
    slopes: Sequence[float] = params.layer_option("slopes") or ()
    if len(slopes) == 1:
        yield style.entry(f"$k^{{{slopes[0]:g}}}$", **style.POINT)
    if any(line.recorded is not None for line in lines):
        yield style.entry("recorded by the authors", **_RECORDED, markeredgecolor=style.GRAY)
    draws = dict.fromkeys(str(count) for panel in panels for _, count in panel.floors if count)
    if "_floor" in labels:
        of = f"{' or '.join(draws)} " if draws else ""
        yield style.entry(f"floor of {of}exact draws", **style.FLOOR)
    if "_point" in labels:
        yield style.entry("a point at the posterior's mean", **style.POINT)
    if "_printed" in labels:
        yield style.entry("print", **style.PRINTED)
    if any(line.diverged for line in lines):
        yield style.entry("diverged", **gray, **_CROSS)
    if any(line.hollow.any() for line in lines):
        hollow: dict[str, Any] = {"marker": "o", "markerfacecolor": "white", "linestyle": ""}
        yield style.entry("estimated", **gray, **hollow)
