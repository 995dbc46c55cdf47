"""Layers of a panel of curves: what each draws, and the entries of the legend that it needs."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from concord_studies import words
from concord_studies.figures import style
from concord_studies.figures._panels import Cell
from concord_studies.results import AVERAGE, Divergence, Measured, Series

MUTED = "#a6a6a6"


@dataclass(frozen=True)
class Curve:
    """One line of a panel; its series and exact law end where the run diverged.

    ``iteration`` of both, ``span`` (of the whole run) and ``diverged_at`` are what x counts.
    """

    run: Measured
    agent: int | str
    series: Series
    exact: Series | None
    recorded: Series | None
    look: style.Look
    label: str
    name: str  # label, and agent or what else its pattern stands for
    linestyle: Any
    first: bool  # carries the markers and the legend's entry of its color
    diverged: Divergence | None
    diverged_at: float
    span: tuple[float, float]


@dataclass(frozen=True)
class Ends:
    """One line of a panel: last values over a number in which runs differ, shapes (numbers,)."""

    label: str
    look: style.Look
    x: np.ndarray
    value: np.ndarray  # nan: there is none, or it is infinite
    lo: np.ndarray
    hi: np.ndarray
    exact: np.ndarray
    estimated: np.ndarray  # from chains, in a figure that has exact values, too


@dataclass(frozen=True)
class Panel:
    """A panel of curves or ends, with everything that it shows."""

    cell: Cell
    lines: str
    over: str | None  # what x counts is a label, and the panel has no curves
    yscale: str
    limits: tuple[float | None, float | None]
    curves: list[Curve]
    ends: list[Ends]
    floors: list[tuple[float, int]]  # with numbers of draws
    points: list[float]

    @property
    def handles(self) -> list[Artist]:
        """Return the legend's entries of the panel's lines, each label once."""
        of_agents = self.lines == "agent"
        lines = [
            (c.label, c.look, c.linestyle if of_agents else "-") for c in self.curves if c.first
        ]
        lines += [(ends.label, ends.look, "-") for ends in self.ends]
        found = {text: {"linestyle": pattern, **look.line} for text, look, pattern in lines}
        return [style.entry(text, **look) for text, look in found.items()]


def bounds(panels: Sequence[Panel], log: bool) -> tuple[float, float]:
    """Return the y limits that hold the curves; of diverging curves only the start counts.

    Lower ends of intervals do not count: near 0 they would stretch a log axis without end.
    """
    values = [np.array([value for value, _ in p.floors] + p.points) for p in panels]
    tops = []
    diverged = False
    for curve in (curve for panel in panels for curve in panel.curves):
        if curve.diverged:
            diverged = True
            values.append(curve.series.value[:1])
            continue
        values.append(curve.series.value)
        tops.append(curve.series.hi)
        if curve.exact is not None:
            values.append(curve.exact.value)
    for ends in (ends for panel in panels for ends in panel.ends):
        values += [ends.value, ends.exact]
        tops.append(ends.hi)
    known = np.concatenate(values)
    known = known[np.isfinite(known) & (known > 0 if log else True)]
    if not known.size:
        return (0.1, 1.0) if log else (0.0, 1.0)
    every = np.concatenate([known, *tops])
    low, high = known.min(), min(every[np.isfinite(every)].max(), 1e300)
    if log:
        return low / 1.3, high * (30 if diverged else 1.3)
    if low < 0:
        return low - 0.05 * (high - low), high + (0.6 if diverged else 0.05) * (high - low)
    # A little below 0, so that curves near it are seen in full.
    return -0.02 * high, high * (1.6 if diverged else 1.05)


def draw_curves(panel: Panel, axes: Axes, framed: bool, thin: bool, others: bool) -> None:
    """Draw a panel's curves with their intervals and exact laws.

    Where the limits of y are known (``framed``) intervals on a log axis are bars at the markers, as
    a band that reaches 0 would fill the panel. The first curve, the one that the figure is about,
    is on top there and where hairlines of others are.
    """
    bars = framed and panel.yscale == "log"
    reach = (-math.inf, math.inf)
    if framed:  # PDF cannot hold a band that reaches 1e300: cut bands out of sight
        low, high = axes.get_ylim()
        reach = (low / 100, high * 100) if bars else (low, low + 100 * (high - low))
    places = list(enumerate(panel.curves))
    for order, curve in reversed(places) if others else places:
        shown = curve.series
        step = max(1, len(shown.iteration) // (6 if others else 8))
        first = step * order // len(panel.curves)
        depth = 2.0
        if framed:
            depth += 0.5 * (1 - order / len(panel.curves)) + 0.1 * (curve.agent == AVERAGE)
        color = curve.look.color
        if np.isfinite(shown.lo).any():
            if bars:
                at = slice(first, None, step)
                ends = shown.lo[at], np.clip(shown.hi, *reach)[at]
                draw_bars(axes, shown.iteration[at], shown.value[at], *ends, color, depth)
            else:
                ends = np.clip(shown.lo, *reach), np.clip(shown.hi, *reach)
                band = {**style.BAND, "alpha": 0.08} if thin else style.BAND
                axes.fill_between(shown.iteration, *ends, color=color, **band, zorder=1.5)
        # Staggered, or lines that coincide would hide each other's markers: at recorded iterations,
        # where bars stand or lines are many, or at equal distances on the page.
        apart = (0.03 + 0.15 * order / len(panel.curves), 0.15)
        axes.plot(
            shown.iteration,
            shown.value,
            **(curve.look.line if curve.first else {**curve.look.line, "marker": ""}),
            linestyle=curve.linestyle,
            linewidth=0.6 if color == MUTED else 0.9 if thin else style.RC["lines.linewidth"],
            markevery=(first, step) if framed or others else apart,
            label=curve.name,
            zorder=depth,
        )
        if curve.exact is not None and color != MUTED:
            label = f"_exact {curve.name}"
            draw_exact(axes, curve.exact.iteration, curve.exact.value, color, label)

        if curve.recorded is not None:
            axes.plot(
                curve.recorded.iteration,
                curve.recorded.value,
                **{**_RECORDED, "color": style.dark(color)},
                label=f"_recorded {curve.name}",
            )


def draw_bars(
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
    axes.vlines(x, low, hi, colors=color, **_BAR, zorder=depth - 0.6)
    axes.plot(
        x[endless], low[endless], color=color, **_TO_ZERO, zorder=depth - 0.6, label="_to_zero"
    )


def draw_exact(axes: Axes, x: np.ndarray, value: np.ndarray, color: str, label: str) -> None:
    """Draw the exact law over its estimate, thin and dark."""
    axes.plot(x, value, color=style.dark(color), linewidth=_THIN, label=label, zorder=3)


def draw_levels(panel: Panel, axes: Axes, framed: bool) -> None:
    """Draw a panel's points and floors; a single floor on a log axis with room is named."""
    for value in panel.points:
        axes.axhline(value, **style.POINT, label="_point", zorder=1.8)
    for value, _ in panel.floors:
        axes.axhline(value, **style.FLOOR, label="_floor", zorder=1.8)
        named = framed and panel.yscale == "log" and len(panel.floors) == 1
        if named and value > axes.get_ylim()[0]:
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


