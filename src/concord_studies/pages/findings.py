"""The findings of a paper as half a page of Markdown: what fails, what is open, what holds.

A sentence of a paper is one line, whatever the number of its cases and readings: its verdicts, the
number on which the first of them turns, and a person's explanation (``because`` of a claim).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from concord_studies import words
from concord_studies.claims.ledger import COMMITTED, Entry, Row, entries, is_smoke
from concord_studies.claims.verdicts import FAILS, MEASURED, NOT_RUN, OUTSIDE, part_of
from concord_studies.markup import fold, markdown

# How a part of the page is headed, and how many of its lines are shown unfolded.
PARTS = {
    "fails": ("What fails", 6),
    "open": ("What is open", 4),
    "holds": ("What holds", 6),
    "neither": ("What is measured, or outside the conditions of a theorem", 0),
}
DECIDED_BY_NONE = {
    OUTSIDE: "outside the conditions of a theorem",
    MEASURED: "measured only",
}


@dataclass(frozen=True)
class Sentence:
    """A sentence of a paper, with its verdict in every reading in which it is judged."""

    entries: tuple[Entry, ...]

    @property
    def row(self) -> Row:
        """Return a row that says what all rows of the sentence share."""
        return self.entries[0].rows[0]

    @property
    def part(self) -> str:
        """Return the part of the page in which the sentence is: the worst of its readings'."""
        found = {part_of(entry.verdict) for entry in self.entries}
        return next(part for part in PARTS if part in found)

    @cached_property
    def deciding(self) -> Entry:
        """Return the first reading whose verdict puts the sentence into its part."""
        return next(entry for entry in self.entries if part_of(entry.verdict) == self.part)

    @property
    def failing(self) -> float:
        """Return the share of the sentence's cases, over all readings, that fail."""
        verdicts = [row["verdict"] for entry in self.entries for row in entry.rows]
        return verdicts.count(FAILS) / len(verdicts)

    @property
    def verdict(self) -> str:
        """Return the verdicts in words, each with its readings: "holds (published, released)"."""
        readings: dict[str, list[str]] = {}
        for entry in self.entries:
            verdict = f"{entry.verdict}, committed" if entry.is_committed else entry.verdict
            readings.setdefault(verdict, []).append(entry.named_reading)
        texts = [(verdict, ", ".join(filter(None, of))) for verdict, of in readings.items()]
        return "; ".join(f"{verdict} ({of})" if of else verdict for verdict, of in texts)


def sentences(rows: Iterable[Row]) -> list[Sentence]:
    """Return the sentences that rows of verdicts judge, in the rows' order."""
    found: dict[tuple[str, str], list[Entry]] = {}
    for entry in entries(rows):
        found.setdefault((entry.rows[0]["paper"], entry.rows[0]["claim"]), []).append(entry)
    return [Sentence(tuple(of)) for of in found.values()]


def half_page(rows: Sequence[Row], names: Mapping[str, str] | None = None) -> list[str]:
    """Return the lines of Markdown of one study's findings.

    What fails comes first, and there what fails in most cases; beyond a few lines each part is
    folded. ``names`` are the study's texts for labels.
    """
    found = sentences(rows)
    lines = [_summarize(found), ""]
    for part, (heading, shown) in PARTS.items():
        own = [sentence for sentence in found if sentence.part == part]
        own.sort(key=_rank)
        if own:
            listed = [format_sentence(sentence, names, is_smoke(rows)) for sentence in own]
            lines += [f"**{heading}** ({len(own)} of {len(found)} sentences)", "", *listed[:shown]]
            more = f"{len(own) - shown} more" if shown else "the sentences"
            lines += ["", *fold(more, listed[shown:])]
    return lines


def _summarize(found: Sequence[Sentence]) -> str:
    """Return a line that counts the sentences that fail, are open, hold, or are not judged."""
    counts = Counter(sentence.part for sentence in found)
    always = sum(sentence.failing == 1 for sentence in found)
    everywhere = f" ({always} in every case and reading)" if counts["fails"] else ""
    parts = [f"{counts['fails']} failing{everywhere}"]
    parts += [f"{counts['open']} open", f"{counts['holds']} holding"]
    unjudged = [sentence for sentence in found if sentence.part == "neither"]
    for verdict, text in DECIDED_BY_NONE.items():
        if count := sum(sentence.deciding.verdict == verdict for sentence in unjudged):
            parts.append(f"{count} {text}")
    return f"Sentences: {', '.join(parts)}."


def _rank(sentence: Sentence) -> tuple[Any, ...]:
    """Return the key that sorts sentences of a part: most failing first, not run last."""
    lost = sentence.deciding.verdict == NOT_RUN
    return -sentence.failing, lost, not sentence.row["because"]


def format_sentence(sentence: Sentence, names: Mapping[str, str] | None, smoke: bool) -> str:
    """Return a sentence as an item of a list: verdicts, number, and why."""
    row, entry = sentence.row, sentence.deciding
    number, counted = entry.deciding["number"] or entry.deciding["ours"], entry.count_cases(names)
    if number == COMMITTED:
        number = ""
    elif number and len(entry.rows) > 1 and not counted:
        number = f"{words.case(entry.deciding['case'], names)}, {number}"
    rest = " ".join(markdown(_full_stop(text)) for text in (counted, number) if text)
    why = f" *Why:* {markdown(row['because'])}" if row["because"] and not smoke else ""
    return f"- {markdown(row['says'])} **{markdown(sentence.verdict)}.** {rest}{why}".rstrip()


def _full_stop(text: str) -> str:
    """Return a text as a sentence: its first letter large, a full stop at its end."""
    return f"{text[0].upper()}{text[1:].rstrip('.')}."
