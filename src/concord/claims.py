"""Claims and verdicts: what a paper says, checked against metrics by a stated rule.

A claim names a check kind and the quantities it reads. A quantity is a set of numbers with
intervals, taken from the metrics of some runs; a number that involves no chance is its own
interval.
Every check is a pure function of quantities and decides by their intervals:

- ``holds``: the rule is met wherever in their intervals the true values lie;
- ``does not hold``: it is broken wherever they lie;
- ``inconclusive``: the intervals straddle the rule;
- ``not run``: a number it needs does not exist, and the verdict says why.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from concord.errors import ConcordError, nearest
from concord.figures.data import Measured, lookup
from concord.parameters import build, param

if TYPE_CHECKING:
    import pandas

HOLDS, FAILS, INCONCLUSIVE, NOT_RUN = "holds", "does not hold", "inconclusive", "not run"
VERDICTS = (HOLDS, FAILS, INCONCLUSIVE, NOT_RUN)


class Missing(Exception):
    """A number that a claim needs is not there; the text says which."""


@dataclass(frozen=True)
class Quantity:
    """Numbers of a claim: a metric of some runs."""

    experiment: str = param("id of the experiment")
    metric: str = param("name of the metric")
    runs: dict[str, Any] | None = param("axis: label or [labels]; none: all runs", default=None)
    agents: tuple[int | str, ...] | None = param(
        "agents: indices, average or network; none: all in the table", default=None
    )
    at: str | int | tuple[int, ...] = param(
        "iteration: last, all, a number, or several", default="last"
    )
    reduce: str = param(
        "one number per run: its mean, largest or smallest; none: all numbers",
        default="none",
        choices=("none", "mean", "max", "min"),
    )
    scale: float = param("factor, such as 100 for per cent", default=1.0, above=0)


@dataclass(frozen=True)
class Numbers:
    """Values with intervals, shapes (count,); ``run``, ``agent`` and ``iteration`` say whose."""

    value: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    run: list[Measured]
    agent: list[str]
    iteration: np.ndarray

    def pick(self, index: int) -> str:
        """Return one number as text, with its interval where it has one."""
        return show(self.value[index], self.lo[index], self.hi[index])


def show(value: float, lo: float, hi: float) -> str:
    """Return a number and its interval as text."""
    return f"{value:.4g}" if lo == hi else f"{value:.4g} [{lo:.4g}, {hi:.4g}]"


@dataclass(frozen=True)
class Judgement:
    """A verdict, and our numbers as text."""

    verdict: str
    ours: str


Source = Callable[[Quantity], Sequence[Measured]]


def numbers(quantity: Quantity, runs: Sequence[Measured]) -> Numbers:
    """Return a quantity's numbers.

    Raises
    ------
    Missing
        If there is no run, or a run lacks the metric, an agent or the iteration.
    """
    if not runs:
        raise Missing(f"no run of {quantity.experiment} in this reading")
    chosen = [(run, _rows(quantity, run)) for run in runs]
    if quantity.reduce != "none":
        chosen = [(run, _reduced(quantity.reduce, rows)) for run, rows in chosen]
    columns = {
        name: np.concatenate([np.asarray(rows[name], dtype=float) for _, rows in chosen])
        for name in ("value", "lo", "hi", "iteration")
    }
    exact = np.isnan(columns["lo"])
    lo = np.where(exact, columns["value"], columns["lo"]) * quantity.scale
    hi = np.where(exact, columns["value"], columns["hi"]) * quantity.scale
    return Numbers(
        columns["value"] * quantity.scale,
        lo,
        hi,
        [run for run, rows in chosen for _ in range(len(rows))],
        [str(agent) for _, rows in chosen for agent in rows["agent"]],
        columns["iteration"],
    )


def _rows(quantity: Quantity, run: Measured) -> pandas.DataFrame:
    rows = run.metrics[run.metrics["metric"] == quantity.metric]
    if quantity.agents is not None:
        rows = rows[rows["agent"].isin([str(agent) for agent in quantity.agents])]
    if rows.empty:
        raise Missing(f"{run.name} has no {quantity.metric} of the agents asked for")
    if quantity.at == "last":
        rows = rows[rows["iteration"] == rows["iteration"].max()]
    elif quantity.at != "all":
        wanted = quantity.at if isinstance(quantity.at, tuple) else (quantity.at,)
        rows = rows[rows["iteration"].isin(wanted)]
        if rows.empty:
            raise Missing(f"{run.name} has no {quantity.metric} at iteration {quantity.at}")
    return rows


def _reduced(how: str, rows: pandas.DataFrame) -> pandas.DataFrame:
    """Return one row; the interval of a mean is the mean of the intervals' ends (conservative)."""
    if how == "mean":
        ends = rows[["lo", "hi"]].apply(lambda column: column.fillna(rows["value"]))
        first = rows.iloc[[0]].copy()
        first["value"] = rows["value"].mean()
        first["lo"], first["hi"] = ends["lo"].mean(), ends["hi"].mean()
        return first
    index = rows["value"].idxmax() if how == "max" else rows["value"].idxmin()
    return rows.loc[[index]]