def draw_others(curve: Curve, others: Iterable[Series], axes: Axes) -> None:
    """Draw the other agents of a curve's run as hairlines."""
    for series in others:
        look: dict[str, Any] = {"color": curve.look.color, "linewidth": _HAIR, "alpha": 0.5}
        axes.plot(series.iteration, series.value, **look, zorder=1.7, label="_agent")


def draw_ends(panel: Panel, axes: Axes, framed: bool, small: bool) -> None:
    """Draw the last values of runs over a number, with hollow markers where they are estimated."""
    for ends in panel.ends:
        size: dict[str, Any] = {"linewidth": 1, "markersize": 3} if small else {}
        depth = 3 if framed else 2
        axes.plot(ends.x, ends.value, **ends.look.line, **size, label=ends.label, zorder=depth)
        if framed:
            draw_bars(axes, ends.x, ends.value, ends.lo, ends.hi, ends.look.color, 2.6)
            draw_exact(axes, ends.x, ends.exact, ends.look.color, f"_exact {ends.label}")
        if ends.estimated.any():
            at, color = ends.estimated, ends.look.color
            axes.plot(ends.x[at], ends.value[at], "o", ms=4, mfc="w", mec=color, label="_hollow")
    numbers = np.unique(np.concatenate([ends.x for ends in panel.ends]))
    seen = np.isfinite(np.concatenate([ends.value for ends in panel.ends])).any()
    if not framed:
        axes.set_yscale(panel.yscale if seen else "linear")  # a log scale needs a point
    if len(numbers) and (numbers > 0).all() and (np.log2(numbers) % 1 == 0).all():
        axes.set_xscale("log", base=2)
        axes.set_xticks(numbers, [f"{n:g}" for n in numbers])
        axes.minorticks_off()
    else:
        axes.set_xscale("log")
        style.sparse_log_axis(axes.xaxis)


