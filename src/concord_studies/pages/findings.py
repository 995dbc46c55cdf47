"""The findings of a paper as half a page of Markdown: what fails, what is open, what holds.

A sentence of a paper is one line, whatever the number of its cases and readings: its verdicts, the
number on which the first of them turns, and a person's explanation (``because`` of a claim).
Documents have it more briefly (``list_briefly``), and a table of counts (``count_sentences``).
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from concord_studies import words
from concord_studies.claims.ledger import (
    COMMITTED,
    OUR_SENTENCE,
    OURS,
    ReadingVerdict,
    Row,
    group_by_reading,
    is_smoke,
)
from concord_studies.claims.verdicts import FAILS, HOLDS, MEASURED, NOT_RUN, OUTSIDE, part_of
from concord_studies.markup import fold, markdown, markdown_table

# How a part of the page is headed, and how many of its lines are shown unfolded.
PARTS = {
    "fails": ("What fails", 6),
    "open": ("What is open", 4),
    "holds": ("What holds", 6),
    "neither": ("What is measured, or outside the conditions of a theorem", 0),
}
# The kinds of sentences that are counted of a paper, and those counts in a sentence.
COUNTED = {
    "fails in all": "fail in all",
    "fails in part": "fail in part",
    "open": "open",
    "not run": "not run",
    "holds": "hold",
    "neither": "only measured, or outside the conditions of a theorem",
}
# The columns of a table of papers.
PARTS_OF_TABLE = ("fails in all", "fails in part", "open", "holds")
# How documents count those of our own sentences that they do not state.
REST = {"open": "open", "holds": "holding", "neither": "measured"}
DECIDED_BY_NONE = {
    OUTSIDE: "outside the conditions of a theorem",
    MEASURED: "measured only",
}


@dataclass(frozen=True)
class Sentence:
    """A sentence of a paper, with its verdict in every reading in which it is judged."""

    entries: tuple[ReadingVerdict, ...]

    @property
    def rows(self) -> list[Row]:
        """Return the rows of the table of verdicts for all cases and readings of the sentence."""
        return [row for entry in self.entries for row in entry.rows]

    @property
    def first_row(self) -> Row:
        """Return the first of the rows, for columns in which all agree: claim, text, source."""
        return self.entries[0].rows[0]

    @property
    def part(self) -> str:
        """Return the part of the page that shows the sentence, by its worst reading's verdict."""
        parts = {part_of(entry.verdict) for entry in self.entries}
        return next(part for part in PARTS if part in parts)

    @property
    def counted_as(self) -> str:
        """Return the kind of sentences, of ``COUNTED``, with which the sentence is counted."""
        if self.part == "fails":
            return "fails in all" if self.failing_share == 1 else "fails in part"
        open_ones = {e.verdict for e in self.entries if part_of(e.verdict) == "open"}
        return NOT_RUN if open_ones == {NOT_RUN} else self.part

    @property
    def is_ours(self) -> bool:
        """Return whether the sentence is about a paper, which does not make it."""
        return self.first_row["source"] == OUR_SENTENCE

    @cached_property
    def deciding_reading(self) -> ReadingVerdict:
        """Return the first reading whose verdict puts the sentence into its part of the page."""
        return next(entry for entry in self.entries if part_of(entry.verdict) == self.part)

    @property
    def failing_share(self) -> float:
        """Return the share of the sentence's cases, over all readings, that fail."""
        return [row["verdict"] for row in self.rows].count(FAILS) / len(self.rows)

    @property
    def verdict(self) -> str:
        """Return the verdicts in words, each with its readings: "holds (published, released)"."""
        return self._name_readings([entry.verdict for entry in self.entries])

    @property
    def label(self) -> str:
        """Return the verdicts as ``verdict`` does, each marked if only some cases fail."""
        return self._name_readings([entry.label for entry in self.entries])

    def _name_readings(self, verdicts: Iterable[str]) -> str:
        """Return verdicts in words, one of each reading, those that are the same once."""
        readings: dict[str, list[str]] = {}
        for entry, verdict in zip(self.entries, verdicts, strict=True):
            verdict = f"{verdict}, committed" if entry.is_committed else verdict
            readings.setdefault(verdict, []).append(entry.named_reading)
        texts = [(verdict, ", ".join(filter(None, of))) for verdict, of in readings.items()]
        return "; ".join(f"{verdict} ({of})" if of else verdict for verdict, of in texts)

    def join(self, column: str) -> str:
        """Return the different texts of the sentence's rows in a column, joined."""
        return "; ".join(dict.fromkeys(filter(None, (row[column] for row in self.rows))))


