"""Checks: rules by which a paper's claims are judged, pure functions of quantities' numbers.

A check compares numbers case by case and returns by how much each exceeds what its rule allows
(``Excess``), with a sentence and the number that decides. Intervals (``claims.quantities``) say
whether


- the rule is met: for all values inside the intervals;
- it is broken: in some case, wherever the values lie;
- it is open: the intervals straddle it. What follows from that is said by ``claims.verdicts``.

The sentence says who, where and how much. What is infinite is a result (the error of a diverged
run): it is above every number, below none, and equal to nothing. So is what is not a number because
its run diverged: a claim about it does not hold, and one that only says it is worse than another is
inconclusive. Chance is that of the samplers: numbers that it does not enter are exact for the data
that the seed drew. A claim whose verdict depends on those (``claims.robustness`` finds it) is
inconclusive.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from msgspec.structs import asdict

from concord.errors import ConcordError, nearest, short
from concord.hints import tagged_kinds
from concord.laws.intervals import mean_interval
from concord.options import Kind, NonNegative, Positive
from concord_studies import words
from concord_studies.claims.quantities import (
    DivergedQuantity,
    Missing,
    Numbers,
    Quantity,
    number_text,
    plan_numbers,
)
from concord_studies.runs.run import Run
from concord_studies.scores import decide_pairs, pair_sets
from concord_studies.selection import has
from concord_studies.words import name, number

ENDS = "value", "lo", "hi"


@dataclass(frozen=True)
class Excess:
    """The excesses of numbers over what a rule allows, case by case.

    value, lo, hi: the excess in each case, (cases,), and its interval. A case meets the rule where
    it is at most 0; of a ``strict`` rule where it is below.
    """

    value: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    _: KW_ONLY
    strict: bool = False

    @classmethod
    def from_ends(cls, first: Any, second: Any, strict: bool = False) -> Self:
        """Return the excesses of numbers over others, with intervals.

        first, second: the value, lower and upper end of each number, three arrays of one length.

        Numbers that are infinite alike exceed each other by 0; in a strict rule, which asks them to
        be below, by infinity.
        """
        pairs = zip(first, (second[0], second[2], second[1]), strict=True)
        alike = math.inf if strict else 0.0
        return cls(*(_subtract(one, other, alike) for one, other in pairs), strict=strict)

    @property
    def is_met(self) -> bool:
        """Whether every case surely meets the rule."""
        return bool((self.hi < 0 if self.strict else self.hi <= 0).all())

    @property
    def is_broken(self) -> bool:
        """Whether some case surely breaks the rule, so that the rule is not met."""
        return self.failures > 0 and not self.is_met

    @property
    def _fails(self) -> np.ndarray:
        """Whether each case surely does not meet the rule, (cases,)."""
        return self.lo >= 0 if self.strict else self.lo > 0

    @property
    def failures(self) -> int:
        """The number of cases that surely do not meet the rule."""
        return int(self._fails.sum())

    @property
    def largest_failure(self) -> float:
        """The largest excess of the cases that surely break the rule; 0 if none does."""
        return float(self.value[self._fails].max(initial=0))

    @property
    def decisive_case(self) -> int:
        """The index of the case that decides: the surest to break the rule, or the nearest to."""
        return int((self.lo if self.is_broken else self.hi).argmax())


@dataclass(frozen=True)
class Margin:
    """The number that decides a verdict, with its interval and the range that the rule allows.

    value, lo, hi: the number and its interval. low, high: the range; the interval lies within it if
    the claim holds, and outside if it does not.
    what: what the number is, such as "ratio". printed: the paper's number, if it states one.
    of_exact: whether lo and hi are exact numbers, each with digits of its own, and no interval.
    """

    value: float
    lo: float
    hi: float
    _: KW_ONLY
    low: float = -math.inf
    high: float = math.inf
    what: str = ""  # of the quantity it is, such as a ratio
    printed: float | None = None
    of_exact: bool = False

    @classmethod
    def from_ends(cls, ends: Iterable[Any], **rule: Any) -> Self:
        """Return the margin of ``ends``, (value, lo, hi); ``rule`` has the other fields by name."""
        return cls(*map(float, ends), **rule)

    @property
    def text(self) -> str:
        """The number with its interval in words, and for which numbers the rule is met."""
        text = number_text(self.value, self.lo, self.hi)
        if self.of_exact and self.lo < self.hi:
            text = f"{number(self.value)} [{number(self.lo)}, {number(self.hi)}]"
        text = f"{self.what}: {text}" if self.what else text
        return f"{text} (rule: {self.range})" if self.range else text

    @property
    def range(self) -> str:
        """The numbers for which the rule is met, such as "0.9 to 1.1"; "" if these are all."""
        low, high = (f"{end + 0:g}" if math.isfinite(end) else "" for end in (self.low, self.high))
        if low and high:
            return low if low == high else f"{low} to {high}"
        return f"at least {low}" if low else f"at most {high}" if high else ""


class Result(NamedTuple):
    """The result of a check on numbers.

    excess: by how much the numbers exceed the rule. text: a sentence on them. margin: the number
    nearest to the rule, which decides. says_what: whether the text says what the numbers are.
    sets: for each compared pair of runs, on how many data sets both were made.
    """

    excess: Excess
    text: str
    margin: Margin | None = None
    says_what: bool = False
    sets: Sequence[int] = ()


class _Rule(Kind):
    """A rule that numbers of quantities meet or exceed.

    ``exceed`` takes the numbers of each of its quantities and returns its ``Result``; ``pair``,
    where a check has it, which of them are compared, and raises ``Missing`` if they cannot be.

    WORSE: the option whose quantity is claimed to be the worse one: if only its runs diverged, the
    verdict is open; if others did, the claim fails.
    """

    WORSE: ClassVar[str] = ""

    @property
    def kind(self) -> str:
        """Return the name of the check's kind in a study."""
        return str(self.__struct_config__.tag)


