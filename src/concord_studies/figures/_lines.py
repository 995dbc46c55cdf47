"""The lines of a panel of curves: what each shows, read from the runs' metrics."""

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from concord_studies import results, scores, selection
from concord_studies.figures import _axes, style
from concord_studies.figures._panels import Cell, split_lines
from concord_studies.results import AVERAGE, Divergence, Measured, Series

MUTED = "#949494"
Params = Any  # those of curves, of one panel
_NOTHING = Series.without_intervals(np.zeros(0), np.zeros(0))


@dataclass(frozen=True)
class Line:
    """One line of a panel; ``iteration`` of its series is what x counts.

    A line "over a label" has a point for each run, at the number that is the run's label.

    run: the run shown; of a line over a label, the last.
    text: its entry of the legend; name: the same, and the agent.
    estimate, exact, recorded: the metric, its exact law, and what authors recorded of it; all end
    where the run diverged.
    hollow: points over a label that are estimated where others are exact.
    diverged_at: the place of the divergence on the x axis, nan without one.
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
    def main_series(self) -> Series:
        """Return the series that is the line: the exact law, or else the estimate."""
        return self.estimate if self.exact is None else self.exact

    @property
    def last_value(self) -> np.ndarray:
        """Return the line's last finite y value, shape (1,), or (0,) where there is none."""
        return self.main_series.value[np.isfinite(self.main_series.value)][-1:]


def read_lines(cell: Cell, scope: Sequence[Measured], params: Params) -> list[Line]:
    """Return the lines of a panel; ``scope``, all runs of the figure, fixes their looks."""
    if not cell.runs:
        return []
    if params.x.over:
        return list(_read_last_values(cell, scope, params))
    all_lines = [_read_line(line, params) for line in _name_lines(cell, scope, params)]
    return _subtract_mean(all_lines) if params.has("difference") else all_lines


def _name_lines(cell: Cell, scope: Sequence[Measured], params: Params) -> Iterator[Line]:
    """Yield the lines of a panel with run, agent, texts and look, but without values."""
    key, agents = params.lines, params.agents
    if key == "agent":
        run = selection.take_single(cell.runs, f"panel {cell.title!r}")
        for agent, look in zip(agents, style.looks(key, agents), strict=True):
            text = style.name(key, agent, params.names)
            yield Line(run, agent, text, text, look)
        return
    grays = (params.layer_option("gray") or {}).items()
    for value, look, text, runs in split_lines(cell.runs, scope, key, params.names):
        for gray_text, values in grays:
            if any(selection.is_same(value, muted) for muted in values):
                look, text = style.Look(MUTED, ""), gray_text
        for place, agent in enumerate(agents if runs else ()):
            run = selection.take_single(runs, f"line {key} = {value}")
            name = f"{text}, {style.name('agent', agent)}"
            yield Line(run, agent, text, name, look, first=place == 0)


def _read_line(line: Line, params: Params) -> Line:
    """Return a line with its agent's metric and with what the layers show beside it."""
    run, agent, diverged = line.run, line.agent, results.divergence(line.run)
    end = diverged.iteration if diverged else math.inf
    whole = results.series(run, params.metric, agent)
    if sd := params.layer_option("sd"):
        spread = results.series(run, sd, agent).value
        whole = replace(whole, lo=whole.value - spread, hi=whole.value + spread)
    elif not (params.has("intervals") or params.has("deviation")):
        whole = Series.without_intervals(whole.iteration, whole.value)
    places = np.array([*whole.iteration[[0, -1]], end if diverged else math.nan])
    start, stop, at = _axes.place_iterations(run, places, params.x.counts)
    estimate = _convert_series(run, whole, end, params)
    companions: dict[str, Any] = {}
    for layer in ("exact", "recorded"):
        name = f"{params.metric}_{layer}"
        if len(run.values(name, agent)):
            companions[layer] = _convert_series(run, results.series(run, name, agent), end, params)
    if params.has("deviation"):
        estimate = _compute_deviation(run, estimate, companions.get("recorded"))
    return replace(
        line,
        estimate=estimate,
        **{layer: series for layer, series in companions.items() if params.has(layer)},
        diverged=diverged
        if params.x.can_place_divergence
        else None,  # else there is no place for it
        diverged_at=float(at),
        span=(0.0, 1.0) if params.x.counts == _axes.SHARE else (float(start), float(stop)),
    )


