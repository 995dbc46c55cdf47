"""Scores on several data sets, and what those of several runs say together.

A run has a metric on its data set d as ``<metric>_set_<d>``. Numbers that relate runs, such as a
ratio or an exponent, are estimated here for claims, tables and figures alike.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from concord.errors import ConcordError
from concord.laws.intervals import mean_interval
from concord_studies.results import Measured

if TYPE_CHECKING:
    import pandas


TIE = 1.05  # scores within this factor of each other


def read_scores(measured: Measured, metric: str, agent: int | str) -> np.ndarray:
    """Return an agent's last value of a metric on every data set, (sets,).

    Empty where the run has none, such as of a sampler that refuses the task.
    """
    values = _read_by_set(measured, metric, agent).to_numpy(float)
    return values if len(values) else measured.values(metric, agent)[-1:]


def _read_by_set(measured: Measured, metric: str, agent: int | str) -> pandas.Series:
    """Return a metric of an agent on every data set, by the end of the name: "_set_0", ..."""
    table = measured.metrics
    rows = table["metric"].str.startswith(f"{metric}_set_") & (table["agent"] == str(agent))
    values = table[rows].set_index("metric")["value"]
    return values.rename(lambda name: name.removeprefix(metric))


def task_of(measured: Measured, among: Collection[str]) -> tuple[str, ...]:
    """Return a run's task: its experiment and labels, but for the competitors', ``among``."""
    labels = measured.run.get("labels") or {}
    others = (str(value) for key, value in labels.items() if key not in among)
    return str(measured.run.get("experiment")), *others


def why_no_scores(measured: Measured) -> str | None:
    """Return "not run" or "not applicable" of an arena's run without scores. None with scores."""
    value = measured.values("applicable")
    if not len(value) or value[0] > 0:
        return None
    return "not run" if value[0] < 0 else "not applicable"


def is_estimated(measured: Measured) -> bool:
    """Return whether scores of an arena's run are estimated from chains, not exact."""
    return bool((measured.values("exact") == 0).any())


def decide_pairs(
    runs: Sequence[Measured],
    metric: str,
    agent: int | str,
    among: str = "entry",
    widen: Callable[[int], float] = lambda tasks: 1.0,
) -> dict[tuple[str, str], str]:
    """Return the better of each two entries on a board, {(one, other): better}, where it is sure.

    On a task an entry is better on some share of the data sets, and worse on another; scores within
    ``TIE`` are neither. The difference of both shares decides if its mean over the tasks that both
    have scores of is not 0 by Student's 95 % interval. among: the label that tells entries apart.
    widen: a factor of the interval's half-width by the number of tasks.
    """
    tasks: dict[tuple[str, ...], dict[str, np.ndarray]] = {}
    for run in runs:
        values = read_scores(run, metric, agent)
        if len(values) and why_no_scores(run) is None:
            tasks.setdefault(task_of(run, [among]), {})[str(run.run["labels"][among])] = values
    leads: dict[tuple[str, str], list[float]] = {}
    for cells in tasks.values():
        for one, other in combinations(sorted(cells), 2):
            with np.errstate(divide="ignore", invalid="ignore"):
                log = np.log(cells[other]) - np.log(cells[one])  # no number if infinite alike
            lead = np.mean(1.0 * (log > np.log(TIE)) - (log < -np.log(TIE)))
            leads.setdefault((one, other), []).append(float(lead))
    better = {}
    for pair, by in leads.items():
        mean, _, hi = mean_interval(np.array(by))
        if len(by) > 1 and abs(mean) > widen(len(by)) * (hi - mean):
            better[pair] = pair[int(mean < 0)]
    return better


def pair_sets(
    one: tuple[Measured, str, int | str], other: tuple[Measured, str, int | str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers ``<metric>_set_<d>`` of two runs on every data set d, both (sets,).

    one, other: a run, the metric and the agent. Runs with fewer than two data sets, or with
    different ones, are refused.
    """
    first, second = _read_by_set(*one), _read_by_set(*other)
    if set(first.index) != set(second.index) or len(first) < 2:
        raise ConcordError(
            f"{one[0].name} and {other[0].name} do not have {one[1]!r} of the same two or more "
            f"data sets ({len(first)} and {len(second)}); measure it for both"
        )
    return first.to_numpy(float), second[first.index].to_numpy(float)


class Ratio(NamedTuple):
    """How many times one run's score another's is.

    value: the geometric mean over data sets; infinite if the run diverged.
    lo, hi: ends of its 95 % interval over the data sets, the value itself of one.
    bound: "<" or ">" if some scores of the run, or of the other, are the floor of their chains: the
    ratio is at most, or at least, this.
    """

    value: float
    lo: float
    hi: float
    bound: str = ""

    @property
    def excludes_one(self) -> bool:
        """Whether the ratio surely is not 1, by its interval, or by the side that is bounded."""
        above, below = self.lo > 1, self.hi < 1
        return {"": above or below, "<": below, ">": above}[self.bound]


def ratio(
    run: Measured | None, base: Measured | None, metric: str, agent: int | str
) -> Ratio | str | None:
    """Return the ratio of a run's score to that of the run ``base``, over the data sets.

    A text, "not run" or "not applicable", if one of them has no score. None if their scores cannot
    be compared: data sets differ, ``base`` diverged, or both are at the floor of their chains.
    """
    scores, floors = [], []
    for one in (run, base):
        lacking = "not run" if one is None else why_no_scores(one)
        values = np.empty(0) if one is None else read_scores(one, metric, agent)
        if one is None or lacking or not len(values):
            return lacking or "not run"
        scores.append(values)
        lowest = read_scores(one, f"floor.{metric}", agent)
        floors.append(len(lowest) == len(values) and bool((values <= lowest).any()))
    if not np.isfinite(scores[0]).all():
        return Ratio(np.inf, np.inf, np.inf)
    if len(scores[0]) != len(scores[1]) or not np.isfinite(scores[1]).all() or all(floors):
        return None
    logs = np.log(np.maximum(scores[0], 1e-300)) - np.log(np.maximum(scores[1], 1e-300))
    mean, lo, hi = mean_interval(logs) if len(logs) > 1 else (logs[0], logs[0], logs[0])
    bound = "<" if floors[0] else ">" if floors[1] else ""
    with np.errstate(over="ignore"):
        value, low, high = (float(np.exp(log)) for log in (mean, lo, hi))
    return Ratio(value, low, high, bound)


def exponent(x: np.ndarray, y: np.ndarray) -> tuple[float, float] | None:
    """Return the exponent p of y ~ x^p and the half-width of its 95 % interval over data sets.

    x, y: numbers, shape (numbers,), and scores on each data set, (numbers, sets).
    p is the mean over the sets of the least-squares slope of the logarithms of what is finite,
    three scores at least. The half-width is nan for one set. None if there is no such set.
    """
    slopes = []
    for scores in y.T:
        sound = np.isfinite(scores) & (scores > 0)
        if sound.sum() >= 3:
            slopes.append(np.polyfit(np.log(x[sound]), np.log(scores[sound]), 1)[0])
    if not slopes:
        return None
    mean, lo, _ = mean_interval(np.array(slopes))
    return float(mean), float(mean - lo)
