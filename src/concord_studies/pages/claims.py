"""The pages of claims as Markdown: of a paper, and of all papers (the ledger).

Findings are half a page (``findings``). Below, a sentence is a row of a table, a reading a column.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

from concord_studies import words
from concord_studies.claims.checks import Value
from concord_studies.claims.claim import Claim
from concord_studies.claims.ledger import (
    ALL_COMMITTED,
    COMMITTED,
    OF_COMMITTED,
    OUR_SENTENCE,
    OURS,
    RATIOS,
    SMOKE,
    WORDS,
    ReadingVerdict,
    Row,
    is_smoke,
    scores,
    unmark_committed,
)
from concord_studies.claims.texts import fill_in, fill_in_settings
from concord_studies.claims.verdicts import NOT_RUN, part_of
from concord_studies.configuration.study import Study
from concord_studies.markup import line, markdown
from concord_studies.pages.findings import Sentence, group_by_sentence, half_page
from concord_studies.pages.markdown import Folded, Section, page


def claims_page(
    paper: Study,
    rows: Sequence[Row],
    seeds: str = "",
    shown: Sequence[Section] = (),
    link: Callable[[str], str] | None = None,
) -> str:
    """Return a paper's page in Markdown: findings, claims, assumptions, errata, discrepancies.

    rows: of the table of verdicts.
    seeds: the sentence that follows the verdicts where master seeds were not varied.
    shown: parts with figures and tables, which come first.
    link: what writes the name of a claim's figure; none: as a link to its file.
    """
    about = paper.about
    text = ", ".join(filter(None, [f"{about.authors} ({about.year})", about.reference])) + "."
    text += f" What was read: {line(about.read)}" if about.read else ""
    text += f" {line(about.images)}" if about.images else ""
    findings, *table = _describe_claims(paper, rows, seeds)
    parts = [*shown, findings, *table, *_list_notes(paper, rows)]
    if paper.sections.released_code:
        parts.append(Section("Released code", paper.sections.released_code))
    return page(about.title, text, parts, link or _link(paper))


def ledger_page(rows: Sequence[Row], seeds: str = "") -> str:
    """Return the page of all papers: how many verdicts of each kind, and each paper's findings.

    seeds: as of ``claims_page``.
    """
    text = " ".join(filter(None, [SMOKE if is_smoke(rows) else "", describe_verdicts(rows, seeds)]))
    columns, cells = scores(rows)
    parts = [Section("", text, columns, cells)]
    for paper in dict.fromkeys(row["paper"] for row in rows):
        findings = half_page([row for row in rows if row["paper"] == paper])
        everything = f"[All sentences, and how they are judged]({paper}/claims.md)"
        parts.append(Section(paper, "", lines=[*findings, everything, ""]))
    return page("Ledger of claims", "", parts)


def state_row(study: Study, name: str, label: str, reading: str) -> dict[str, str]:
    """Return the columns of a verdict's row that the study states: not the verdict and numbers.

    name, label, reading: of the claim, its case, and the reading.
    """
    claim, case = study.claims[name], study.cases[name, label, reading]
    rests = dict.fromkeys(a for run in case.runs for a in run.assumptions)
    is_limit = isinstance(case.check, Value) and case.check.at_most
    return {
        "paper": study.key,
        "claim": name,
        "case": label,
        "reading": reading,
        "where": claim.where,
        "source": OURS if not study.printed else OUR_SENTENCE if claim.ours else claim.source,
        "says": line(claim.says),
        "printed": "" if claim.ours and is_limit else case.printed,  # a limit of ours
        "kind": case.check.kind,
        "rule": claim.rule or "",
        "reason": line(case.reason),
        "figure": claim.figure or "",
        "assumptions": ", ".join(rests),
        "seed": str(study.config["seed"]),
        "scale": study.config["scale"],
    }


def committed_rows(study: Study, rows: Sequence[Row]) -> list[Row]:
    """Return rows of the verdicts that the study's folder states, in the form of judged ones."""
    places = ((row["claim"], row["case"], row["reading"]) for row in rows)
    return [
        {
            **row,
            **state_row(study, *place),
            "because": state_reason(study.claims[place[0]], row["verdict"]),
            "ours": COMMITTED,
            "multiverse": "",
            "alone": "",
        }
        for row, place in zip(rows, places, strict=True)
        if row["paper"] == study.key and place in study.cases
    ]