def _decide(sure: bool, refuted: bool) -> str:
    return HOLDS if sure else FAILS if refuted else INCONCLUSIVE


@dataclass(frozen=True)
class Value:
    """The quantity is the printed value, within a tolerance.

    Holds if every interval lies within printed +- tolerance; does not hold if any lies outside.
    """

    quantity: Quantity = param("our numbers")
    printed: float = param("the value in print")
    tolerance: float = param("how far from print still counts as the same", minimum=0)

    def judge(self, source: Source) -> Judgement:
        """Return the verdict."""
        ours = numbers(self.quantity, source(self.quantity))
        low, high = self.printed - self.tolerance, self.printed + self.tolerance
        sure = bool(((ours.lo >= low) & (ours.hi <= high)).all())
        refuted = bool(((ours.hi < low) | (ours.lo > high)).any())
        text = ", ".join(ours.pick(i) for i in range(len(ours.value)))
        return Judgement(_decide(sure, refuted), text)


@dataclass(frozen=True)
class Order:
    """Every number of ``lower`` is below every number of ``higher``.

    Holds if the largest upper end of lower is below the smallest lower end of higher; does not
    hold if some number of lower is surely not below some number of higher.
    """

    lower: Quantity = param("numbers said to be smaller")
    higher: Quantity = param("numbers said to be larger")
    factor: float = param("lower is compared with factor times higher", default=1.0, above=0)

    def judge(self, source: Source) -> Judgement:
        """Return the verdict."""
        lower = numbers(self.lower, source(self.lower))
        higher = numbers(self.higher, source(self.higher))
        sure = lower.hi.max() < self.factor * higher.lo.min()
        refuted = lower.lo.max() >= self.factor * higher.hi.min()
        worst, best = lower.pick(int(lower.hi.argmax())), higher.pick(int(higher.lo.argmin()))
        return Judgement(_decide(bool(sure), bool(refuted)), f"at most {worst} against {best}")


@dataclass(frozen=True)
class Trend:
    """The quantity rises or falls along an axis of the sweep, one number per label.

    Holds if every neighboring pair is surely in order; does not hold if one is surely reversed.
    """

    quantity: Quantity = param("our numbers, one per label of the axis")
    axis: str = param("axis of the sweep, with numeric labels")
    direction: str = param("rising or falling", choices=("rising", "falling"))
    slack: float = param("a pair counts as in order up to this much", default=0.0, minimum=0)

    def judge(self, source: Source) -> Judgement:
        """Return the verdict."""
        ours = numbers(self.quantity, source(self.quantity))
        order = np.argsort([float(lookup(run.run, self.axis)) for run in ours.run], kind="stable")
        value, lo, hi = ours.value[order], ours.lo[order], ours.hi[order]
        if self.direction == "falling":
            value, lo, hi = value[::-1], lo[::-1], hi[::-1]
        sure = bool((hi[:-1] <= lo[1:] + self.slack).all())
        refuted = bool((lo[:-1] > hi[1:] + self.slack).any())
        text = ", ".join(
            f"{self.axis} {lookup(ours.run[i].run, self.axis)}: {ours.pick(i)}" for i in order
        )
        return Judgement(_decide(sure, refuted), text)


