"""The pages of claims as Markdown: of a paper, and of all papers (the ledger).

A claim in a reading is a line of a table; what is behind its verdict is folded.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from concord_studies import words
from concord_studies.claims.ledger import (
    COMMITTED,
    OF_COMMITTED,
    OURS,
    SMOKE,
    WORDS,
    Entry,
    Row,
    entries,
    is_smoke,
    scores,
)
from concord_studies.configuration.study import Study
from concord_studies.markup import line, markdown
from concord_studies.pages.markdown import Folded, Section, page

COLUMNS = ("where", "says", "printed", "reading", "verdict", "ours", "figure")


def of_paper(
    paper: Study,
    found: Sequence[Entry],
    seeds: str = "",
    shown: Sequence[Section] = (),
    link: Callable[[str], str] | None = None,
) -> str:
    """Return a paper's page: claims, readings, assumptions, errata and discrepancies.

    seeds: what is said where they were not varied.
    shown: parts with figures and tables, which follow the claims.
    link: what writes the name of a claim's figure; none: as a link to its file.
    """
    about = paper.about
    text = f"{about.authors} ({about.year}). "
    text += f"{about.reference}." if about.reference else ""
    text += f" What was read: {line(about.read)}" if about.read else ""
    text += f" {line(about.images)}" if about.images else ""
    parts = [_of_claims(paper, found, seeds), *shown]
    parts += [_of_readings(paper), *_of_notes(paper, found)]
    if paper.sections.released_code:
        parts.append(Section("Released code", paper.sections.released_code))
    return page(about.title, text, parts, link or _link(paper))


def ledger(rows: Sequence[Row], seeds: str = "") -> str:
    """Return the page of all papers: how many verdicts of each kind, and all claims."""
    text = f"{SMOKE if is_smoke(rows) else ''} {notes(rows, seeds)}"
    board = Section("", text, *scores(rows))
    return page("Ledger of claims", "", [board, _table("", "", entries(rows), ("paper",))])


def stated(study: Study, name: str, label: str, reading: str) -> dict[str, str]:
    """Return what of a row a study states: all but the verdict and our numbers."""
    claim, case = study.claims[name], study.cases[name, label, reading]
    rests = dict.fromkeys(a for run in case.runs for a in run.assumptions)
    return {
        "paper": study.key,
        "claim": name,
        "case": label,
        "reading": reading,
        "where": claim.where,
        "source": claim.source if study.printed else OURS,
        "says": line(claim.says),
        "printed": case.printed,
        "kind": case.check.kind,
        "rule": claim.rule or "",
        "reason": line(case.reason),
        "figure": claim.figure or "",
        "assumptions": ", ".join(rests),
        "seed": str(study.config["seed"]),
        "scale": study.config["scale"],
    }


def committed(study: Study, rows: Sequence[Row]) -> list[Row]:
    """Return the committed verdicts on a study's claims as those that are judged are shown."""
    places = ((row["claim"], row["case"], row["reading"]) for row in rows)
    return [
        {**row, **stated(study, *place), "ours": COMMITTED, "multiverse": "", "alone": ""}
        for row, place in zip(rows, places, strict=True)
        if row["paper"] == study.key and place in study.cases
    ]


def notes(rows: Sequence[Row], seeds: str) -> str:
    """Return what is said once of verdicts on a page; ``seeds``: if these were not varied."""
    printed = any(row["source"] != OURS for row in rows)
    known = any(row["ours"] == COMMITTED for row in rows)
    return " ".join(filter(None, [WORDS if printed else "", OF_COMMITTED if known else "", seeds]))


def where(row: Row) -> str:
    """Return where a claim stands, and what says so if it is not the print."""
    stated = row["source"] in ("print", OURS) or row["source"] in row["where"].lower()
    return row["where"] if stated else f"{row['where']} ({row['source']})"


def _of_claims(paper: Study, found: Sequence[Entry], seeds: str) -> Section:
    if not found:
        return Section("Claims", "None is stated yet.")
    smoke = SMOKE if paper.config["scale"] == "smoke" else ""
    text = f"{smoke} {notes([row for entry in found for row in entry.rows], seeds)}"
    without = () if paper.printed else ("reading",)
    return _table("Claims", text, found, without=without, names=paper.sections.names)