def state_reason(
    claim: Claim, verdict: str, find: Callable[[str], str | None] = lambda name: None
) -> str:
    """Return the reason for a claim's verdict as text; "" if there is none, or it was not run.

    find: returns the number of a placeholder, None if there is none.
    """
    part = "" if verdict == NOT_RUN else part_of(verdict)
    return fill_in(getattr(claim.because, part, ""), find)


def describe_verdicts(rows: Sequence[Row], seeds: str) -> str:
    """Return a page's notes on its verdicts. seeds: a sentence if these were not varied."""
    printed = any(row["source"] != OURS for row in rows)
    committed = {row["ours"] == COMMITTED for row in rows}
    stated = (ALL_COMMITTED if all(committed) else OF_COMMITTED) if any(committed) else ""
    of_ratios = any("ratio:" in row["number"] for row in rows)
    texts = [WORDS * printed, RATIOS * of_ratios, stated, seeds]
    return " ".join(filter(None, texts))


def anchor(row: Row) -> str:
    """Return the anchor of a row's claim on the page of its paper."""
    return f"claim-{row['claim']}"


def name_source(row: Row) -> str:
    """Name the place where a paper makes a claim, such as "Abstract", or "Abstract (recorded)".

    The source is in brackets unless it is the print or named already.
    """
    stated = row["source"] in ("print", OURS) or row["source"] in row["where"].lower()
    return row["where"] if stated else f"{row['where']} ({row['source']})"


def _describe_claims(paper: Study, rows: Sequence[Row], seeds: str) -> list[Section]:
    """Return the page's sections of findings, and of all sentences with their verdicts."""
    if not rows:
        count = len(paper.claims)
        text = f"{count} are stated; none has been judged." if count else "None is stated yet."
        return [Section("Claims", text)]
    names = paper.sections.names
    text = " ".join(filter(None, [SMOKE if is_smoke(rows) else "", describe_verdicts(rows, seeds)]))
    rows = unmark_committed(rows)
    readings = {row["reading"] for row in rows}
    # One that all verdicts are in is named once, above them.
    named = [{**row, "reading": ""} for row in rows] if len(readings) == 1 else rows
    findings = [*_name_readings(paper, readings), *half_page(named, names)]
    return [Section("Findings", text, lines=findings), _list_sentences(rows, names)]


def _name_readings(paper: Study, judged: Collection[str]) -> list[str]:
    """Return Markdown lines on the readings of a paper's runs, and their meanings.

    judged: the readings that verdicts are in.
    """
    followed = dict.fromkeys(run.reading for run in paper.runs.values())
    if not paper.printed and list(followed) == ["published"]:
        return []  # of a study of one's own nothing is printed
    lines = [f"- *{markdown(name)}*: {markdown(line(paper.readings[name]))}" for name in followed]
    alone = "".join(judged) if len(judged) == 1 else ""
    where = (
        f"All verdicts are in the reading {alone}" if alone else "Verdicts have them in brackets"
    )
    return [f"Readings. {markdown(where)}.", "", *lines, ""]


