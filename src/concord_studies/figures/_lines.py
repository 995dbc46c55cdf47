"""The lines of a panel of curves: what each shows, read from the runs' metrics."""

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from concord_studies import results, scores, selection
from concord_studies.figures import _axes, style
from concord_studies.figures._panels import Cell, lines
from concord_studies.results import AVERAGE, Divergence, Measured, Series

MUTED = "#949494"
Params = Any  # those of curves, of one panel
_NOTHING = Series(*np.empty((4, 0)))


@dataclass(frozen=True)
class Line:
    """One line of a panel; ``iteration`` of its series is what x counts.

    run: the run shown; of a line over a label, the last.
    text: its entry of the legend; name: the same, and the agent.
    estimate, exact, recorded: the metric, its exact law, and what authors recorded of it; all end
    where the run diverged.
    hollow: points over a label that are estimated where others are exact.
    span: the ends of the whole run on the x axis.
    """

    run: Measured
    agent: int | str
    text: str
    name: str
    look: style.Look
    estimate: Series = _NOTHING
    exact: Series | None = None
    recorded: Series | None = None
    first: bool = True  # carries the markers and the legend's entry of its color
    diverged: Divergence | None = None
    diverged_at: float = math.nan
    span: tuple[float, float] | None = None
    hollow: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))

    @property
    def pattern(self) -> Any:
        """Return the line's pattern: dashed for the average, solid for an agent."""
        return style.AVERAGE_STYLE if self.agent == AVERAGE else "-"

    @property
    def main(self) -> Series:
        """Return the series that is the line: the exact law, or else the estimate."""
        return self.estimate if self.exact is None else self.exact

    @property
    def ends(self) -> np.ndarray:
        """Return the line's last finite value, shape (1,), or (0,) where there is none."""
        return self.main.value[np.isfinite(self.main.value)][-1:]


def read_lines(cell: Cell, scope: Sequence[Measured], params: Params) -> list[Line]:
    """Return the lines of a panel; looks are chosen among those of all runs of ``scope``."""
    if not cell.runs:
        return []
    if params.x.over:
        return list(_read_ends(cell, scope, params))
    found = [_fill(line, params) for line in _name_lines(cell, scope, params)]
    return _subtract_mean(found) if params.has("difference") else found


def _name_lines(cell: Cell, scope: Sequence[Measured], params: Params) -> Iterator[Line]:
    """Yield the lines of a panel with run, agent, texts and look, but without values."""
    key, agents = params.lines, params.agents
    if key == "agent":
        where = f"panel {cell.title!r}" if cell.title else "the panel"
        run = selection.only(cell.runs, where)
        for agent, look in zip(agents, style.looks(key, agents), strict=True):
            text = style.name(key, agent, params.names)
            yield Line(run, agent, text, text, look)
        return
    for value, look, text, own in lines(cell.runs, scope, key, params.names):
        if (muted := _find_gray_text(value, params)) is not None:
            look, text = style.Look(MUTED, ""), muted
        for place, agent in enumerate(agents if own else ()):
            run = selection.only(own, f"line {key} = {value}")
            name = f"{text}, {style.name('agent', agent)}"
            yield Line(run, agent, text, name, look, first=place == 0)


def _find_gray_text(value: Any, params: Params) -> str | None:
    """Return the text under which a value's line is drawn gray, None if it has a color."""
    groups = (params.layer_option("gray") or {}).items()
    return next((text for text, vs in groups if any(selection.is_same(v, value) for v in vs)), None)


def _fill(line: Line, params: Params) -> Line:
    """Return a line with its agent's metric and with what the layers show beside it."""
    run, agent, diverged = line.run, line.agent, results.divergence(line.run)
    end = diverged.iteration if diverged else math.inf
    whole = results.series(run, params.metric, agent)
    if sd := params.layer_option("sd"):
        spread = results.series(run, sd, agent).value
        whole = Series(whole.iteration, whole.value, whole.value - spread, whole.value + spread)
    elif not (params.has("intervals") or params.has("deviation")):
        whole = _drop_ends(whole)
    known = np.array([*whole.iteration[[0, -1]], diverged.iteration if diverged else math.nan])
    start, stop, at = _axes.along(run, known, params.x.counts)
    estimate = _place(run, whole, end, params)
    exact, recorded = (
        _read_companion(run, what, agent, end, params) for what in ("exact", "recorded")
    )
    if params.has("deviation"):
        estimate = _compute_deviation(run, estimate, recorded)
    return replace(
        line,
        estimate=estimate,
        exact=exact if params.has("exact") else None,
        recorded=recorded if params.has("recorded") else None,
        diverged=diverged if params.x.has_iterations else None,  # else there is no place for it
        diverged_at=float(at),
        span=(0.0, 1.0) if params.x.counts == _axes.SHARE else (float(start), float(stop)),
    )