@dataclass(frozen=True)
class Rate:
    """The exponent p of quantity ~ x^p is within [at_least, at_most].

    x is an axis of the sweep or the iteration (plus one). p is the least-squares slope of the
    logarithms; its interval lets every number move within its own interval, so it is conservative.
    """

    quantity: Quantity = param("our numbers")
    against: str = param("iteration, or an axis of the sweep with numeric labels")
    at_least: float | None = param("smallest exponent", default=None)
    at_most: float | None = param("largest exponent", default=None)

    def judge(self, source: Source) -> Judgement:
        """Return the verdict."""
        ours = numbers(self.quantity, source(self.quantity))
        if self.against == "iteration":
            x = np.log(ours.iteration + 1)
        else:
            x = np.log([float(lookup(run.run, self.against)) for run in ours.run])
        if np.ptp(x) == 0:
            raise Missing(f"an exponent needs more than one value of {self.against}")
        with np.errstate(divide="ignore"):
            y, lo, hi = np.log(ours.value), np.log(ours.lo), np.log(ours.hi)
        weights = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
        slope = float(weights @ y)
        ends = np.sort([weights * lo, weights * hi], axis=0).sum(axis=1)
        low = -math.inf if self.at_least is None else self.at_least
        high = math.inf if self.at_most is None else self.at_most
        sure = bool(ends[0] >= low and ends[1] <= high)
        refuted = bool(ends[1] < low or ends[0] > high)
        return Judgement(_decide(sure, refuted), f"exponent {show(slope, ends[0], ends[1])}")


@dataclass(frozen=True)
class Bound:
    """The quantity is at most the bound, run by run and iteration by iteration.

    Numbers are paired in the order of their tables. Holds if every upper end is at most the lower
    end of its bound; does not hold if any lower end exceeds the upper end of its bound.
    """

    quantity: Quantity = param("our numbers")
    bound: Quantity = param("what they are said not to exceed")

    def judge(self, source: Source) -> Judgement:
        """Return the verdict."""
        ours = numbers(self.quantity, source(self.quantity))
        bound = numbers(self.bound, source(self.bound))
        if len(ours.value) != len(bound.value):
            raise Missing(f"{len(ours.value)} numbers cannot be paired with {len(bound.value)}")
        sure = bool((ours.hi <= bound.lo).all())
        refuted = bool((ours.lo > bound.hi).any())
        ratio = bound.value / ours.value
        text = f"the bound is {ratio.min():.4g} to {ratio.max():.4g} times our value"
        return Judgement(_decide(sure, refuted), text)


@dataclass(frozen=True)
class Identity:
    """Two quantities are equal within a tolerance, number by number."""

    left: Quantity = param("our numbers")
    right: Quantity = param("what they are said to equal")
    tolerance: float = param("largest difference that counts as equal", minimum=0)

    def judge(self, source: Source) -> Judgement:
        """Return the verdict."""
        left = numbers(self.left, source(self.left))
        right = numbers(self.right, source(self.right))
        if len(left.value) != len(right.value):
            raise Missing(f"{len(left.value)} numbers cannot be paired with {len(right.value)}")
        largest = np.maximum(left.hi - right.lo, right.hi - left.lo)
        smallest = np.maximum(left.lo - right.hi, right.lo - left.hi)
        sure, refuted = largest.max() <= self.tolerance, smallest.max() > self.tolerance
        difference = np.abs(left.value - right.value).max()
        return Judgement(_decide(bool(sure), bool(refuted)), f"largest difference {difference:.3g}")


@dataclass(frozen=True)
class Spread:
    """The numbers agree: they lie within a tolerance of each other.

    The tolerance is absolute, or relative to their mean. Holds if even the outermost ends of the
    intervals are that close; does not hold if two intervals are surely farther apart.
    """

    quantity: Quantity = param("our numbers")
    tolerance: float = param("largest difference between two of them", minimum=0)
    relative: bool = param("the tolerance is a fraction of their mean", default=False)

    def judge(self, source: Source) -> Judgement:
        """Return the verdict."""
        ours = numbers(self.quantity, source(self.quantity))
        allowed = self.tolerance * (abs(ours.value.mean()) if self.relative else 1.0)
        sure = ours.hi.max() - ours.lo.min() <= allowed
        refuted = ours.lo.max() - ours.hi.min() > allowed
        low, high = ours.pick(int(ours.value.argmin())), ours.pick(int(ours.value.argmax()))
        return Judgement(_decide(bool(sure), bool(refuted)), f"from {low} to {high}")