def group_by_sentence(rows: Iterable[Row]) -> list[Sentence]:
    """Return the sentences of papers, each with the rows of verdicts on it, in their order."""
    of_claims: dict[tuple[str, str], list[ReadingVerdict]] = {}
    for entry in group_by_reading(rows):
        claim = entry.rows[0]["paper"], entry.rows[0]["claim"]
        of_claims.setdefault(claim, []).append(entry)
    return [Sentence(tuple(of)) for of in of_claims.values()]


def half_page(rows: Sequence[Row], names: Mapping[str, str] | None = None) -> list[str]:
    """Return the lines of Markdown of one study's findings.

    What fails comes first, and there what fails in most cases; beyond a few lines each part is
    folded. Sentences that the paper does not make come last, and are not counted. ``names`` are the
    study's texts for labels.
    """
    sentences, smoke = group_by_sentence(rows), is_smoke(rows)
    ours = [one for one in sentences if one.is_ours]
    judged = [one for one in sentences if not one.is_ours]
    lines = [_summarize(judged), ""]
    for part, (heading, count) in PARTS.items():
        in_part = sorted((sentence for sentence in judged if sentence.part == part), key=_rank)
        if in_part:
            items = [format_sentence(sentence, names, smoke) for sentence in in_part]
            lines += [f"**{heading}** ({len(items)} of {len(judged)} sentences)", ""]
            more = f"{len(items) - count} more" if count else "the sentences"
            lines += [*items[:count], "", *fold(more, items[count:])]
    items = [format_sentence(sentence, names, smoke) for sentence in ours]
    return [*lines, *["**What we say, and the paper does not**", "", *items, ""] * bool(ours)]


def list_briefly(rows: Sequence[Row]) -> list[str]:
    """Return the lines of Markdown of one study's findings, as documents have them.

    What fails or is open has its number; of what holds there are the places in print if it is much.
    Of our own sentences about a paper those that fail are stated, and the others counted.
    """
    sentences = group_by_sentence(rows)
    ours = [one for one in sentences if one.is_ours]
    judged = [one for one in sentences if not one.is_ours]
    lines: list[str] = []
    for part in ("fails", "open", "holds"):
        in_part = sorted((one for one in judged if one.part == part), key=_rank)
        if part == "holds" and len(in_part) > PARTS[part][1]:
            lines += [_list_places(in_part), ""]
        elif in_part:
            lines += [f"**{PARTS[part][0]}**", "", *map(_state_briefly, in_part), ""]
    failing = sorted((one for one in ours if one.part == "fails"), key=_rank)
    lines += ["**Our sentences that fail**", "", *map(_state_briefly, failing), ""] * bool(failing)
    rest = Counter(one.part for one in ours)
    counts = [f"{rest[part]} {word}" for part, word in REST.items() if rest[part]]
    return [*lines, *[f"Our other sentences: {', '.join(counts)}.", ""] * bool(counts)]


def _state_briefly(sentence: Sentence) -> str:
    """Return a sentence as an item of Markdown; one that a paper makes has its place and number."""
    row, entry = sentence.first_row, sentence.deciding_reading
    printed = not sentence.is_ours and row["source"] != OURS
    place = f" ({_shorten_place(row)})" * printed
    text = f"- {markdown(row['says'].rstrip('.') + place)}."
    verdicts = {one.verdict for one in sentence.entries}
    if verdicts - {FAILS, HOLDS} or len(verdicts) > 1:
        text += f" **{markdown(verdicts.pop() if len(verdicts) == 1 else sentence.verdict)}.**"
    if sentence.is_ours or sentence.part == "holds":
        return text
    number = _shorten_rule(entry.deciding["number"].partition("; not met")[0])
    parts = [entry.count_cases().partition(":")[0], number]
    return text + "".join(f" {markdown(part[0].upper() + part[1:])}." for part in parts if part)


def _list_places(sentences: Sequence[Sentence]) -> str:
    """Return where a paper says what holds, as a line of Markdown: "Theorem 2 (3), Fig 2"."""
    places = (_shorten_place(one.first_row).partition(",")[0] for one in sentences)
    counts = Counter(place[0].upper() + place[1:] for place in places)
    listed = [f"{place} ({n})" if n > 1 else place for place, n in counts.items()]
    return f"**What holds** ({len(sentences)}): {markdown(', '.join(listed))}."