def _read_companion(
    run: Measured, what: str, agent: int | str, end: float, params: Params
) -> Series | None:
    """Return a companion metric of an agent over iterations, such as its exact law, if any."""
    table, name = run.metrics, f"{params.metric}_{what}"
    if not ((table["metric"] == name) & (table["agent"] == str(agent))).any():
        return None
    return _place(run, results.series(run, name, agent), end, params)


def _drop_ends(series: Series) -> Series:
    """Return a series without intervals."""
    none = np.full(len(series.value), np.nan)
    return Series(series.iteration, series.value, none, none)


def _place(run: Measured, whole: Series, end: float, params: Params) -> Series:
    """Return a series before ``end`` by what x counts, with values as y shows them.

    A share is one of all iterations recorded, those that diverged included.
    """
    series = whole.before(end)
    x, columns = series.iteration, (series.value, series.lo, series.hi)
    value, lo, hi = (params.y.convert(column) for column in columns)
    if params.y.shows == "error":
        lo, hi = hi, lo
    if params.x.counts == _axes.SHARE:
        share = (np.arange(len(value)) + 1) / len(whole.value)
        return _drop_ends(Series(share, np.sort(value), lo, hi))
    x = _axes.along(run, x, params.x.counts)
    shown = (x > 0) | (params.x.scale == "linear")  # a log axis has no place for what is free
    return Series(*(column[shown] for column in (x, value, lo, hi)))


def _compute_deviation(run: Measured, ours: Series, recorded: Series | None) -> Series:
    r"""Return (recorded - ours) / ours, with the ends between which another run would be.

    They are those of our interval about 0, times sqrt(1 + n/m), n our and m the authors' number of
    chains.
    """
    if recorded is None:
        return _NOTHING
    chains = run.run["chains"]
    factor = math.sqrt(1 + chains / ((run.run.get("recorded") or {}).get("chains") or chains))
    at = np.searchsorted(ours.iteration, recorded.iteration)
    value, lo, hi = ours.value[at], ours.lo[at], ours.hi[at]
    apart = recorded.value / value - 1
    ends = (factor * (end / value - 1) for end in (lo, hi))
    return Series(recorded.iteration, apart, *ends)


def _subtract_mean(found: Sequence[Line]) -> list[Line]:
    """Return lines minus the mean of all, where all have a value, without intervals."""
    x = functools.reduce(np.intersect1d, (line.estimate.iteration for line in found))
    each = [line.estimate.value[np.isin(line.estimate.iteration, x)] for line in found]
    apart, none = each - np.mean(each, axis=0), np.full(len(x), np.nan)
    return [
        replace(line, estimate=Series(x, value, none, none), exact=None)
        for line, value in zip(found, apart, strict=True)
    ]


def _read_ends(cell: Cell, scope: Sequence[Measured], params: Params) -> Iterator[Line]:
    """Yield the lines of a panel whose x axis is a numeric label: last values, in its order."""
    exact, agent = f"{params.metric}_exact", params.agents[0]
    for _, look, text, own in lines(cell.runs, scope, params.lines, params.names):
        found = {}
        for run in own:
            values = scores.of_sets(run, params.metric, agent)
            if not len(values):
                continue
            row = [np.nan, np.nan, np.nan]
            if len(values) == 1 and len(run.values(params.metric)):
                last = results.series(run, params.metric, agent)
                row[:2] = (last.lo[-1], last.hi[-1]) if params.has("intervals") else row[:2]
            if params.has("exact") and len(run.values(exact)):
                row[2] = results.series(run, exact, agent).value[-1]
            at = float(selection.lookup(run.run, params.x.over))
            found[at] = values, row, scores.is_estimated(run)
        x = np.array(sorted(found))
        sets = np.array([found[n][0] for n in x]).reshape(len(x), -1 if len(x) else 1)
        middle = np.median(sets, axis=1)
        sound = np.isfinite(middle) & ((middle > 0) | (params.y.scale == "linear"))
        lo, hi, law = np.array([found[n][1] for n in x]).reshape(len(x), 3).T
        if params.has("growth") and (fitted := scores.exponent(x, sets)) is not None:
            p, half = fitted
            text += f" ({p:.1f})" if np.isnan(half) else f" ({p:.2f} ± {max(half, 0.01):.2f})"
        shown = np.where(sound, middle, np.nan)
        estimate = Series(x, shown, lo, hi)
        hollow = np.array([found[n][2] for n in x], dtype=bool)
        exact_ends = None
        if np.isfinite(law).any():  # none of a run that diverged
            exact_ends = replace(estimate, value=np.where(sound & np.isfinite(law), law, shown))
        run = own[-1] if own else cell.runs[0]
        yield Line(run, agent, text, text, look, estimate, exact_ends, hollow=hollow)
