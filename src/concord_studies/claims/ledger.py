"""The ledger: verdicts as tables, what they add up to, and the committed ones."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from concord.errors import ConcordError
from concord_studies import words
from concord_studies.claims import verdicts
from concord_studies.io import build_file, load_yaml, read_table
from concord_studies.markup import uncell
from concord_studies.provenance import read_provenance

COLUMNS = (
    *("paper", "claim", "case", "reading", "verdict", "where", "source", "says", "printed", "ours"),
    *("number", "because", "kind", "rule", "reason", "figure", "assumptions"),
    "multiverse",
    *("alone", "seed", "scale"),  # alone is the verdict with this seed alone
)
SMOKE = "Smoke scale: few chains and iterations, so the verdicts mean nothing."
WORDS = "What a paper says is in our words."
RATIOS = "A ratio is of what a sentence calls smaller to what it calls larger."
COMMITTED = "The committed verdict; not judged here"  # what stands in place of our numbers
OF_COMMITTED, ALL_COMMITTED = (
    f"{which} judged at paper scale with seed 1, and not here: snakemake ledger judges them."
    for which in ("Verdicts marked committed were", "All verdicts are committed ones,")
)

OURS = "ours"  # the source of a finding of our own study, which nobody has printed
OUR_SENTENCE = "our sentence"  # the source of a claim about a paper that the paper does not make

Row = Mapping[str, str]
Place = tuple[str, str, str]  # paper, claim and reading
# The file of committed verdicts, by paper, claim and reading; of a claim with cases by case. Each
# is a verdict, or a verdict and the number that decides.
Verdict = Literal[verdicts.VERDICTS]  # type: ignore[valid-type]
OfCase = Verdict | tuple[Verdict, str]
Committed = dict[str, dict[str, dict[str, OfCase | dict[str, OfCase]]]]


@dataclass(frozen=True)
class ReadingVerdict:
    """A claim in one reading: its verdict, and the rows of its cases."""

    verdict: str
    rows: tuple[Row, ...]

    @property
    def deciding(self) -> Row:
        """The row of the first case that has the claim's verdict."""
        return self._deciding_rows[0]

    @property
    def _deciding_rows(self) -> list[Row]:
        """Return the rows of the cases that have the claim's verdict."""
        return [row for row in self.rows if row["verdict"] == self.verdict]

    @property
    def label(self) -> str:
        """The verdict as readers see it, which says so if only some cases fail."""
        partly = self.verdict == verdicts.FAILS and len(self._deciding_rows) < len(self.rows)
        return f"{self.verdict}{', in part' * partly}"

    @property
    def is_committed(self) -> bool:
        """Whether the verdict is a committed one, and was not judged here."""
        return self.rows[0].get("ours") == COMMITTED

    @property
    def named_reading(self) -> str:
        """The reading as readers see it, "published (57)". "" for findings of our own."""
        row = self.rows[0]
        return reading_name(row["reading"], row.get("source") == OURS)

    @property
    def reading(self) -> str:
        """The reading as readers see it, with a mark if its verdict is a committed one."""
        mark = "committed" if self.is_committed else ""
        return ", ".join(filter(None, [self.named_reading, mark]))

    def count_cases(self, names: Mapping[str, str] | None = None) -> str:
        """Return the number and names of the cases with the claim's verdict, unless all are.

        ``names`` are a study's texts for labels.
        """
        text = verdicts.count_cases([row["verdict"] for row in self.rows])
        same = [words.case(row["case"], names) for row in self._deciding_rows]
        named = [*same[:3], f"{len(same) - 3} more"] if len(same) > 4 else same
        return f"{text}: {'; '.join(named)}" if text else ""


def group_by_reading(rows: Iterable[Row]) -> list[ReadingVerdict]:
    """Return one verdict for each claim and reading, with its cases' rows, in the rows' order."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in ("paper", "claim", "reading")), []).append(row)
    return [
        ReadingVerdict(verdicts.join_cases(row["verdict"] for row in cases), tuple(cases))
        for cases in groups.values()
    ]


def read_rows(path: Path) -> Sequence[Row]:
    """Return the rows of a table of verdicts, whose digest must match."""
    read_provenance(path)
    return [{name: uncell(text) for name, text in row.items()} for row in read_table(path, COLUMNS)]


def reading_name(reading: str, ours: bool) -> str:
    """Return a reading's name for readers; "" of a finding of our own (``ours``) as published."""
    if ours and reading == "published":
        return ""
    return re.sub(r"_(\d+)$", r" (\1)", reading).replace("_", " ")