def _join_shortened(texts: Sequence[str]) -> str:
    """Return texts joined by semicolons; of more than eight the first and last three."""
    if len(texts) > 8:
        texts = [*texts[:3], f"... ({len(texts)} numbers)", *texts[-3:]]
    return "; ".join(texts)


def _describe_range(ours: Numbers) -> str:
    """Describe the smallest and the largest number with their owners; all of up to three."""
    order = np.argsort(ours.value, kind="stable")
    if len(order) <= 3:
        return "; ".join(ours.describe(i) for i in range(len(order)))
    return f"{len(order)} numbers from {ours.describe(order[0])} to {ours.describe(order[-1])}"


def _subtract(left: Any, right: Any, alike: float = math.inf) -> Any:
    """Return left - right; ``alike`` is the difference of two numbers that are infinite alike."""
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(np.subtract(left, right), nan=alike, posinf=np.inf, neginf=-np.inf)


def _ends(numbers: Numbers, at: Any) -> list[np.ndarray]:
    """Return the values of some numbers, and the lower and upper ends of their intervals.

    at: indices of the numbers.
    """
    return [numbers.value[at], numbers.lo[at], numbers.hi[at]]


def _pair_by_keys(
    first: Numbers, second: Numbers, names: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices, in ``first`` and ``second``, of all pairs that agree in ``names``."""
    keys = [numbers.keys(names) for numbers in (first, second)]
    for side_keys, others, other in (
        (keys[0], {*keys[1]}, "second"),
        (keys[1], {*keys[0]}, "first"),
    ):
        alone = next((key for key in side_keys if key not in others), None)
        if alone is not None:
            what = ", ".join(f"{n} {k}" for n, k in zip(names, alone, strict=True))
            raise Missing(
                f"numbers cannot be paired: the {other} quantity has none of {what}; choose the "
                f"same {' and '.join(names)} on both sides, or a single one on one of them"
            )
    pairs = [(i, j) for i, key in enumerate(keys[0]) for j, k in enumerate(keys[1]) if k == key]
    i, j = np.array(pairs).T
    return i, j


def _shared_axes(first: Numbers, second: Numbers) -> list[str]:
    """Return the axes that vary in both of two quantities: sweep, agents or iterations.

    An axis of one value on a side, such as two samplers that are compared, or one agent against the
    network, is what the sides may differ in.
    """
    return [name for name in first.varying_axes() if name in second.varying_axes()]


def pair_common(first: Numbers, second: Numbers) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of all pairs of numbers of two quantities that agree on common axes.

    An axis of which they have no value in common is what they differ in.
    """
    names = _shared_axes(first, second)
    names = [n for n in names if not set(first.keys([n])).isdisjoint(second.keys([n]))]
    return _pair_by_keys(first, second, names)


def _match_each(first: Numbers, second: Numbers) -> np.ndarray:
    """Return the index in ``second`` of the only number that matches each number of ``first``."""
    names = _shared_axes(first, second)
    i, j = _pair_by_keys(first, second, names)
    if not len(i) == len(set(i)) == len(set(j)):
        counts = f"{len(first.value)} numbers cannot be paired with {len(second.value)}"
        agree = f" by {', '.join(names)} alone" if names else ": nothing says which belong together"
        raise Missing(counts + agree)
    return j


def _require_one_each(what: str, ours: Numbers, axis: str) -> np.ndarray:
    """Return the axis' value of each number; refuse repeated values, or fewer than two.

    what: the rule that needs this, for the message.
    """
    if axis != "iteration" and not all(has(measured.run, axis) for measured in ours.run):
        axes = {label for measured in ours.run for label in measured.run["labels"]}
        raise Missing(f"there is no axis {short(axis)}; {nearest(axis, axes)}")
    x = ours.axis(axis)
    if len(set(x)) < max(2, len(x)):
        others = [name for name in ours.varying_axes() if name != axis]
        choose = f"; choose one {' and one '.join(others)}, or a case for each" if others else ""
        raise Missing(f"{what} needs one number for each of several values of {axis}{choose}")
    return x


Side = tuple[Numbers, int]  # numbers of a quantity, and the place of one of them


def _mean_over_sets(
    one: Side, other: Side, compare: Callable[..., np.ndarray], family: int
) -> tuple[float, float, float, int]:
    """Return the mean over data sets of a comparison of two numbers, its interval, and their count.

    compare: a function of both numbers, (sets,) each, such as their difference, (sets,). family:
    the number of intervals that hold jointly at 95 %.
    """
    sides = [(of.run[at], of.quantity.metric, of.agent[at]) for of, at in (one, other)]
    try:
        each = compare(*pair_sets(*sides))
    except ConcordError as error:
        raise Missing(str(error)) from None
    if np.isnan(each).any():
        raise DivergedQuantity([one[0].quantity], " or ".join(run.name for run, *_ in sides))
    mean, lo, hi = (float(end) for end in mean_interval(each, family))
    if math.isfinite(mean):
        factor = one[0].reach.factor(family, len(each))
        lo, hi = mean + factor * (lo - mean), mean + factor * (hi - mean)
    return mean, lo, hi, len(each)


def _log_ratios(lower: np.ndarray, higher: np.ndarray) -> np.ndarray:
    """Return the logarithms of ratios, (sets,); the least finite one where higher is infinite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.nan_to_num(np.log(lower) - np.log(higher), posinf=np.inf, neginf=-np.inf)
    log = np.where(np.isposinf(lower), np.inf, log)
    finite = log[np.isfinite(log)]
    return np.maximum(log, finite.min() if len(finite) else -np.inf)


class Value(_Rule):
    """The quantity is the printed value, within a tolerance.

    Holds if every interval lies within printed +- tolerance; does not hold if any lies outside.
    What is printed as an upper bound is met by all that is smaller.
    """

    quantity: Annotated[Quantity, "our numbers"]
    printed: Annotated[float, "the value in print"]
    tolerance: Annotated[NonNegative, "how far from print still counts as the same"]
    at_most: Annotated[bool, "print says that it is at most this much"] = False

    def exceed(self, ours: Numbers) -> Result:
        """Return the excesses of distances to print over the tolerance."""
        low = -math.inf if self.at_most else self.printed - self.tolerance
        high = self.printed + self.tolerance
        numbers = ours.value, ours.lo, ours.hi
        above = Excess.from_ends(numbers, [high] * 3)
        below = Excess.from_ends([low] * 3, numbers)
        excess = Excess(*(np.maximum(getattr(above, e), getattr(below, e)) for e in ENDS))
        ends = (end[excess.decisive_case] for end in numbers)
        margin = Margin.from_ends(ends, low=low, high=high, printed=self.printed)
        return Result(excess, f"{_describe_range(ours)}, against {margin.range}", margin)


class Order(_Rule):
    """Every number of ``lower`` is below every like number of ``higher``, times a factor.

    Like numbers agree in what varies on both sides: samplers on two graphs are compared sampler by
    sampler and agent by agent. Holds if the upper end of lower is below the lower end of higher in
    every pair; does not hold if in some pair lower is surely not below higher. Runs on the same
    data sets differ by less than their means over data sets tell: paired, the mean logarithms of
    the ratios of ``<metric>_set_<d>`` decide, with Student's intervals over the data sets d. A
    ratio to an infinite score counts as the least finite one of the pair.
    """

    WORSE = "lower"  # errors of what diverged are infinite, so no error

    lower: Annotated[Quantity, "numbers said to be smaller"]
    higher: Annotated[Quantity, "numbers said to be larger"]
    factor: Annotated[Positive, "lower is compared with factor times higher"] = 1.0
    paired: Annotated[bool, "pairs are compared data set by data set"] = False
    over_tasks: Annotated[
        bool, "with paired: the mean over the pairs, which are tasks of a board, decides"
    ] = False

    def pair(self, lower: Numbers, higher: Numbers) -> tuple[np.ndarray, np.ndarray]:
        """Return the indices, in ``lower`` and in ``higher``, of numbers that are compared."""
        return pair_common(lower, higher)

    def exceed(self, lower: Numbers, higher: Numbers) -> Result:
        """Return the excess of each lower number over its higher one times the factor."""
        i, j = self.pair(lower, higher)
        if self.paired:
            by_set = self._exceed_over_tasks if self.over_tasks else self._exceed_by_set
            return by_set(lower, higher, list(zip(i, j, strict=True)))
        low, high = _ends(lower, i), [self.factor * end for end in _ends(higher, j)]
        excess = Excess.from_ends(low, high, strict=True)
        worst = excess.decisive_case
        times = "" if self.factor == 1 else f"{self.factor:g} times "
        joint = _choose(excess, "is below", "is not below", "may be above")
        text = f"{lower.describe(i[worst])} {joint} {times}{higher.describe(j[worst])}"
        if min(lower.value.min(), higher.value.min()) < 0:  # there are no ratios
            least = (getattr(excess, end).max() for end in ENDS)
            return Result(excess, text, Margin.from_ends(least, high=0, what="difference"))
        with np.errstate(divide="ignore", invalid="ignore"):
            pairs = zip(low, (high[0], high[2], high[1]), strict=True)
            ratios = [np.divide(*np.maximum(pair, 0)).max() for pair in pairs]
        return Result(excess, text, Margin.from_ends(ratios, high=1, what="ratio"))

    def _exceed_by_set(
        self, lower: Numbers, higher: Numbers, pairs: Sequence[tuple[int, int]]
    ) -> Result:
        """Return the same data set by data set; ``pairs`` are places in ``lower``, ``higher``."""
        *means, sets = zip(
            *(_mean_over_sets((lower, i), (higher, j), _log_ratios, len(pairs)) for i, j in pairs),
            strict=True,
        )
        logs = np.array(means)
        excess = Excess(*(logs - math.log(self.factor)), strict=True)
        worst = excess.decisive_case
        i, j = pairs[worst]
        names = list(dict.fromkeys(words.metric(n.quantity.metric) for n in (lower, higher)))
        against = f"{lower.owner_text(i)} against {higher.owner_text(j)}; {' against '.join(names)}"
        limit = _choose(excess, "below", "not below", "not surely below")
        with np.errstate(over="ignore"):
            ratio = np.exp(logs[:, worst])
        mean = f"mean ratio over {sets[worst]} data sets {number_text(*ratio)}"
        what = f"{names[0]}, mean ratio" if len(names) == 1 else "mean ratio"
        margin = Margin.from_ends(ratio, high=self.factor, what=what)
        return Result(excess, f"{mean} ({against}), {limit} {self.factor:g}", margin, True, sets)

    def _exceed_over_tasks(
        self, lower: Numbers, higher: Numbers, pairs: Sequence[tuple[int, int]]
    ) -> Result:
        """Return the mean over pairs of the same, with Student's interval over the pairs."""
        if len(pairs) < 2:
            raise Missing(
                "there is one task, and a mean over tasks needs two; leave over_tasks out"
            )
        sides = (((lower, i), (higher, j)) for i, j in pairs)
        logs = np.array([_mean_over_sets(one, other, _log_ratios, 1)[0] for one, other in sides])
        mean, *ends = (float(end) for end in mean_interval(logs))
        factor = lower.reach.factor(1, len(logs))
        lo, hi = (mean + factor * (end - mean) if math.isfinite(mean) else mean for end in ends)
        excess = Excess(
            *(np.array([end - math.log(self.factor)]) for end in (mean, lo, hi)), strict=True
        )
        limit = _choose(excess, "below", "not below", "not surely below")
        with np.errstate(over="ignore"):
            ratio = np.exp([mean, lo, hi])
        names = list(dict.fromkeys(words.metric(n.quantity.metric) for n in (lower, higher)))
        text = (
            f"mean ratio over {len(logs)} tasks {number_text(*ratio)} ({' against '.join(names)})"
        )
        margin = Margin.from_ends(ratio, high=self.factor, what="ratio")
        return Result(excess, f"{text}, {limit} {self.factor:g}", margin, True, [len(logs)])


def _choose(excess: Excess, met: str, broken: str, undecided: str) -> str:
    """Choose one of three texts by whether numbers meet a rule, break it, or leave it open.

    met, broken, undecided: the texts.
    """
    return met if excess.is_met else broken if excess.is_broken else undecided


class Trend(_Rule):
    """The quantity rises or falls along an axis of the sweep, one number per label.

    Holds if every neighboring pair is surely in order; does not hold if one surely is not. Equal
    numbers are out of order. Runs on the same data sets differ by less than their means over data
    sets tell: paired, the differences of ``<metric>_set_<d>`` decide, with Student's intervals over
    the data sets d.
    """

    quantity: Annotated[Quantity, "our numbers, one per label of the axis"]
    axis: Annotated[str, "axis of the sweep, with numeric labels"]
    direction: Annotated[Literal["rising", "falling"], "rising or falling"]
    paired: Annotated[bool, "pairs are compared data set by data set"] = False

    def pair(self, ours: Numbers) -> np.ndarray:
        """Return the place of each number on the axis along which the trend is read, (numbers,)."""
        return _require_one_each("a trend", ours, self.axis)

    def exceed(self, ours: Numbers) -> Result:
        """Return the size of each step along the axis that goes the wrong way."""
        x = self.pair(ours)
        order = np.argsort(x)
        if self.paired:
            return self._exceed_by_set(ours, x, order)
        text = _join_shortened([f"{name(self.axis, x[i])}: {ours.value_text(i)}" for i in order])
        if self.direction == "falling":
            order = order[::-1]
        ends = _ends(ours, order)
        steps = [end[:-1] for end in ends], [end[1:] for end in ends]
        return self._state_steps(Excess.from_ends(*steps, strict=True), text)

    def _exceed_by_set(self, ours: Numbers, x: np.ndarray, order: np.ndarray) -> Result:
        """Return the excesses of steps between neighbors, paired by data set.

        x: the axis' value of each number. order: indices that sort x.
        """
        means, texts, sets = [], [], []
        for i, j in itertools.pairwise(order):
            mean, lo, hi, count = _mean_over_sets(
                *((ours, i), (ours, j)),
                *(lambda one, other: ours.quantity.scale * (other - one), len(x) - 1),
            )
            sets.append(count)
            means.append((-mean, -hi, -lo) if self.direction == "rising" else (mean, lo, hi))
            texts.append(f"{name(self.axis, x[i])} to {x[j]:g}: {number_text(mean, lo, hi)}")
        excess = Excess(*np.array(means).T, strict=True)
        return self._state_steps(excess, _join_shortened(texts), sets)

    def _state_steps(self, excess: Excess, text: str, sets: Sequence[int] = ()) -> Result:
        """Return the result of steps, whose margin is the smallest step the right way.

        text: on the steps. sets: the numbers of data sets behind them.
        """
        what = {"rising": "smallest rise", "falling": "smallest fall"}[self.direction]
        ends = (0 - end.max() for end in (excess.value, excess.hi, excess.lo))
        return Result(excess, text, Margin.from_ends(ends, low=0, what=what), sets=sets)


class Rate(_Rule):
    """The exponent p of quantity ~ x^p is within [at_least, at_most].

    x is an axis of the sweep or the iteration (plus one). p is the least-squares slope of the
    logarithms; its interval lets every number move within its own interval, so it is conservative.
    Does not hold if a number is surely infinite.
    """

    quantity: Annotated[Quantity, "our numbers"]
    against: Annotated[str, "iteration, or an axis of the sweep with numeric labels"]
    at_least: Annotated[float | None, "smallest exponent"] = None
    at_most: Annotated[float | None, "largest exponent"] = None

    def pair(self, ours: Numbers) -> np.ndarray:
        """Return the place of each number on the axis whose power it is to follow, (numbers,)."""
        return _require_one_each("an exponent", ours, self.against)

    def exceed(self, ours: Numbers) -> Result:
        """Return the distance of the exponent to [at_least, at_most]."""
        x = self.pair(ours)
        if (x <= 0).any() or (ours.value <= 0).any():
            raise Missing("an exponent needs positive numbers")
        if np.isposinf(ours.lo).any():
            return Result(Excess(*np.full((3, 1), math.inf)), "infinite")
        x = np.log(x)
        weights = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = float(weights @ np.log(ours.value))
            ends = np.log([np.maximum(ours.lo, 0), ours.hi])
            # A number at the mean of x has no weight, and may be anything.
            ends = np.where(weights == 0, 0, weights * ends)
        low, high = (float(end) for end in np.sort(ends, axis=0).sum(axis=1))
        at_least = -math.inf if self.at_least is None else self.at_least
        at_most = math.inf if self.at_most is None else self.at_most
        ends = np.array([slope, low, high])
        beyond = np.maximum(at_least - ends[[0, 2, 1]], ends - at_most)
        chance = (ours.lo != ours.hi).any()
        text = number_text(slope, low, high) if chance else number(slope)
        asked = [
            f"{words} {end:g}"
            for words, end in (("at least", self.at_least), ("at most", self.at_most))
            if end is not None
        ]
        text += f"; the rule is {' and '.join(asked)}" if asked else ""
        margin = Margin(slope, low, high, low=at_least, high=at_most, what="exponent")
        return Result(Excess(*beyond[:, None]), f"the exponent is {text}", margin)


class Bound(_Rule):
    """The quantity is at most the bound, run by run, agent by agent, iteration by iteration.

    Numbers are joined by what varies on both sides. Holds if every upper end is at most the lower
    end of its bound; does not hold if any lower end exceeds the upper end of its bound. Where a
    bound is infinite (its conditions fail) nothing is claimed; if all of them are, nothing can be
    judged.
    """

    WORSE = "bound"

    quantity: Annotated[Quantity, "our numbers"]
    bound: Annotated[Quantity, "what they are said not to exceed"]

    def pair(self, ours: Numbers, bound: Numbers) -> np.ndarray:
        """Return the index, in ``bound``, of each number's bound."""
        return _match_each(ours, bound)

    def exceed(self, ours: Numbers, bound: Numbers) -> Result:
        """Return the excess of each number over its bound, where that is finite."""
        partner = self.pair(ours, bound)
        claimed = ~np.isposinf(bound.value[partner])
        if not claimed.any():
            raise Missing("the bound is infinite throughout: its conditions are not met")
        numbers, bounds = _ends(ours, claimed), _ends(bound, partner[claimed])
        with np.errstate(divide="ignore", invalid="ignore"):
            part = np.where(claimed, ours.value / bound.value[partner], -np.inf)
            ends = (np.nanmax(numbers[1] / bounds[2]), np.nanmax(numbers[2] / bounds[1]))
        tightest = int(np.nanargmax(part))
        text = f"nearest to the bound is {ours.describe(tightest)}, {part[tightest]:.3g} times it"
        if not claimed.all():
            text += f" ({claimed.sum()} of {len(claimed)} bounds are finite)"
        margin = Margin.from_ends((part[tightest], *ends), high=1, what="share of its bound")
        return Result(Excess.from_ends(numbers, bounds), text, margin)


class Identity(_Rule):
    """Two quantities are equal within a tolerance, number by number, joined as a bound's are.

    Holds if no two ends of a pair's intervals are farther apart than the tolerance; does not hold
    if the intervals of some pair are.
    """

    left: Annotated[Quantity, "our numbers"]
    right: Annotated[Quantity, "what they are said to equal"]
    tolerance: Annotated[NonNegative, "largest difference that counts as equal"]

    def pair(self, left: Numbers, right: Numbers) -> np.ndarray:
        """Return the index, in ``right``, of the number that belongs to each of ``left``."""
        return _match_each(left, right)

    def exceed(self, left: Numbers, right: Numbers) -> Result:
        """Return the excess of the difference of each pair over the tolerance."""
        at = self.pair(left, right)
        lo, hi = right.lo[at], right.hi[at]
        largest = np.maximum(_subtract(left.hi, lo), _subtract(hi, left.lo))
        smallest = np.maximum(_subtract(left.lo, hi), _subtract(lo, left.hi))
        differences = np.abs(_subtract(left.value, right.value[at]))
        most = int(differences.argmax())
        ends = differences[most], smallest.max(), largest.max()
        chance = "" if ends[2] == ends[0] else f" (surely at most {ends[2]:.3g})"
        text = f"they differ most, by {ends[0]:.3g}{chance}, at {left.owner_text(most)}"
        excess = Excess(*(each - self.tolerance for each in (differences, smallest, largest)))
        return Result(excess, text, Margin.from_ends(ends, high=self.tolerance, what="difference"))


class Spread(_Rule):
    """The numbers agree: they lie within a tolerance of each other.

    The tolerance is absolute, or relative to their mean. Holds if even the outermost ends of the
    intervals are that close; does not hold if two intervals are surely farther apart.
    """

    quantity: Annotated[Quantity, "our numbers"]
    tolerance: Annotated[NonNegative, "largest difference between two of them"]
    relative: Annotated[bool, "the tolerance is a fraction of their mean"] = False

    def exceed(self, ours: Numbers) -> Result:
        """Return the excess of the spread of the numbers over the tolerance."""
        if len(ours.value) < 2:
            raise Missing("there is one number only, which agrees with itself")
        ranges = [
            float(_subtract(high.max(), low.min()))
            for high, low in ((ours.value, ours.value), (ours.lo, ours.hi), (ours.hi, ours.lo))
        ]
        unit, allowed = 1.0, [self.tolerance] * 3
        if self.relative:
            # The mean itself is known up to an interval only.
            unit = abs(float(ours.value.mean())) or math.nan
            ends = np.abs([ours.lo.mean(), ours.hi.mean()])
            least = 0.0 if ours.lo.mean() < 0 < ours.hi.mean() else ends.min()
            allowed = [self.tolerance * mean for mean in (unit, ends.max(), least)]
        if np.isposinf(ours.lo).any():
            allowed = [-math.inf] * 3
        scale = unit if math.isfinite(unit) else 1.0
        excess = Excess(*np.subtract(ranges, allowed)[:, None] / scale)
        what = "range over the mean" if self.relative else "range"
        margin = Margin.from_ends((end / unit for end in ranges), high=self.tolerance, what=what)
        return Result(excess, _describe_range(ours), margin)


class Agreement(_Rule):
    """Two boards rank entries alike: at least so large a share of the pairs that both decide.

    A board decides a pair of entries where one is better on more data sets than the other, on
    average over its tasks, with a 95 % interval over tasks that does not reach a tie. The share has
    no interval of its own: of the pairs counted as decided, one in twenty is by chance. Where other
    chains could turn pairs, those alone are counted that they surely would not.
    """

    one: Annotated[Quantity, "scores of a board, lower ones are better"]
    other: Annotated[Quantity, "those of the other board"]
    at_least: Annotated[Positive, "share of the pairs that both decide"]
    among: Annotated[str, "label that tells entries apart"] = "entry"

    def exceed(self, one: Numbers, other: Numbers) -> Result:
        """Return by how much the share of pairs with the same order is short of that claimed."""
        boards = [
            decide_pairs(
                *(board.run, board.quantity.metric, board.agent[0], self.among),
                widen=partial(board.reach.factor, 1),
            )
            for board in (one, other)
        ]
        both = sorted(boards[0].keys() & boards[1].keys())
        if not both:
            open_ends = Excess(*np.array([[0.0], [-np.inf], [np.inf]]))
            return Result(open_ends, "no pair of entries is decided by both boards", None, True)
        turned = [pair for pair in both if boards[0][pair] != boards[1][pair]]
        share = 1 - len(turned) / len(both)
        text = f"{len(both) - len(turned)} of {len(both)} pairs that both boards decide are alike"
        others = _join_shortened(
            [" and ".join(words.name(self.among, entry) for entry in pair) for pair in turned]
        )
        text += f"; turned: {others}" if others else ""
        excess = Excess(*np.full((3, 1), self.at_least - share))
        margin = Margin.from_ends([share] * 3, low=self.at_least, what="share of pairs")
        return Result(excess, text, margin, says_what=True)


class Condition(_Rule):
    """A condition that a theorem asks for is met: every number is 1 (met) rather than 0."""

    quantity: Annotated[Quantity, "numbers that are 1 where the condition is met"]

    def exceed(self, ours: Numbers) -> Result:
        """Return the shortfall of each number of the condition from 1 (met)."""
        short_of = 1 - ours.value
        excess = Excess(short_of, short_of, short_of)
        cases = len(ours.value)
        text = f"met in {cases - excess.failures} of {cases} cases"
        unmet = _join_shortened([ours.owner_text(int(i)) for i in np.flatnonzero(short_of > 0)])
        text += f"; not met: {unmet}" if unmet else ""
        margin = Margin.from_ends([1 - excess.failures / cases] * 3, low=1, what="share of cases")
        return Result(excess, text, margin, says_what=True)


class Measurement(_Rule):
    """Numbers that are reported: the paper shows them and concludes nothing."""

    WORSE = "quantity"  # nothing is said that its divergence could refute

    quantity: Annotated[Quantity, "our numbers"]

    def exceed(self, ours: Numbers) -> Result:
        """Return a result with the numbers' text and no cases, since no rule judges them."""
        ends = ours.value.mean(), ours.lo.min(), ours.hi.max()
        exact, many = bool((ours.lo == ours.hi).all()), len(ours.value) > 1
        what = "mean and range" if many else ""
        margin = Margin.from_ends(ends, what=what, of_exact=exact)
        return Result(Excess(*np.empty((3, 0))), _describe_range(ours), margin)


class Sooner(_Rule):
    """One quantity reaches a threshold in fewer iterations than another.

    Like curves are compared, as an order's numbers are. The iteration of arrival is the first at
    which the value is at or below the threshold; its interval runs from the first at which the
    lower end is, to the first at which the upper end is. A curve that never arrives does so at
    infinity.
    """

    WORSE = "later"

    first: Annotated[Quantity, "said to arrive first; at: all"]
    later: Annotated[Quantity, "said to arrive later; at: all"]
    threshold: Annotated[float, "value to reach"]

    def pair(self, first: Numbers, later: Numbers) -> tuple[np.ndarray, np.ndarray]:
        """Return the indices, in each quantity, of curves with the same labels."""
        return pair_common(first, later)

    def exceed(self, first: Numbers, later: Numbers) -> Result:
        """Return by how many iterations each first curve arrives after its later one."""
        first, later = self._arrivals(first), self._arrivals(later)
        i, j = self.pair(first, later)
        excess = Excess.from_ends(_ends(first, i), _ends(later, j), strict=True)
        worst = int(excess.hi.argmax())
        texts = [
            f"{numbers.owner_text(at[worst])} at {numbers.value_text(at[worst])}"
            for numbers, at in ((first, i), (later, j))
        ]
        text = f"{texts[0]}, {texts[1]}".replace("at inf", "never")
        # Arriving together is not sooner.
        later_by = (getattr(excess, end).max() for end in ENDS)
        margin = Margin.from_ends(later_by, high=-1, what="iterations later than the other")
        return Result(excess, f"within {self.threshold:g} at iteration: {text}", margin)

    def _arrivals(self, curves: Numbers) -> Numbers:
        """Return the first iteration of each curve, of a run's agent, at or below the threshold.

        It is infinite for a curve that stays above it.
        """
        keys = [(run.name, agent) for run, agent in zip(curves.run, curves.agent, strict=True)]
        places = [np.flatnonzero([other == key for other in keys]) for key in dict.fromkeys(keys)]
        value, lo, hi = (
            np.array(
                [curves.iteration[i[x[i] <= self.threshold]].min(initial=math.inf) for i in places]
            )
            for x in (curves.value, curves.lo, curves.hi)
        )
        firsts = [at[0] for at in places]
        runs, agents = [curves.run[at] for at in firsts], [curves.agent[at] for at in firsts]
        iteration = np.zeros(len(firsts))
        return replace(
            curves, value=value, lo=lo, hi=hi, run=runs, agent=agents, iteration=iteration
        )


Check = (
    Value
    | Order
    | Trend
    | Rate
    | Bound
    | Identity
    | Spread
    | Agreement
    | Condition
    | Sooner
    | Measurement
)
KINDS = tagged_kinds(Check)


def quantities(check: Check) -> list[Quantity]:
    """Return the options of a check that are quantities."""
    return [value for value in asdict(check).values() if isinstance(value, Quantity)]


def require_pairs(check: Check, runs: Sequence[Sequence[Run]], where: str) -> None:
    """Refuse a check whose numbers cannot be paired, or are too many or too few.

    A trend and a rate need one number for each value of an axis, ``sooner`` whole curves.
    runs: those of each of its quantities.
    """
    for side in ("first", "later") if isinstance(check, Sooner) else ():
        quantity = getattr(check, side)
        if quantity.at != "all" or quantity.reduce != "none":
            raise ConcordError(
                f"{where}.check.{side}: to find when it arrives the whole curve is needed; "
                "set at: all, and no reduce"
            )
    numbers = [
        plan_numbers(quantity, of) for quantity, of in zip(quantities(check), runs, strict=True)
    ]
    try:
        if hasattr(check, "pair"):
            check.pair(*numbers)
    except Missing as missing:
        raise ConcordError(f"{where}.check: {missing}") from None