def _convert_series(run: Measured, whole: Series, end: float, params: Params) -> Series:
    """Return the part of a series before iteration ``end``, in the units of the x and y axes.

    A share is one of all iterations recorded, those that diverged included.
    """
    series = whole.finite_before(end)
    value, lo, hi = (params.y.convert(column) for column in (series.value, series.lo, series.hi))
    if params.y.shows == "error":
        lo, hi = hi, lo
    if params.x.counts == _axes.SHARE:
        share = (np.arange(len(value)) + 1) / len(whole.value)
        return Series.without_intervals(share, np.sort(value))
    x = _axes.place_iterations(run, series.iteration, params.x.counts)
    # A log axis has no place for what is free.
    return Series(x, value, lo, hi).take((x > 0) | (params.x.scale == "linear"))


def _compute_deviation(run: Measured, ours: Series, recorded: Series | None) -> Series:
    r"""Return (recorded - ours) / ours, with the interval in which another run's would be.

    Its ends are those of our interval about 0, times sqrt(1 + n/m), n our and m the authors' number
    of chains.
    """
    if recorded is None:
        return _NOTHING
    chains = run.run["chains"]
    factor = math.sqrt(1 + chains / ((run.run.get("recorded") or {}).get("chains") or chains))
    at = ours.take(np.searchsorted(ours.iteration, recorded.iteration))
    lo, hi = (factor * (end / at.value - 1) for end in (at.lo, at.hi))
    return Series(recorded.iteration, recorded.value / at.value - 1, lo, hi)


def _subtract_mean(all_lines: Sequence[Line]) -> list[Line]:
    """Return the lines minus their mean, at the iterations that all have, without intervals."""
    x = functools.reduce(np.intersect1d, (line.estimate.iteration for line in all_lines))
    values = [line.estimate.value[np.isin(line.estimate.iteration, x)] for line in all_lines]
    return [
        replace(line, estimate=Series.without_intervals(x, apart), exact=None)
        for line, apart in zip(all_lines, values - np.mean(values, axis=0), strict=True)
    ]


def _read_last_values(cell: Cell, scope: Sequence[Measured], params: Params) -> Iterator[Line]:
    """Yield the lines of a panel over a numeric label: each run's last value at its number."""
    agent = params.agents[0]
    for _, look, text, runs in split_lines(cell.runs, scope, params.lines, params.names):
        scored = [run for run in runs if len(scores.read_scores(run, params.metric, agent))]
        scored.sort(key=lambda run: float(selection.lookup(run.run, params.x.over)))
        x = np.array([float(selection.lookup(run.run, params.x.over)) for run in scored])
        sets = np.array([scores.read_scores(run, params.metric, agent) for run in scored])
        sets = sets.reshape(len(x), -1 if len(x) else 1)
        middle = np.median(sets, axis=1)
        sound = np.isfinite(middle) & ((middle > 0) | (params.y.scale == "linear"))
        ends = np.array([_read_interval_and_law(run, params) for run in scored])
        lo, hi, law = ends.reshape(len(x), 3).T
        if params.has("growth") and (fit := scores.exponent(x, sets)) is not None:
            p, half = fit
            text += f" ({p:.1f})" if np.isnan(half) else f" ({p:.2f} ± {max(half, 0.01):.2f})"
        estimate = Series(x, np.where(sound, middle, np.nan), lo, hi)
        exact = None
        if np.isfinite(law).any():  # none of a run that diverged
            value = np.where(sound & np.isfinite(law), law, estimate.value)
            exact = replace(estimate, value=value)
        hollow = np.array([scores.is_estimated(run) for run in scored], bool)
        run = runs[-1] if runs else cell.runs[0]
        yield Line(run, agent, text, text, look, estimate, exact, hollow=hollow)


def _read_interval_and_law(run: Measured, params: Params) -> tuple[float, float, float]:
    """Return the last interval's ends and exact value of a metric, nan for what is not shown."""
    agent, lo, hi, law = params.agents[0], math.nan, math.nan, math.nan
    one_set = len(scores.read_scores(run, params.metric, agent)) == 1
    if params.has("intervals") and one_set and len(run.values(params.metric)):
        last = results.series(run, params.metric, agent).take(-1)
        lo, hi = float(last.lo), float(last.hi)
    exact = f"{params.metric}_exact"
    if params.has("exact") and len(run.values(exact)):
        law = results.series(run, exact, agent).value[-1]
    return lo, hi, law
