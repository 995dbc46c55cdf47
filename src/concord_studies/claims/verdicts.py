"""Verdicts: what a check's intervals decide, and why they leave a claim open.

``inconclusive`` has six causes. Whether more chains would decide is tried: half-widths shrink with
the square root of their number, so the check is judged again with narrower intervals.

Where rounding errors are amplified, another processor gives other chains (``runs.amplifies``). A
claim about those is decided only where another set of as many chains decides it alike with a
probability of 90 % (``intervals.replication_reach``); otherwise other chains could turn it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from concord_studies.claims.quantities import (
    DivergedQuantity,
    Missing,
    Quantity,
    Source,
    number_text,
)
from concord_studies.results import Measured

HOLDS, FAILS, NOT_RUN = "holds", "does not hold", "not run"
INSIDE, OUTSIDE = "inside the conditions", "outside the conditions"
MEASURED = "measured"
INCONCLUSIVE = "inconclusive"
TOO_FEW, TIE, SEED, OTHER, LOST, HEAVY = (
    f"{INCONCLUSIVE}: {cause}"
    for cause in (
        *("too few chains", "a tie", "depends on data or seed", "other chains could turn it"),
        *("a run diverged", "heavy tails"),
    )
)
# A claim's verdict is the first of these that one of its cases has.
VERDICTS = (
    *(FAILS, NOT_RUN, LOST, HEAVY, SEED, OTHER, TOO_FEW, TIE),
    *(HOLDS, OUTSIDE, INSIDE, MEASURED),
)
# The other verdicts are open.
_PARTS = {FAILS: "fails", HOLDS: "holds", INSIDE: "holds", OUTSIDE: "neither", MEASURED: "neither"}


def part_of(verdict: str) -> str:
    """Return the part of a page that lists a verdict: "fails", "open", "holds" or "neither"."""
    return _PARTS.get(verdict, "open")


# Times as many chains that are tried; what a hundred times as many leave open is a tie.
MORE = (2, 3, 5, 10, 20, 50, 100)


@dataclass(frozen=True)
class Margin:
    """The number that decides a verdict, with its interval and the range that the rule allows.

    value, lo, hi: the number and its interval. low, high: the range; the interval lies within it if
    the claim holds, and outside if it does not.
    what: what the number is, such as "ratio". printed: the paper's number, if it states one.
    """

    value: float
    lo: float
    hi: float
    low: float = -math.inf
    high: float = math.inf
    what: str = ""  # of the quantity it is, such as a ratio
    printed: float | None = None

    @classmethod
    def from_ends(cls, ends: Iterable[Any], **rule: Any) -> Margin:
        """Return the margin of ``ends``, (value, lo, hi); ``rule`` has the other fields by name."""
        value, lo, hi = map(float, ends)
        return cls(value, lo, hi, **rule)

    @property
    def text(self) -> str:
        """The number with its interval in words, and for which numbers the rule is met."""
        number = number_text(self.value, self.lo, self.hi)
        text = f"{self.what}: {number}" if self.what else number
        low, high = (f"{end + 0:g}" if math.isfinite(end) else "" for end in (self.low, self.high))
        if low and high:
            return f"{text} (rule: {low if low == high else f'{low} to {high}'})"
        asked = f"at least {low}" if low else f"at most {high}" if high else ""
        return f"{text} (rule: {asked})" if asked else text


@dataclass(frozen=True)
class Judgement:
    """A verdict, the sentence ``ours`` on our numbers, and the number that decides."""

    verdict: str
    ours: str
    margin: Margin | None = field(default=None, compare=False)


def decide(sure: Any, refuted: Any) -> str:
    """Return "holds" if ``sure``, "does not hold" if ``refuted``, or else "inconclusive"."""
    return HOLDS if bool(sure) else FAILS if bool(refuted) else INCONCLUSIVE


def judge(check: Any, runs: Callable[[Quantity], Sequence[Measured]]) -> Judgement:
    """Return a check's judgement; why it is inconclusive, if it is.

    "not run" if numbers are missing. If runs diverged "does not hold", or inconclusive where only
    those diverged that are claimed to be worse. ``runs`` returns the runs of a quantity.
    """
    source = Source(runs)
    try:
        judgement: Judgement = check.judge(source)
        what = f"{source.what}: " if source.what else ""
        unknown = (
            f"; no interval for {source.endless} of the numbers, whose chains are heavy-tailed"
        )
        ours = f"{what}{judgement.ours}{unknown if source.endless else ''}"
        judgement = replace(judgement, ours=ours)
        if judgement.margin is not None:
            of = ", ".join(filter(None, [source.what, judgement.margin.what]))
            judgement = replace(judgement, margin=replace(judgement.margin, what=of))
        if source.amplified:
            again = check.judge(Source(runs, again=True)).verdict
            decided = again == judgement.verdict != INCONCLUSIVE
            return judgement if decided else replace(judgement, verdict=OTHER)
        if judgement.verdict != INCONCLUSIVE:
            return judgement
        if any(number == 1 for number in source.trials):
            alone = f"{judgement.ours}; one of {source.unit} says nothing of chance"
            return replace(judgement, verdict=TOO_FEW, ours=alone)
        for more in MORE:
            if check.judge(Source(runs, 1 / math.sqrt(more))).verdict != INCONCLUSIVE:
                trials = min(source.trials)
                enough = f"about {more * trials:.0f} {source.unit} instead of {trials:.0f}"
                text = f"{judgement.ours}; {enough} would decide"
                return replace(judgement, verdict=TOO_FEW, ours=text)
        return replace(judgement, verdict=HEAVY if source.endless else TIE)
    except Missing as missing:
        return Judgement(NOT_RUN, str(missing))
    except DivergedQuantity as diverged:
        worse = getattr(check, check.WORSE, None)
        only_worse = all(quantity is worse for quantity in diverged.quantities)
        return Judgement(LOST if only_worse else FAILS, str(diverged))


def join_cases(verdicts: Iterable[str]) -> str:
    """Return a claim's verdict from its cases' verdicts: it holds if all do, fails if one does."""
    return min(verdicts, key=VERDICTS.index)


def count_cases(verdicts: Sequence[str]) -> str:
    """Return a text such as "fails in 2 of 3 cases" of a claim's verdict. "" if all cases agree."""
    verdict = join_cases(verdicts)
    same = Counter(verdicts)[verdict]
    word = "fails" if verdict == FAILS else verdict.rpartition(": ")[2]
    return "" if same == len(verdicts) else f"{word} in {same} of {len(verdicts)} cases"
