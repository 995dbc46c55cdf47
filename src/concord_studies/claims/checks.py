"""Checks: the rules by which a paper's claims are judged, pure functions of quantities.

Every check decides by the intervals of its quantities (``claims.quantities``):

- ``holds``: the rule is met for all values inside the intervals;
- ``does not hold``: it is broken wherever they lie;
- ``inconclusive``: the intervals straddle the rule (``claims.verdicts`` says why);
- ``not run``: a number it needs does not exist, and the verdict says why.

Its sentence says who, where and how much. What is infinite is a result (the error of a diverged
run): it is above every number, below none, and equal to nothing. So is what is not a number because
its run diverged: a claim about it does not hold, and one that only says it is worse than another is
inconclusive. Chance is that of the samplers: numbers that it does not enter are exact for the data
that the seed drew. A claim whose verdict depends on those (``claims.robustness`` finds it) is
inconclusive.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

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
    Source,
    gather,
    number_text,
    plan_numbers,
)
from concord_studies.claims.verdicts import (
    FAILS,
    HOLDS,
    INCONCLUSIVE,
    INSIDE,
    MEASURED,
    OUTSIDE,
    Judgement,
    Margin,
    decide,
)
from concord_studies.scores import pair_sets
from concord_studies.selection import has
from concord_studies.words import name, number


class _Rule(Kind):
    """A rule that judges quantities.

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
    """Return the smallest and the largest number with their owners as text; all of up to three."""
    order = np.argsort(ours.value, kind="stable")
    if len(order) <= 3:
        return "; ".join(ours.describe(i) for i in range(len(order)))
    return f"{len(order)} numbers from {ours.describe(order[0])} to {ours.describe(order[-1])}"


