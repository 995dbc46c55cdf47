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
from typing import Any, TypeVar

from concord_studies import words
from concord_studies.claims.checks import Excess, Margin, Result
from concord_studies.claims.quantities import (
    DivergedQuantity,
    Evidence,
    Missing,
    Quantity,
    Reach,
    gather,
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
# Of checks whose rule is met, or broken; of others they are "holds" and "does not hold".
_OTHER_WORDS = {"condition": (INSIDE, OUTSIDE), "measurement": (MEASURED, MEASURED)}
# The other verdicts are open.
_PARTS = {FAILS: "fails", HOLDS: "holds", INSIDE: "holds", OUTSIDE: "neither", MEASURED: "neither"}


def part_of(verdict: str) -> str:
    """Return the part of a page that lists a verdict: "fails", "open", "holds" or "neither"."""
    return _PARTS.get(verdict, "open")


T = TypeVar("T")

# Times as many chains that are tried; what a hundred times as many leave open is a tie.
MORE = (2, 3, 5, 10, 20, 50, 100)


@dataclass(frozen=True)
class Judgement:
    """A verdict, the sentence ``ours`` on our numbers, and the number that decides.

    excess: by how much the numbers exceed the rule, case by case; None where there are none.
    """

    verdict: str
    ours: str
    margin: Margin | None = field(default=None, compare=False)
    excess: Excess | None = field(default=None, compare=False)

    @property
    def by(self) -> str | None:
        """The excess of numbers that surely break the rule, as text; None if none does."""
        largest = self.excess.largest_failure if self.excess else 0
        return words.number(largest) if 0 < largest < math.inf else None

    @property
    def number(self) -> str:
        """The number that decides as text; where it fails, how often and by how much. "": none.

        A ratio says by how much itself; a share of a bound does not, since bounds may be negative.
        """
        text = self.margin.text if self.margin else ""
        if self.verdict != FAILS or not text or self.excess is None:
            return text
        cases = self.excess.value.size
        of = f"in {self.excess.failures} of {cases}" if cases > 1 else ""
        what = self.margin.what if self.margin else ""
        unit = "a difference of " if what.startswith("share") else ""
        most = f"by {unit}{'up to ' if cases > 1 else ''}{self.by}" if self.by else ""
        most = "" if what.endswith("ratio") else most
        return "; not met ".join(filter(None, [text, ", ".join(filter(None, [of, most]))]))


REASON_NUMBERS = ("worst", "by", "failing", "cases")  # placeholders of the reasons of verdicts


def find_reason_number(
    name: str, judgement: Judgement, all_cases: Sequence[Judgement]
) -> str | None:
    """Return the text for a placeholder in the reason of a verdict; None if there is no number.

    name: "worst", the number that decides; "by", how far it fails; "failing" of "cases", counted
    over the judgements of all cases of the claim in the reading.
    """
    if name in ("failing", "cases"):
        counted = [one.excess for one in all_cases if one.excess]
        failing = sum(excess.failures for excess in counted)
        return str(failing if name == "failing" else sum(len(e.value) for e in counted))
    if name == "by":
        return judgement.by
    margin = judgement.margin
    return number_text(margin.value, margin.lo, margin.hi) if margin else None


def judge(
    check: Any, reads: Iterable[tuple[Quantity, Iterable[T]]], find: Callable[[T], Measured]
) -> Judgement:
    """Return the verdict of a check, and why it is inconclusive if it is.

    "not run" if numbers are missing. If runs diverged "does not hold", or inconclusive where only
    those diverged that are claimed to be worse. reads: each of the check's quantities and its runs.
    find: returns what is measured of a run.
    """
    try:
        evidence = gather((quantity, [find(run) for run in runs]) for quantity, runs in reads)
        result: Result = check.exceed(*evidence.numbers())
        verdict = _name_verdict(check, result)
        what = "" if result.says_what else evidence.what
        ours = f"{what}: {result.text}" if what else result.text
        endless = 0 if result.sets else evidence.endless
        if endless:
            ours += f"; no interval for {endless} of the numbers, whose chains are heavy-tailed"
        margin = result.margin
        if margin is not None:
            margin = replace(margin, what=", ".join(filter(None, [what, margin.what])))
        if evidence.amplified:
            again = _name_verdict(check, check.exceed(*evidence.numbers(Reach(again=True))))
            verdict = verdict if again == verdict != INCONCLUSIVE else OTHER
        elif verdict == INCONCLUSIVE:
            verdict, why = _explain_inconclusive(check, evidence, result.sets)
            ours += why
        return Judgement(verdict, ours, margin, result.excess)
    except Missing as missing:
        return Judgement(NOT_RUN, str(missing))
    except DivergedQuantity as diverged:
        worse = getattr(check, check.WORSE, None)
        only_worse = all(quantity is worse for quantity in diverged.quantities)
        return Judgement(LOST if only_worse else FAILS, str(diverged))


def _name_verdict(check: Any, result: Result) -> str:
    """Return the verdict that follows from a check's result alone."""
    met, broken = _OTHER_WORDS.get(check.kind, (HOLDS, FAILS))
    return met if result.excess.is_met else broken if result.excess.is_broken else INCONCLUSIVE


def _explain_inconclusive(check: Any, evidence: Evidence, sets: Sequence[int]) -> tuple[str, str]:
    """Return the verdict of an inconclusive check, and the words that end its sentence.

    sets: numbers of data sets behind its pairs of runs; empty: runs have one each.
    """
    trials, unit = (sets, "data sets") if sets else (evidence.trials, evidence.unit)
    if any(number == 1 for number in trials):
        return TOO_FEW, f"; one of {unit} says nothing of chance"
    for more in MORE:
        narrow = check.exceed(*evidence.numbers(Reach(1 / math.sqrt(more))))
        if _name_verdict(check, narrow) != INCONCLUSIVE:
            enough = f"about {more * min(trials):.0f} {unit} instead of {min(trials):.0f}"
            return TOO_FEW, f"; {enough} would decide"
    return (HEAVY if evidence.endless and not sets else TIE), ""


def join_cases(verdicts: Iterable[str]) -> str:
    """Return a claim's verdict from its cases' verdicts: it holds if all do, fails if one does."""
    return min(verdicts, key=VERDICTS.index)


def count_cases(verdicts: Sequence[str]) -> str:
    """Return a text such as "fails in 2 of 3 cases" of a claim's verdict. "" if all cases agree."""
    verdict = join_cases(verdicts)
    same = Counter(verdicts)[verdict]
    word = "fails" if verdict == FAILS else verdict.rpartition(": ")[2]
    return "" if same == len(verdicts) else f"{word} in {same} of {len(verdicts)} cases"