def _of_readings(paper: Study) -> Section:
    followed = dict.fromkeys(run.reading for run in paper.runs.values())
    meanings = [[reading, paper.readings[reading]] for reading in followed]
    if not paper.printed and list(followed) == ["published"]:
        return Section("", "")  # of a study of one's own nothing is printed
    return Section("Readings", "", ("reading", "meaning"), meanings)


def _of_notes(paper: Study, found: Sequence[Entry]) -> list[Section]:
    """Return what is noted of a paper, where there is anything."""
    verdicts: dict[str, list[str]] = {}
    for entry in found:
        row = entry.rows[0]
        verdicts.setdefault(row["claim"], []).append(f"{entry.verdict} ({row['reading']})")

    def section(
        heading: str, text: str, columns: Sequence[str], stated: Mapping[str, Any]
    ) -> list[Section]:
        cells = [[key, *(line(getattr(note, c)) for c in columns)] for key, note in stated.items()]
        for cell in cells:
            if columns[-1] == "checked_by" and cell[-1]:
                cell[-1] = f"{cell[-1]}: {', '.join(verdicts.get(cell[-1], ['not judged']))}"
        heads = ["id", *(column.replace("_", " ") for column in columns)]
        return [Section(heading, text, heads, cells)] if cells else []

    unstated = "Values the paper does not state."
    differs = "Where the released code differs from the text"
    return [
        *section("Assumptions", unstated, ("value", "reason"), paper.assumptions),
        *section("Where the text is inconsistent", "", ("where", "text"), paper.sections.errata),
        *section(differs, "", ("text", "code", "checked_by"), paper.sections.discrepancies),
    ]


def _table(
    heading: str,
    text: str,
    found: Sequence[Entry],
    first: Sequence[str] = (),
    without: Sequence[str] = (),
    names: Mapping[str, str] | None = None,
) -> Section:
    """Return a line for every claim and reading; the multiverse only where it has been run."""
    surveyed = any(row["multiverse"] for entry in found for row in entry.rows)
    columns = [*first, *(c for c in COLUMNS if c not in without), *["multiverse"] * surveyed]
    cells: dict[str, Callable[[Entry], str | Folded]] = {
        "where": lambda entry: where(entry.rows[0]),
        "reading": lambda entry: entry.reading,
        "says": _says,
        "ours": lambda entry: _ours(entry, names),
        "verdict": lambda entry: entry.verdict,
    }
    lines = [
        [cells[c](entry) if c in cells else _every(entry, c) for c in columns] for entry in found
    ]
    return Section(heading, text, columns, lines)


def _every(entry: Entry, column: str) -> str:
    """Return what the cases of a claim have in a column."""
    return "; ".join(dict.fromkeys(filter(None, (row[column] for row in entry.rows))))


def _says(entry: Entry) -> Folded:
    rests = dict.fromkeys(a for row in entry.rows for a in row["assumptions"].split(", ") if a)
    lines = [f"claim {entry.rows[0]['claim']}, a check of kind {_every(entry, 'kind')}"]
    lines += dict.fromkeys(row["reason"] for row in entry.rows)
    lines += [f"assumptions: {', '.join(rests)}"] if rests else []
    return Folded(entry.rows[0]["says"], "how it is judged", tuple(lines))


def _ours(entry: Entry, names: Mapping[str, str] | None) -> str | Folded:
    """Return the sentence of the case that decides, the others folded."""
    if len(entry.rows) == 1:
        return entry.rows[0]["ours"]
    lines = tuple(
        f"{words.case(row['case'], names)}: {row['verdict']}. {row['ours']}" for row in entry.rows
    )
    text = ". ".join(filter(None, [entry.counted(names), entry.decided(names)]))
    return Folded(text, f"{len(lines)} cases", lines)


def _link(paper: Study) -> Callable[[str], str]:
    """Return what links a figure or table from a page in the paper's folder of results."""

    def link(name: str) -> str:
        drawn = name in paper.sections.figures
        section, suffix = ("figures", "svg") if drawn else ("tables", "md")
        return f"[{markdown(name)}]({section}/{name}.{suffix})" if name else ""

    return link