def draw_slopes(panel: Panel, axes: Axes, slopes: Sequence[float]) -> None:
    """Draw powers of x above the first value of each curve, over the range of log axes."""
    drawn = []
    for curve in panel.curves:
        x, y = curve.series.iteration, curve.series.value
        drawn.append((x[(x > 0) & (y > 0)], y[(x > 0) & (y > 0)]))
    for (x, y), slope in zip(drawn, slopes, strict=False):
        if not len(x) or y[-1] > 0.7 * y[0]:
            continue  # nothing that falls
        start = 1.35 * y[0]
        ends = np.array([x[0], x[-1]])
        axes.plot(ends, start * (ends / x[0]) ** slope, **style.POINT, zorder=1.9, label="_slope")
        if len(slopes) == 1:
            continue  # the legend has its name
        # Its name stands above or below it, where the curves are farthest from that.
        at = np.geomspace(x[0], x[-1], 9)[1:-1]
        along = np.log(start * (at / x[0]) ** slope)
        aside = 0.05 * np.ptp(np.log(np.concatenate([y for _, y in drawn])))
        gaps = [
            [
                abs(np.interp(np.log(at), np.log(x), np.log(y)) - along - up)
                for x, y in drawn
                if len(x)
            ]
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


def write_exponents(axes: Axes, fitted: Sequence[tuple[str, Series]]) -> None:
    """Write fitted exponents of decay into the panel."""
    texts = [
        f"{label}: fitted exponent {words.rounded(s.value[-1], s.lo[-1], s.hi[-1])}"
        for label, s in fitted
    ]
    axes.text(0.03, 0.04, "\n".join(texts), transform=axes.transAxes, fontsize=6, va="bottom")


def stretch(axes: Axes, knee: float, low: float, high: float) -> None:
    """Scale an axis so that values above the knee take as much room as those below."""
    ends, half = (low, knee, high), (0.0, 0.5, 1.0)

    def forward(values: np.ndarray) -> np.ndarray:
        """Map values of the axis to places on its stretched scale."""
        return np.interp(values, ends, half, left=-1.0, right=2.0)

    def inverse(places: np.ndarray) -> np.ndarray:
        """Map places on the stretched scale back to values of the axis."""
        return np.interp(places, half, ends)

    axes.set_yscale("function", functions=(forward, inverse))
    axes.axhspan(knee, high, color="#f5f5f5", zorder=0)
    ticks = [*np.arange(low, knee - 0.12, 0.2), *np.linspace(knee, high, 3)]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in np.round(ticks, 3)])


def mark_divergence(panel: Panel, axes: Axes) -> None:
    """Mark with crosses where runs diverged, at the panel's top for curves that left it."""
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
        color = style.dark(curve.look.color)
        axes.annotate(
            f"{who}{share} chains diverged,\nthe first at $k$ = {k:g}",
            (exit_at, 0.99),
            xycoords=("data", "axes fraction"),
            xytext=(0.99, 0.9 - 0.16 * (len(noted) - 1)),
            textcoords="axes fraction",
            ha="right",
            va="top",
            fontsize=6,
            color=color,
            arrowprops={"arrowstyle": "->", "linewidth": 0.6, "color": color},
            in_layout=False,
            zorder=4,
        )


_THIN = 0.6
_HAIR = 0.35
_RECORDED: dict[str, Any] = {
    **{"color": "#222222", "linestyle": (0, (3, 1.5)), "linewidth": 1.0, "zorder": 3.2},
}
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


def intervals_entries(panels: Sequence[Panel], framed: bool) -> Iterator[Artist]:
    """Yield the legend's entries of intervals, for the y scales that show any."""
    known = [c.series.lo for panel in panels for c in panel.curves]
    known += [ends.lo for panel in panels for ends in panel.ends]
    if not any(np.isfinite(lo).any() for lo in known):
        return
    scales = {p.yscale if framed else "linear" for p in panels if p.curves or p.ends}
    apart = len(scales) > 1
    if "log" in scales:
        bar: dict[str, Any] = {"marker": "|", "markersize": 8, "markeredgewidth": 0.9}
        text = f"95 % interval{' (log axis)' if apart else ''}"
        yield style.entry(text, color=style.GRAY, linestyle="", **bar)
    if "linear" in scales:
        text = f"95 % interval{' (linear axis)' if apart else ''}"
        yield Patch(color=style.GRAY, **style.BAND, label=text)


def levels_entries(panels: Sequence[Panel]) -> Iterator[Artist]:
    """Yield the legend's entries of exact laws, floors, points and crosses."""
    curves = [curve for panel in panels for curve in panel.curves]
    ends = [ends for panel in panels for ends in panel.ends]
    if any(c.exact is not None for c in curves) or any(np.isfinite(e.exact).any() for e in ends):
        yield style.entry("exact law", color="#222222", linewidth=_THIN)
    if any(c.recorded is not None for c in curves):
        yield style.entry("recorded by the authors", **_RECORDED)
    draws = dict.fromkeys(str(count) for panel in panels for _, count in panel.floors if count)
    if draws:
        yield style.entry(f"floor of {' or '.join(draws)} exact draws", **style.FLOOR)
    elif any(panel.floors for panel in panels):
        yield style.entry("floor of exact draws", **style.FLOOR)
    if any(panel.points for panel in panels):
        yield style.entry("a point at the posterior's mean", **style.POINT)
    if any(curve.diverged for curve in curves):
        yield style.entry("diverged", color=style.GRAY, **_CROSS)


def spread_entries(agents: Sequence[int | str], others: bool) -> Iterator[Artist]:
    """Yield the legend's entries of standard deviations, and of hairlines of other agents."""
    who = ", ".join(style.name("agent", agent) for agent in agents) + ": mean " if others else ""
    yield Patch(color=style.GRAY, **style.BAND, label=f"{who}± 1 sd over chains")
    if others:
        yield style.entry("mean of each other agent", color=style.GRAY, linewidth=_HAIR)