def _shorten_place(row: Row) -> str:
    """Return a place in print with signs for sections: "§5.1, Fig 2"."""
    return re.sub(r"\b[Ss]ection(s?) (?=\d)", lambda m: "§§" if m[1] else "§", row["where"])


def _shorten_rule(number: str) -> str:
    """Return a number with its rule in signs: "exact W2: 3 (≤ 1)"."""
    signs = {r"rule: at most ": "≤ ", r"rule: at least ": "≥ ", r"rule: (\S+) to ": r"\1 to "}
    for words_of_rule, sign in signs.items():
        number = re.sub(rf"\({words_of_rule}", f"({sign}", number)
    return number


def _summarize(judged: Sequence[Sentence]) -> str:
    """Return a line that counts the sentences that fail, are open, hold, or are not judged."""
    counts = Counter(sentence.part for sentence in judged)
    always = sum(sentence.failing_share == 1 for sentence in judged)
    everywhere = f" ({always} in every case and reading)" if counts["fails"] else ""
    parts = [f"{counts['fails']} failing{everywhere}"]
    parts += [f"{counts['open']} open", f"{counts['holds']} holding"]
    unjudged = Counter(s.deciding_reading.verdict for s in judged if s.part == "neither")
    parts += [f"{unjudged[v]} {text}" for v, text in DECIDED_BY_NONE.items() if unjudged[v]]
    return f"Sentences: {', '.join(parts)}."


def count_parts(sentences: Iterable[Sentence]) -> Counter[str]:
    """Return how many sentences there are of each kind of ``COUNTED``."""
    return Counter(one.counted_as for one in sentences)


def count_sentences(rows: Iterable[Row]) -> list[str]:
    """Return a Markdown table of how many sentences of each study fail, are open, or hold.

    What was not run is among what is open. Those about a paper that are ours are counted apart:
    "5 + 2".
    """
    of_studies: dict[str, list[Sentence]] = {}
    for one in group_by_sentence(rows):
        of_studies.setdefault(one.first_row["paper"], []).append(one)
    columns, table = (*PARTS_OF_TABLE, "neither"), []
    for paper, sentences in sorted(of_studies.items()):
        ours = count_parts(one for one in sentences if one.is_ours)
        counts = count_parts(one for one in sentences if not one.is_ours)
        for counted in (ours, counts):
            counted["open"] += counted[NOT_RUN]
        shown = (f"{counts[n]} + {ours[n]}" if ours[n] else str(counts[n]) for n in columns)
        table.append([f"`{paper}`", *shown])
    return markdown_table(["study", *columns], table)


def _rank(sentence: Sentence) -> tuple[Any, ...]:
    """Return the key that sorts sentences of a part: most failing first, not run last."""
    lost = sentence.deciding_reading.verdict == NOT_RUN
    return -sentence.failing_share, lost, not sentence.deciding_reading.deciding["because"]


def format_sentence(sentence: Sentence, names: Mapping[str, str] | None, smoke: bool) -> str:
    """Return a sentence as a Markdown item: verdicts, number, and why; smoke: without number."""
    row, entry = sentence.first_row, sentence.deciding_reading
    number, cases = entry.deciding["number"] or entry.deciding["ours"], entry.count_cases(names)
    if number == COMMITTED:
        number = ""
    elif number and len(entry.rows) > 1 and not cases:
        number = f"{words.case(entry.deciding['case'], names)}, {number}"
    parts = [markdown(row["says"]), f"**{markdown(sentence.label)}.**"]
    # As sentences: the first letter large, a full stop at the end.
    parts += [markdown(f"{t[0].upper()}{t[1:].rstrip('.')}.") for t in (cases, number) if t]
    if entry.deciding["because"] and not smoke:
        parts.append(f"*Why:* {markdown(entry.deciding['because'])}")
    return f"- {' '.join(parts)}"


def format_shortly(sentence: Sentence) -> str:
    """Return a sentence in Markdown with its verdicts and the number that decides, not why."""
    row, entry = sentence.first_row, sentence.deciding_reading
    whose = "Our sentence. " if row["source"] == OUR_SENTENCE else ""
    cases = entry.count_cases().partition(":")[0]
    parts = [cases, entry.deciding["number"].partition("; not met")[0]]
    texts = (f" {markdown(part[0].upper() + part[1:])}." for part in parts if part)
    return f"{markdown(whose + row['says'])} **{markdown(sentence.label)}.**{''.join(texts)}"