def _list_notes(paper: Study, rows: Sequence[Row]) -> list[Section]:
    """Return the sections of a paper's notes: assumptions, errata, and what code does otherwise."""
    verdicts = {
        sentence.first_row["claim"]: sentence.verdict for sentence in group_by_sentence(rows)
    }
    resting = {
        name: [run.document for run in paper.runs.values() if name in run.assumptions]
        for name in paper.assumptions
    }
    sections = []
    for heading, text, columns, stated in (
        (
            "Assumptions",
            "Values the paper does not state.",
            ("value", "reason"),
            paper.assumptions,
        ),
        ("Where the text is inconsistent", "", ("where", "text"), paper.sections.errata),
        (
            "Where the released code differs from the text",
            "",
            ("text", "code", "checked_by"),
            paper.sections.discrepancies,
        ),
    ):
        cells = [[key, *(line(getattr(note, c)) for c in columns)] for key, note in stated.items()]
        if stated is paper.assumptions:
            cells = [
                [key, *(fill_in_settings(text, resting[key]) for text in texts)]
                for key, *texts in cells
            ]
        for cell in cells:
            if columns[-1] == "checked_by" and cell[-1]:
                cell[-1] = f"{cell[-1]}: {verdicts.get(cell[-1], 'not judged')}"
        heads = ["id", *(column.replace("_", " ") for column in columns)]
        sections += [Section(heading, text, heads, cells)] if cells else []
    return sections


def _list_sentences(rows: Sequence[Row], names: Mapping[str, str] | None) -> Section:
    """Return the section with a row for every sentence of the paper, a column for every reading.

    What was compared, the cases and the numbers are folded.
    """
    judged = group_by_sentence(rows)
    readings = list(dict.fromkeys(entry.reading for one in judged for entry in one.entries))
    heads = [reading or "verdict" for reading in readings]
    printed = any(row["printed"] for row in rows)
    shown = any(row["figure"] for row in rows)
    columns = ["where", "says", *["printed"] * printed, *heads, *["figure"] * shown]
    cells: list[list[str | Folded]] = []
    for sentence in judged:
        entries = {entry.reading: entry for entry in sentence.entries}
        cells.append(
            [
                name_source(sentence.first_row),
                _fold_rule(sentence),
                *[sentence.join("printed")] * printed,
                *(_fold_verdict(entries.get(reading), names) for reading in readings),
                *[sentence.join("figure")] * shown,
            ]
        )
    return Section("All sentences", "", columns, cells)


def _fold_rule(sentence: Sentence) -> Folded:
    """Return a sentence, with the rule by which it is judged in a fold."""
    names = sentence.join("assumptions").replace(";", ",").split(", ")
    assumptions = ", ".join(dict.fromkeys(filter(None, names)))
    lines = [f"claim {sentence.first_row['claim']}, a check of kind {sentence.join('kind')}"]
    lines += [sentence.join("reason"), *[f"assumptions: {assumptions}"] * bool(assumptions)]
    row = sentence.first_row
    return Folded(row["says"], "how it is judged", tuple(lines), anchor(row))


def _fold_verdict(entry: ReadingVerdict | None, names: Mapping[str, str] | None) -> str | Folded:
    """Return a verdict in one reading, with its numbers in a fold. "" where it is not judged."""
    if entry is None:
        return ""
    lines, summary = [row["ours"] for row in entry.rows], "numbers"
    if len(entry.rows) > 1:
        cases = [f"{words.case(row['case'], names)}: {row['verdict']}" for row in entry.rows]
        lines = [f"{case}. {ours}" for case, ours in zip(cases, lines, strict=True)]
        summary = f"{len(cases)} cases"
    lines += filter(None, dict.fromkeys(row["multiverse"] for row in entry.rows))
    text = "; ".join(filter(None, [entry.label, entry.count_cases(names)]))
    return Folded(text, summary, tuple(lines))


def _link(paper: Study) -> Callable[[str], str]:
    """Return a function that writes a figure's or table's name as a link from the paper's page."""

    def link(name: str) -> str:
        """Return the name of a figure or table as a link."""
        drawn = name in paper.sections.figures
        section, suffix = ("figures", "svg") if drawn else ("tables", "md")
        return f"[{markdown(name)}]({section}/{name}.{suffix})" if name else ""

    return link
