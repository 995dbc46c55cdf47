"""What verdicts depend on: how often a claim holds over the universes, and which of them turn it.

A universe counts for a claim if it changes a run that the claim reads; the study itself counts as
one. A claim is ``robust`` if it holds, fails or is open in all of them alike, and depends on what
makes it otherwise. One that holds with a master seed and does not hold with another is inconclusive
(``contradictions``); whatever is open agrees with either.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from concord_studies.claims import verdicts
from concord_studies.claims.verdicts import (
    FAILS,
    HOLDS,
    INSIDE,
    MEASURED,
    NOT_RUN,
    OUTSIDE,
    Judgement,
)
from concord_studies.io import read_table
from concord_studies.markup import uncell
from concord_studies.provenance import read_provenance

BASE, SEED = "base", "seed_"

COLUMNS = (
    *("claim", "case", "reading", "universe", "verdict", "ours"),
    *("value", "lo", "hi", "low", "high", "what", "printed"),  # claims.verdicts.Margin
)
NUMBERS = ("value", "lo", "hi", "low", "high", "printed")
Row = Mapping[str, Any]

WAYS = ("holds", "fails", "open")


def way(verdict: str) -> str:
    """Return the way a verdict goes, one of ``WAYS``. "" if it decides nothing."""
    if verdict in (NOT_RUN, MEASURED):
        return ""
    return (
        "holds"
        if verdict in (HOLDS, INSIDE)
        else "fails"
        if verdict in (FAILS, OUTSIDE)
        else "open"
    )


def row(claim: str, case: str, reading: str, universe: str, found: Judgement) -> Row:
    """Return a row of the multiverse table for a case in a reading and a universe."""
    margin = found.margin
    numbers = [None] * 7 if margin is None else vars(margin).values()
    cells = (claim, case, reading, universe, found.verdict, found.ours, *numbers)
    return dict(zip(COLUMNS, cells, strict=True))


def read_rows(path: Path) -> list[Row]:
    """Return the rows of the table of verdicts over universes, whose digest must match."""
    read_provenance(path)
    found: list[Row] = []
    for line in read_table(path, COLUMNS):
        texts = {column: uncell(line[column]) for column in COLUMNS}
        numbers = {c: float(texts[c]) if texts[c] else None for c in NUMBERS}
        found.append({**texts, **numbers})
    return found


@dataclass(frozen=True)
class Robustness:
    """A claim in a reading, with its verdict in every universe that counts."""

    verdicts: Mapping[str, str]

    @property
    def ways(self) -> dict[str, str]:
        """Return the way the verdict goes in each universe that decides."""
        return {name: way(verdict) for name, verdict in self.verdicts.items() if way(verdict)}

    @property
    def turns(self) -> dict[str, str]:
        """Return the universes whose verdict differs from the study's."""
        ways = self.ways
        found = {name: said for name, said in ways.items() if said != ways.get(BASE, said)}
        return {
            name: said
            for name, said in found.items()
            if "+" not in name or not any(part in found for part in name.split("+"))
        }

    @property
    def text(self) -> str:
        """Return the robustness as a sentence. "" where fewer than two universes decide."""
        ways = list(self.ways.values())
        if BASE not in self.ways or len(ways) < 2:
            return ""
        counts = [(said, ways.count(said)) for said in WAYS]
        shares = ", ".join(f"{said} in {count}" for said, count in counts if count)
        shares += f" of {len(ways)} universes"
        if not self.turns:
            return f"robust: {shares}"
        on = dict.fromkeys(
            "the seed" if part.startswith(SEED) else part.partition(".")[0]
            for name in self.turns
            for part in name.split("+")
        )
        each = ", ".join(f"{name} {said}" for name, said in self.turns.items())
        return f"depends on {', '.join(on)}: {shares} ({each})"


def of_claims(rows: Iterable[Row]) -> dict[tuple[str, str], Robustness]:
    """Return every claim's robustness, by claim and reading.

    Cases that a universe does not change are in it as in the study.
    """
    cases: dict[tuple[str, str], dict[str, dict[str, str]]] = {}
    for line in rows:
        found = cases.setdefault((line["claim"], line["reading"]), {})
        found.setdefault(line["case"], {})[line["universe"]] = line["verdict"]
    return {
        key: Robustness(
            {
                name: verdicts.of_cases(said.get(name, said[BASE]) for said in found.values())
                for name in dict.fromkeys(name for said in found.values() for name in said)
            }
        )
        for key, found in cases.items()
    }


def contradictions(rows: Sequence[Row], seed: int | str) -> dict[tuple[str, str, str], str]:
    """Return, by claim, case and reading, the verdicts on which master seeds disagree.

    ``seed`` is the study's.
    """
    said: dict[tuple[str, str, str], dict[str, list[str]]] = {}
    for line in rows:
        name = line["universe"]
        if name == BASE or name.startswith(SEED):
            key = line["claim"], line["case"], line["reading"]
            number = str(seed) if name == BASE else name.removeprefix(SEED)
            said.setdefault(key, {}).setdefault(line["verdict"], []).append(number)
    return {
        key: "; ".join(
            f"{verdict} with seed {', '.join(found[verdict])}" for verdict in (HOLDS, FAILS)
        )
        for key, found in said.items()
        if {HOLDS, FAILS} <= set(found)
    }


def over_seeds(found: Judgement, others: str | None) -> Judgement:
    """Return a judgement, made inconclusive where another master seed contradicts it."""
    if not others or found.verdict == NOT_RUN:
        return found
    told = f"{found.ours} (alone: {found.verdict}; {others})"
    return replace(found, verdict=verdicts.SEED, ours=told)