def _pair_by_keys(
    first: Numbers, second: Numbers, names: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices, in ``first`` and ``second``, of all pairs that agree in ``names``."""
    keys = [numbers.keys(names) for numbers in (first, second)]
    for side_keys, other_keys, other in ((keys[0], keys[1], "second"), (keys[1], keys[0], "first")):
        alone = [key for key in side_keys if key not in set(other_keys)]
        if alone:
            what = ", ".join(f"{n} {k}" for n, k in zip(names, alone[0], strict=True))
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


def _pair_common(first: Numbers, second: Numbers) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of all pairs of numbers of two quantities that agree on common axes.

    An axis of which they have no value in common is what they differ in.
    """
    names = _shared_axes(first, second)
    names = [n for n in names if not set(first.keys([n])).isdisjoint(second.keys([n]))]
    return _pair_by_keys(first, second, names)


def _pair_ends(
    first: Numbers, second: Numbers, i: np.ndarray, j: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return, for pairs i, j, both values, then (lo of first, hi of second), then (hi, lo)."""
    ends = (first.value, second.value), (first.lo, second.hi), (first.hi, second.lo)
    return [(one[i], other[j]) for one, other in ends]


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
    x = ours.axis(axis)
    if len(set(x)) < max(2, len(x)):
        others = [name for name in ours.varying_axes() if name != axis]
        choose = f"; choose one {' and one '.join(others)}, or a case for each" if others else ""
        raise Missing(f"{what} needs one number for each of several values of {axis}{choose}")
    return x


Side = tuple[Numbers, Quantity, int]  # numbers of a quantity, and the place of one of them


def _mean_over_sets(
    source: Source, one: Side, other: Side, compare: Callable[..., np.ndarray], family: int
) -> tuple[float, float, float]:
    """Return the mean over data sets of a comparison of two numbers, and its interval's ends.

    compare: a function of both numbers, (sets,) each, such as their difference, (sets,). family:
    the number of intervals that hold jointly at 95 %.
    """
    sides = [(of.run[at], quantity.metric, of.agent[at]) for of, quantity, at in (one, other)]
    try:
        each = compare(*pair_sets(*sides))
    except ConcordError as error:
        raise Missing(str(error)) from None
    if np.isnan(each).any():
        raise DivergedQuantity([one[1]], " or ".join(run.name for run, *_ in sides))
    source.unit, source.endless = "data sets", 0
    source.trials.append(len(each))
    mean, lo, hi = (float(end) for end in mean_interval(each, family))
    if not math.isfinite(mean):
        return mean, lo, hi
    factor = source.half_width_factor(family, len(each))
    return mean, mean + factor * (lo - mean), mean + factor * (hi - mean)


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

    def judge(self, source: Source) -> Judgement:
        """Judge whether the quantity is the printed value within the tolerance."""
        (ours,) = gather(source, self.quantity)
        low = -math.inf if self.at_most else self.printed - self.tolerance
        high = self.printed + self.tolerance
        sure = ((ours.lo >= low) & (ours.hi <= high)).all()
        refuted = ((ours.hi < low) | (ours.lo > high)).any()
        asked = "at most " if self.at_most else ""
        asked += f"{self.printed:.6g}"
        asked += f" ± {self.tolerance:g}" if self.tolerance and not self.at_most else ""
        ends = (ours.hi, ours.lo) if refuted else (ours.lo, ours.hi)  # those that decide
        with np.errstate(invalid="ignore"):
            at = int(np.argmax(np.fmax(low - ends[0], ends[1] - high)))
        margin = Margin(ours.value[at], ours.lo[at], ours.hi[at], low, high, printed=self.printed)
        return Judgement(decide(sure, refuted), f"{_describe_range(ours)}, against {asked}", margin)


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

    def judge(self, source: Source) -> Judgement:
        """Judge whether every lower number is below its higher one, times the factor."""
        lower, higher = gather(source, self.lower, self.higher)
        i, j = _pair_common(lower, higher)
        if self.paired:
            return self._judge_pairs(source, lower, higher, list(zip(i, j, strict=True)))
        ends = [(low, self.factor * high) for low, high in _pair_ends(lower, higher, i, j)]
        _, (lo, high), (hi, low) = ends
        verdict = decide((hi < low).all(), (lo >= high).any())
        worst = int(_subtract(*ends[1 if verdict == FAILS else 2]).argmax())
        times = "" if self.factor == 1 else f"{self.factor:g} times "
        joint = {HOLDS: "is below", FAILS: "is not below", INCONCLUSIVE: "may be above"}
        text = f"{lower.describe(i[worst])} {joint[verdict]} {times}{higher.describe(j[worst])}"
        if min(lower.value.min(), higher.value.min()) < 0:  # there are no ratios
            less = (_subtract(*pair).max() for pair in ends)
            least = Margin.from_ends(less, high=0, what="difference")
            return Judgement(verdict, text, least)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = [np.divide(*np.maximum(pair, 0)).max() for pair in ends]
        return Judgement(verdict, text, Margin.from_ends(ratios, high=1, what="ratio"))

    def _judge_pairs(
        self, source: Source, lower: Numbers, higher: Numbers, pairs: Sequence[tuple[int, int]]
    ) -> Judgement:
        """Judge pairs data set by data set; ``pairs`` are indices into ``lower`` and ``higher``."""
        source.trials, source.what = [], ""
        means = np.array(
            [
                _mean_over_sets(
                    *(source, (lower, self.lower, i), (higher, self.higher, j)),
                    *(_log_ratios, len(pairs)),
                )
                for i, j in pairs
            ]
        )
        _, lo, hi = means.T - math.log(self.factor)
        verdict = decide((hi < 0).all(), (lo >= 0).any())
        worst = int((lo if verdict == FAILS else hi).argmax())
        i, j = pairs[worst]
        names = list(dict.fromkeys(words.metric(q.metric) for q in (self.lower, self.higher)))
        against = f"{lower.owner_text(i)} against {higher.owner_text(j)}; {' against '.join(names)}"
        limit = {HOLDS: "below", FAILS: "not below", INCONCLUSIVE: "not surely below"}[verdict]
        ratio = f"over {source.trials[worst]:.0f} data sets {number_text(*np.exp(means[worst]))}"
        return Judgement(verdict, f"mean ratio {ratio} ({against}), {limit} {self.factor:g}")


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

    def judge(self, source: Source) -> Judgement:
        """Judge whether the quantity moves in the stated direction along the axis."""
        (ours,) = gather(source, self.quantity)
        x = _require_one_each("a trend", ours, self.axis)
        order = np.argsort(x)
        if self.paired:
            return self._judge_steps(source, ours, x, order)
        text = _join_shortened([f"{name(self.axis, x[i])}: {ours.value_text(i)}" for i in order])
        if self.direction == "falling":
            order = order[::-1]
        lo, hi = ours.lo[order], ours.hi[order]
        sure = (hi[:-1] < lo[1:]).all()
        refuted = (lo[:-1] >= hi[1:]).any()
        value = ours.value[order]
        steps = value[1:] - value[:-1], lo[1:] - hi[:-1], hi[1:] - lo[:-1]
        return Judgement(decide(sure, refuted), text, self._smallest_step(*steps))

    def _smallest_step(self, *steps: np.ndarray) -> Margin:
        """Return the margin of the smallest step; ``steps``: values, lower and upper ends."""
        what = {"rising": "smallest rise", "falling": "smallest fall"}[self.direction]
        return Margin.from_ends((step.min() for step in steps), low=0, what=what)

    def _judge_steps(
        self, source: Source, ours: Numbers, x: np.ndarray, order: np.ndarray
    ) -> Judgement:
        """Judge steps between neighbors, paired by data set.

        x: the axis' value of each number. order: indices that sort x.
        """
        means, texts = [], []
        for i, j in itertools.pairwise(order):
            mean, lo, hi = _mean_over_sets(
                *(source, (ours, self.quantity, i), (ours, self.quantity, j)),
                *(lambda one, other: self.quantity.scale * (other - one), len(x) - 1),
            )
            means.append((mean, lo, hi) if self.direction == "rising" else (-mean, -hi, -lo))
            texts.append(f"{name(self.axis, x[i])} to {x[j]:g}: {number_text(mean, lo, hi)}")
        value, lo, hi = np.array(means).T
        sure, refuted = (lo > 0).all(), (hi <= 0).any()
        return Judgement(
            decide(sure, refuted), _join_shortened(texts), self._smallest_step(value, lo, hi)
        )


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

    def judge(self, source: Source) -> Judgement:
        """Judge whether the exponent lies within [at_least, at_most]."""
        (ours,) = gather(source, self.quantity)
        x = _require_one_each("an exponent", ours, self.against)
        if (x <= 0).any() or (ours.value <= 0).any():
            raise Missing("an exponent needs positive numbers")
        if np.isposinf(ours.lo).any():
            return Judgement(FAILS, "infinite")
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
        sure = low >= at_least and high <= at_most
        refuted = high < at_least or low > at_most
        chance = (ours.lo != ours.hi).any()
        text = number_text(slope, low, high) if chance else number(slope)
        asked = [
            f"{words} {end:g}"
            for words, end in (("at least", self.at_least), ("at most", self.at_most))
            if end is not None
        ]
        text += f"; the rule is {' and '.join(asked)}" if asked else ""
        margin = Margin(slope, low, high, at_least, at_most, "exponent")
        return Judgement(decide(sure, refuted), f"the exponent is {text}", margin)


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

    def judge(self, source: Source) -> Judgement:
        """Judge whether every number is at most its bound."""
        ours, bound = gather(source, self.quantity, self.bound)
        partner = _match_each(ours, bound)
        claimed = ~np.isposinf(bound.value[partner])
        if not claimed.any():
            raise Missing("the bound is infinite throughout: its conditions are not met")
        lo, hi, at = ours.lo[claimed], ours.hi[claimed], partner[claimed]
        sure = (hi <= bound.lo[at]).all()
        refuted = (lo > bound.hi[at]).any()
        with np.errstate(divide="ignore", invalid="ignore"):
            part = np.where(claimed, ours.value / bound.value[partner], -np.inf)
            ends = (np.nanmax(lo / bound.hi[at]), np.nanmax(hi / bound.lo[at]))
        tightest = int(np.nanargmax(part))
        text = f"nearest to the bound is {ours.describe(tightest)}, {part[tightest]:.3g} times it"
        if not claimed.all():
            text += f" ({claimed.sum()} of {len(claimed)} bounds are finite)"
        margin = Margin.from_ends((part[tightest], *ends), high=1, what="share of its bound")
        return Judgement(decide(sure, refuted), text, margin)


class Identity(_Rule):
    """Two quantities are equal within a tolerance, number by number, joined as a bound's are.

    Holds if no two ends of a pair's intervals are farther apart than the tolerance; does not hold
    if the intervals of some pair are.
    """

    left: Annotated[Quantity, "our numbers"]
    right: Annotated[Quantity, "what they are said to equal"]
    tolerance: Annotated[NonNegative, "largest difference that counts as equal"]

    def judge(self, source: Source) -> Judgement:
        """Judge whether the two quantities agree within the tolerance."""
        left, right = gather(source, self.left, self.right)
        at = _match_each(left, right)
        lo, hi = right.lo[at], right.hi[at]
        largest = np.maximum(_subtract(left.hi, lo), _subtract(hi, left.lo)).max()
        smallest = np.maximum(_subtract(left.lo, hi), _subtract(lo, left.hi)).max()
        differences = np.abs(_subtract(left.value, right.value[at]))
        verdict = decide(largest <= self.tolerance, smallest > self.tolerance)
        most = int(differences.argmax())
        chance = "" if largest == differences[most] else f" (surely at most {largest:.3g})"
        text = f"they differ most, by {differences[most]:.3g}{chance}, at {left.owner_text(most)}"
        ends = differences[most], smallest, largest
        return Judgement(
            verdict, text, Margin.from_ends(ends, high=self.tolerance, what="difference")
        )


def _subtract(left: Any, right: Any) -> Any:
    """Return left - right; the difference of two infinite numbers is infinite."""
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(np.subtract(left, right), nan=np.inf, posinf=np.inf, neginf=-np.inf)


class Spread(_Rule):
    """The numbers agree: they lie within a tolerance of each other.

    The tolerance is absolute, or relative to their mean. Holds if even the outermost ends of the
    intervals are that close; does not hold if two intervals are surely farther apart.
    """

    quantity: Annotated[Quantity, "our numbers"]
    tolerance: Annotated[NonNegative, "largest difference between two of them"]
    relative: Annotated[bool, "the tolerance is a fraction of their mean"] = False

    def judge(self, source: Source) -> Judgement:
        """Judge whether all numbers lie within the tolerance of each other."""
        (ours,) = gather(source, self.quantity)
        if len(ours.value) < 2:
            raise Missing("there is one number only, which agrees with itself")
        least = most = self.tolerance
        if self.relative:
            # The mean itself is known up to an interval only.
            ends = np.abs([ours.lo.mean(), ours.hi.mean()])
            straddles = ours.lo.mean() < 0 < ours.hi.mean()
            least, most = least * (0 if straddles else ends.min()), most * ends.max()
        infinite = np.isposinf(ours.lo).any()
        sure = _subtract(ours.hi.max(), ours.lo.min()) <= least and not infinite
        refuted = _subtract(ours.lo.max(), ours.hi.min()) > most or infinite
        ranges = [
            float(_subtract(high.max(), low.min()))
            for high, low in ((ours.value, ours.value), (ours.lo, ours.hi), (ours.hi, ours.lo))
        ]
        unit = abs(float(ours.value.mean())) or math.nan if self.relative else 1.0
        what = "range over the mean" if self.relative else "range"
        margin = Margin.from_ends((end / unit for end in ranges), high=self.tolerance, what=what)
        return Judgement(decide(sure, refuted), _describe_range(ours), margin)


class Condition(_Rule):
    """A condition that a theorem asks for is met: every number is 1 (met) rather than 0."""

    quantity: Annotated[Quantity, "numbers that are 1 where the condition is met"]

    def judge(self, source: Source) -> Judgement:
        """Judge whether every number of the theorem's condition is 1, that is met."""
        (ours,) = gather(source, self.quantity)
        source.what = ""
        unmet = [ours.owner_text(i) for i in range(len(ours.value)) if ours.value[i] < 1]
        text = f"met in {len(ours.value) - len(unmet)} of {len(ours.value)} cases"
        text += f"; not met: {_join_shortened(unmet)}" if unmet else ""
        met = 1 - len(unmet) / len(ours.value)
        return Judgement(
            OUTSIDE if unmet else INSIDE, text, Margin(met, met, met, low=1, what="share of cases")
        )


class Measurement(_Rule):
    """Numbers that are reported: the paper shows them and concludes nothing."""

    WORSE = "quantity"  # nothing is said that its divergence could refute

    quantity: Annotated[Quantity, "our numbers"]

    def judge(self, source: Source) -> Judgement:
        """Report the numbers, with no rule to judge them by."""
        (ours,) = gather(source, self.quantity)
        ends = ours.value.mean(), ours.lo.min(), ours.hi.max()
        return Judgement(
            MEASURED, _describe_range(ours), Margin.from_ends(ends, what="mean and range")
        )


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

    def judge(self, source: Source) -> Judgement:
        """Judge whether one quantity reaches the threshold in fewer iterations."""
        first, later = map(self._arrivals, gather(source, self.first, self.later))
        i, j = _pair_common(first, later)
        sure = (first.hi[i] < later.lo[j]).all()
        refuted = (first.lo[i] >= later.hi[j]).any()
        ends = [_subtract(*pair) for pair in _pair_ends(first, later, i, j)]
        worst = int(ends[2].argmax())
        texts = [
            f"{numbers.owner_text(at[worst])} at {numbers.value_text(at[worst])}"
            for numbers, at in ((first, i), (later, j))
        ]
        text = f"{texts[0]}, {texts[1]}".replace("at inf", "never")
        # Arriving together is not sooner.
        later_by = (end.max() for end in ends)
        margin = Margin.from_ends(later_by, high=-1, what="iterations later than the other")
        text = f"within {self.threshold:g} at iteration: {text}"
        return Judgement(decide(sure, refuted), text, margin)

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


Check = Value | Order | Trend | Rate | Bound | Identity | Spread | Condition | Sooner | Measurement
KINDS = tagged_kinds(Check)


def quantities(check: Check) -> list[Quantity]:
    """Return the options of a check that are quantities."""
    return [value for value in asdict(check).values() if isinstance(value, Quantity)]


def require_pairs(check: Check, runs: Sequence[Sequence[Mapping[str, Any]]], where: str) -> None:
    """Refuse a check whose numbers cannot be paired, or are too many or too few.

    A trend and a rate need one number for each value of an axis, ``sooner`` whole curves.
    runs: the resolved runs of each of its quantities.
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
        if isinstance(check, (Order, Sooner)):
            _pair_common(*numbers)
        elif isinstance(check, (Bound, Identity)):
            _match_each(*numbers)
        elif isinstance(check, (Trend, Rate)):
            axis = check.axis if isinstance(check, Trend) else check.against
            axes = {name for run in numbers[0].run for name in run.run["labels"]}
            if axis != "iteration" and not all(has(m.run, axis) for m in numbers[0].run):
                raise Missing(f"there is no axis {short(axis)}; {nearest(axis, axes)}")
            _require_one_each(
                "a trend" if isinstance(check, Trend) else "an exponent", numbers[0], axis
            )
    except Missing as missing:
        raise ConcordError(f"{where}.check: {missing}") from None
