"""What verdicts depend on: how often a claim holds over the universes, and which of them turn it.

A universe counts for a claim if it changes a run that the claim reads; the study itself counts as
one. A claim is ``robust`` if it holds, fails or is open in all of them alike, and depends on what
makes it otherwise. One that holds with a master seed and does not hold with another is inconclusive
(``seed_disagreements``); whatever is open agrees with either.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from concord_studies.claims import verdicts
from concord_studies.claims.verdicts import (
    FAILS,
    HOLDS,
    MEASURED,
    NOT_RUN,
    OUTSIDE,
    Judgement,
    part_of,
)
from concord_studies.io import read_table
from concord_studies.markup import uncell
from concord_studies.provenance import read_provenance

BASE, SEED = "base", "seed_"

OF_MARGIN = ("value", "lo", "hi", "low", "high", "what", "printed")
COLUMNS = ("claim", "case", "reading", "universe", "verdict", "ours", *OF_MARGIN)
NUMBERS = ("value", "lo", "hi", "low", "high", "printed")
Row = Mapping[str, Any]

OUTCOMES = ("holds", "fails", "open")


def outcome(verdict: str) -> str:
    """Return "holds", "fails" or "open" (inconclusive) for a verdict.

    "fails" too if it is outside the theorem's conditions; "" if it was not run or only measured.
    """
    if verdict in (NOT_RUN, MEASURED):
        return ""
    return "fails" if verdict == OUTSIDE else part_of(verdict)


def build_row(claim: str, case: str, reading: str, universe: str, judgement: Judgement) -> Row:
    """Return a row of the multiverse table for a case in a reading and a universe.

    judgement: of the case there.
    """
    margin = judgement.margin
    numbers = [getattr(margin, name, None) for name in OF_MARGIN]  # None without a margin
    cells = (claim, case, reading, universe, judgement.verdict, judgement.ours, *numbers)
    return dict(zip(COLUMNS, cells, strict=True))


def read_rows(path: Path) -> list[Row]:
    """Return the rows of the table of verdicts over universes, whose digest must match."""
    read_provenance(path)
    rows: list[Row] = []
    for line in read_table(path, COLUMNS):
        texts = {column: uncell(line[column]) for column in COLUMNS}
        numbers = {c: float(texts[c]) if texts[c] else None for c in NUMBERS}
        rows.append({**texts, **numbers})
    return rows


@dataclass(frozen=True)
class Robustness:
    """The verdicts on a claim in a reading, by universe.

    verdicts: of the study ("base") and of every universe that changes a run the claim reads.
    """

    verdicts: Mapping[str, str]

    @property
    def outcomes(self) -> dict[str, str]:
        """Return "holds", "fails" or "open" by universe; without those that were not run."""
        return {
            name: outcome(verdict) for name, verdict in self.verdicts.items() if outcome(verdict)
        }

    @property
    def changed_outcomes(self) -> dict[str, str]:
        """Return the outcome of each universe in which it is not the study's own.

        Pairs of alternatives are left out of which one alone changes the outcome.
        """
        base = self.outcomes.get(BASE)
        turns = {name: to for name, to in self.outcomes.items() if base and to != base}
        return {
            name: to
            for name, to in turns.items()
            if "+" not in name or turns.keys().isdisjoint(name.split("+"))
        }

    @property
    def text(self) -> str:
        """Return the robustness as a sentence. "" where fewer than two universes decide."""
        ways = list(self.outcomes.values())
        if BASE not in self.outcomes or len(ways) < 2:
            return ""
        shares = ", ".join(f"{one} in {ways.count(one)}" for one in OUTCOMES if one in ways)
        shares += f" of {len(ways)} universes"
        if not self.changed_outcomes:
            return f"robust: {shares}"
        on = dict.fromkeys(
            "the seed" if part.startswith(SEED) else part.partition(".")[0]
            for name in self.changed_outcomes
            for part in name.split("+")
        )
        each = ", ".join(f"{name} {to}" for name, to in self.changed_outcomes.items())
        return f"depends on {', '.join(on)}: {shares} ({each})"


def find_robustness(rows: Iterable[Row]) -> dict[tuple[str, str], Robustness]:
    """Return every claim's robustness, by claim and reading.

    Cases that a universe does not change are in it as in the study.
    """
    claims: dict[tuple[str, str], dict[str, dict[str, str]]] = {}
    for line in rows:
        cases = claims.setdefault((line["claim"], line["reading"]), {})
        cases.setdefault(line["case"], {})[line["universe"]] = line["verdict"]
    robust = {}
    for key, cases in claims.items():
        names = dict.fromkeys(name for case in cases.values() for name in case)
        each = {name: [case.get(name, case[BASE]) for case in cases.values()] for name in names}
        robust[key] = Robustness({name: verdicts.join_cases(of) for name, of in each.items()})
    return robust


def seed_disagreements(rows: Sequence[Row], seed: int | str) -> dict[tuple[str, str, str], str]:
    """Return, by claim, case and reading, where one seed says "holds" and one "does not hold".

    seed: the study's own. The text is such as "holds with seed 1, 2; does not hold with seed 3".
    """
    seeds: dict[tuple[str, str, str], dict[str, list[str]]] = {}  # by verdict
    for line in rows:
        name = line["universe"]
        if name == BASE or name.startswith(SEED):
            key = line["claim"], line["case"], line["reading"]
            number = str(seed) if name == BASE else name.removeprefix(SEED)
            seeds.setdefault(key, {}).setdefault(line["verdict"], []).append(number)
    return {
        key: "; ".join(f"{one} with seed {', '.join(by_verdict[one])}" for one in (HOLDS, FAILS))
        for key, by_verdict in seeds.items()
        if {HOLDS, FAILS} <= by_verdict.keys()
    }


def weigh_seeds(judgement: Judgement, others: str | None) -> Judgement:
    """Return a judgement, made inconclusive where another master seed contradicts it.

    others: which seeds do so, as ``seed_disagreements`` says it; none: none does.
    """
    if not others or judgement.verdict == NOT_RUN:
        return judgement
    text = f"{judgement.ours} (alone: {judgement.verdict}; {others})"
    return replace(judgement, verdict=verdicts.SEED, ours=text)