@dataclass(frozen=True)
class Condition:
    """A condition that a theorem asks for is met: every number is 1 (met) rather than 0."""

    quantity: Quantity = param("numbers that are 1 where the condition is met")

    def judge(self, source: Source) -> Judgement:
        """Return the verdict."""
        ours = numbers(self.quantity, source(self.quantity))
        met = int((ours.value == 1).sum())
        text = f"met in {met} of {len(ours.value)}"
        return Judgement(HOLDS if met == len(ours.value) else FAILS, text)


@dataclass(frozen=True)
class Sooner:
    """One quantity reaches a threshold in fewer iterations than another.

    The iteration of arrival is the first at which the value is at or below the threshold; its
    interval runs from the first at which the lower end is, to the first at which the upper end is.
    A curve that never arrives does so at infinity.
    """

    first: Quantity = param("said to arrive first; at: all")
    later: Quantity = param("said to arrive later; at: all")
    threshold: float = param("value to reach")

    def judge(self, source: Source) -> Judgement:
        """Return the verdict."""
        first = [self._arrivals(*pair) for pair in self._curves(self.first, source)]
        later = [self._arrivals(*pair) for pair in self._curves(self.later, source)]
        sure = max(hi for _, _, hi in first) < min(lo for _, lo, _ in later)
        refuted = max(lo for _, lo, _ in first) >= min(hi for _, _, hi in later)
        texts = [show(*max(first, key=lambda a: a[2])), show(*min(later, key=lambda a: a[1]))]
        return Judgement(_decide(sure, refuted), f"iteration {texts[0]} against {texts[1]}")

    def _curves(self, quantity: Quantity, source: Source) -> list[tuple[Numbers, np.ndarray]]:
        ours = numbers(quantity, source(quantity))
        keys = [(run.name, agent) for run, agent in zip(ours.run, ours.agent, strict=True)]
        return [
            (ours, np.array([i for i, k in enumerate(keys) if k == key]))
            for key in dict.fromkeys(keys)
        ]

    def _arrivals(self, ours: Numbers, index: np.ndarray) -> tuple[float, float, float]:
        index = index[np.argsort(ours.iteration[index])]
        found = []
        for values in (ours.value, ours.lo, ours.hi):
            below = np.flatnonzero(values[index] <= self.threshold)
            found.append(float(ours.iteration[index[below[0]]]) if below.size else math.inf)
        return found[0], found[1], found[2]


KINDS: dict[str, type] = {
    "value": Value,
    "order": Order,
    "trend": Trend,
    "rate": Rate,
    "bound": Bound,
    "identity": Identity,
    "spread": Spread,
    "condition": Condition,
    "sooner": Sooner,
}


@dataclass(frozen=True)
class Claim:
    """A claim as a paper's file states it; the check's options depend on its kind."""

    where: str = param("figure, table, theorem or section of the paper")
    says: str = param("what it says, in our words")
    kind: str = param("check kind", choices=tuple(KINDS))
    check: dict[str, Any] = param("options of the check kind")
    readings: tuple[str, ...] = param("readings it is judged in")
    reason: str = param("why this rule and tolerance")
    figure: str | None = param("figure or table of ours that shows it", default=None)

    def checker(self, where: str) -> Any:
        """Return the check with its options."""
        return build(KINDS[self.kind], self.check, f"{where}.check")


def parse(mapping: Mapping[str, Any], where: str) -> Claim:
    """Return a claim of a paper's file, checked."""
    claim = build(Claim, mapping, where)
    claim.checker(where)
    return claim


def quantities(check: Any) -> list[Quantity]:
    """Return the quantities a check reads."""
    return [value for value in vars(check).values() if isinstance(value, Quantity)]


def judge(check: Any, source: Source) -> Judgement:
    """Return a check's judgement; what is missing makes it not run."""
    try:
        return check.judge(source)
    except Missing as missing:
        return Judgement(NOT_RUN, str(missing))
    except ConcordError as error:
        return Judgement(NOT_RUN, str(error))


def known(verdict: str, where: str) -> str:
    """Return the verdict if it is one, else raise with the nearest."""
    if verdict not in VERDICTS:
        raise ConcordError(f"{where}: {verdict!r} is no verdict; {nearest(verdict, VERDICTS)}")
    return verdict