def is_smoke(rows: Iterable[Row]) -> bool:
    """Return whether verdicts come from runs of smoke scale, which mean nothing."""
    return any(row["scale"] == "smoke" for row in rows)


def scores(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Return the scoreboard as column names and rows, a printed sentence counted once.

    What fails in part does not hold in some of its cases. Open is what is inconclusive or not run;
    neither is what lies outside the conditions of a theorem, or is measured only. Sentences of our
    own about a paper are apart.
    """
    parts = ("fails", "fails in part", "open", "holds", "neither")
    groups: dict[tuple[str, str], list[str]] = {}
    for entry in group_by_reading(rows):
        ours = "our sentences" if entry.rows[0]["source"] == OUR_SENTENCE else ""
        name = ", ".join(filter(None, [entry.named_reading, ours]))
        part = verdicts.part_of(entry.verdict)
        partly = part == "fails" and any(row["verdict"] != verdicts.FAILS for row in entry.rows)
        part = "fails in part" if partly else part
        groups.setdefault((entry.rows[0]["paper"], name), []).append(part)
    cells = [
        [*key, str(len(entry_parts)), *(str(entry_parts.count(part)) for part in parts)]
        for key, entry_parts in sorted(groups.items())
    ]
    return ["paper", "reading", "sentences", *parts], cells


def committed_values(path: Path, kind: Any = Committed) -> dict[Place, Any]:
    """Return the committed values of a file by paper, claim and reading; {} if there is no file.

    kind: the type of the file's nested mappings. A ConcordError if it has something else.
    """
    values = build_file(kind, load_yaml(path), path) if path.exists() else {}
    return {
        (paper, claim, reading): value
        for paper, claims in values.items()
        for claim, readings in claims.items()
        for reading, value in readings.items()
    }


def expected_rows(path: Path) -> list[Row]:
    """Return the committed verdicts as rows, one for each case."""
    rows: list[Row] = []
    for (paper, claim, reading), committed in committed_values(path).items():
        cases = committed if isinstance(committed, dict) else {"": committed}
        source = OURS if (path.parent / "studies" / paper).is_dir() else ""
        for case, stated in cases.items():
            verdict, number = (stated, "") if isinstance(stated, str) else stated
            key = {"paper": paper, "claim": claim, "case": case, "reading": reading}
            rows.append({**key, "source": source, "verdict": verdict, "number": number})
    return rows


def fill_in_committed(rows: Sequence[Row], committed: Sequence[Row]) -> list[Row]:
    """Return verdicts, with the committed ones in place of those that were not judged."""
    stated = {verdict_key(row): row for row in committed}
    places = (stated.get(verdict_key(row)) for row in rows)
    return [
        {**row, **was, "source": row["source"], "ours": COMMITTED}
        if was and row["verdict"] == verdicts.NOT_RUN
        else row
        for row, was in zip(rows, places, strict=True)
    ]


def unmark_committed(rows: Sequence[Row]) -> Sequence[Row]:
    """Return verdicts without the mark of committed ones, if all are; else as they are."""
    if any(row["ours"] != COMMITTED for row in rows):
        return rows
    return [{**row, "ours": row["number"]} for row in rows]


@dataclass(frozen=True)
class Comparison:
    """The verdicts of a ledger beside the committed ones, one line for each.

    changed: those that differ, and those whose claim is gone.
    seeds: those committed as depending on data or seed, which were not varied here.
    new: those of a study with committed verdicts that were not committed.
    left: those committed that were not judged here, with the reason.
    compared: how many are compared, those over the universes included; None where nothing is.
    """

    changed: tuple[str, ...] = ()
    seeds: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    compared: int | None = None

    @property
    def text(self) -> str:
        """Return the comparison's counts in one sentence."""
        if self.compared is None:
            return "Verdicts are not compared: none of this scale and these studies is committed."
        many = len(self.changed)
        differ = "differ" if many > 1 else "differs"
        text = f"{many or 'None'} of {self.compared} committed verdicts {differ}"
        unvaried = "not compared, since seeds were not varied"
        for lines, what in (
            *((self.seeds, unvaried), (self.new, "new")),
            (self.left, "not judged here"),
        ):
            text += f"; {len(lines)} {what}" if lines else ""
        return f"{text}."

    @property
    def lines(self) -> tuple[str, ...]:
        """Return the comparison's lines, differing verdicts first."""
        return self.changed + self.seeds + self.new + self.left


def compare(rows: Sequence[Row], expected_path: Path) -> Comparison:
    """Compare verdicts with the committed ones, study by study.

    Those of smoke scale are not compared, nor those of studies of which none is committed. A claim
    that was not judged here, or not where verdicts were committed, is no change, nor is a verdict
    that other chains could turn, here or as committed: it says so itself. Whether a verdict depends
    on the seed is known only where universes were run; elsewhere those that do are not compared.
    """
    if is_smoke(rows) or not expected_path.exists():
        return Comparison()
    judged = {row["paper"] for row in rows}
    before = {verdict_key(row): row["verdict"] for row in expected_rows(expected_path)}
    before = {key: verdict for key, verdict in before.items() if key[0] in judged}
    papers = {paper for paper, *_ in before}
    after = {verdict_key(row): row for row in rows if row["paper"] in papers}
    if not after:
        return Comparison()
    changed, seeds, new, left, compared = [], [], [], [], 0
    for key in sorted({*before, *after}):
        name, was = " ".join(filter(None, key)), before.get(key, verdicts.NOT_RUN)
        now = after[key]["verdict"] if key in after else "no longer a claim"
        if was == verdicts.NOT_RUN and key in after:
            new += [f"{name}: new, {now}"] * (now != was)
        elif now == verdicts.NOT_RUN:
            left.append(f"{name}: {was}, not judged here: {after[key]['ours']}")
        elif was == verdicts.SEED != now and key in after and not after[key]["multiverse"]:
            seeds.append(f"{name}: {was} -> {now}, with one seed")
        else:
            compared += 1
            if was != now and verdicts.OTHER not in (was, now):
                changed.append(f"{name}: {was} -> {now}")
    universes = expected_universes(expected_path)
    surveyed = {paper for paper, *_ in universes}
    for place, now in robustness_by_claim(after.values()).items():
        name = f"{' '.join(place)}, over the universes"
        if place not in universes:
            new += [f"{name}: new, {now}"] * (place[0] in surveyed)
            continue
        compared += 1
        if universes[place] != now:
            changed.append(f"{name}: {universes[place]} -> {now}")
    return Comparison(tuple(changed), tuple(seeds), tuple(new), tuple(left), compared)


def find_seed_dependent(rows: Iterable[Row], path: Path) -> set[Place]:
    """Return the claims of rows whose committed verdict depends on data or seed."""
    committed = group_by_reading(expected_rows(path))
    dependent = {_place(e.rows[0]) for e in committed if e.verdict == verdicts.SEED}
    return dependent & set(map(_place, rows))


def note_unvaried_seeds(rows: Iterable[Row], path: Path) -> str:
    """Return a sentence that names papers whose seeds were not varied. "" if none."""
    papers = [row for row in rows if row["source"] != OURS]
    varied = {row["paper"] for row in papers if row["multiverse"]}
    alone = [row for row in papers if row["paper"] not in varied]
    if not alone or is_smoke(alone):
        return ""
    of = f" of {', '.join(dict.fromkeys(row['paper'] for row in alone))}" if varied else ""
    many = len(find_seed_dependent(alone, path))
    depend = "depends" if many == 1 else "depend"
    text = f"; {many} of these verdicts {depend} on data or seed (committed)" if many else ""
    return f"Seeds{of} were not varied{text}."


def robustness_by_claim(rows: Iterable[Row]) -> dict[Place, str]:
    """Return a sentence for each claim judged in several universes: how its verdicts hold there."""
    return {_place(row): row["multiverse"] for row in rows if row["multiverse"]}


def expected_universes(path: Path) -> dict[Place, str]:
    """Return the committed sentence on a verdict's robustness over universes, by claim."""
    texts = dict[str, dict[str, dict[str, str]]]
    return committed_values(path.with_name("expected_multiverse.yaml"), texts)


def _place(row: Row) -> Place:
    """Return the columns that identify a claim in a reading: paper, claim and reading."""
    return row["paper"], row["claim"], row["reading"]


def verdict_key(row: Row) -> tuple[str, ...]:
    """Return the columns that identify a verdict: paper, claim, case and reading."""
    return tuple(row[column] for column in ("paper", "claim", "case", "reading"))


def changes(ledger_path: Path, expected_path: Path, strict: bool) -> Comparison:
    """Return the lines on verdicts of a ledger that differ from the committed ones.

    A ConcordError if verdicts differ and ``strict`` is true.
    """
    comparison = compare(read_rows(ledger_path), expected_path)
    if comparison.changed and strict:
        raise ConcordError(
            f"{len(comparison.changed)} verdicts differ from {expected_path} "
            f"({'; '.join(comparison.changed)}); "
            "find out why, or commit the new verdicts with: concord expect"
        )
    return comparison
