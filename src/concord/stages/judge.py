"""judge: from metrics to verdicts, paper by paper; and the ledger of all papers.

A paper's verdicts are one CSV table and one page; the ledger joins the papers' tables.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from concord import claims
from concord.errors import ConcordError
from concord.experiment import Paper
from concord.figures.data import Measured, read
from concord.files import dump_yaml, load_yaml, whole

COLUMNS = (
    *("paper", "claim", "reading", "verdict", "where", "says"),
    *("printed", "ours", "kind", "reason", "figure"),
)

TEMPLATES = Path(__file__).parents[3] / "workflow" / "report"

Row = Mapping[str, str]


def judge(paper: Paper, results: Path, table: Path, page: Path) -> None:
    """Judge every claim of a paper, in each of its readings."""
    rows = verdicts(paper, results)
    with whole(table) as path:
        path.write_text(_csv(rows), encoding="utf-8")
    with whole(page) as path:
        path.write_text(_page(paper, rows), encoding="utf-8")


def verdicts(paper: Paper, results: Path) -> list[Row]:
    """Return one row per claim and reading."""

    @cache
    def measured(folder: str) -> Measured:
        return read(results / folder / "run.yaml", results / folder / "metrics.csv")

    rows = []
    for name, claim in paper.claims.items():
        check = claim.checker(f"{paper.path}: claims.{name}")
        for reading in claim.readings:

            def source(quantity: claims.Quantity, reading: str = reading) -> list[Measured]:
                folders = [r.folder for r in paper.quantity_runs(quantity, reading, name)]
                absent = [f for f in folders if not (results / f / "metrics.csv").exists()]
                if absent:
                    raise claims.Missing(f"{absent[0]} was not run")
                return [measured(folder) for folder in folders]

            found = claims.judge(check, source)
            rows.append(
                {
                    "paper": paper.key,
                    "claim": name,
                    "reading": reading,
                    "verdict": found.verdict,
                    "where": claim.where,
                    "says": " ".join(claim.says.split()),
                    "printed": _printed(check),
                    "ours": found.ours,
                    "kind": claim.kind,
                    "reason": " ".join(claim.reason.split()),
                    "figure": claim.figure or "",
                }
            )
    return rows


def _printed(check: Any) -> str:
    printed = getattr(check, "printed", None)
    return "" if printed is None else f"{printed:g} +- {check.tolerance:g}"


def _csv(rows: Sequence[Row]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def read_rows(path: Path) -> list[Row]:
    """Read a table of verdicts."""
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _page(paper: Paper, rows: Sequence[Row]) -> str:
    """Return a paper's page: claims with printed and our numbers, assumptions, errata."""
    about = paper.mapping["paper"]
    lines = [f"# {about['title']}", "", f"{about['authors']} ({about['year']}).", ""]
    if about.get("reference"):
        lines += [f"{about['reference']}.", ""]
    lines += ["## Claims", "", *_markdown(rows, COLUMNS[1:]), ""]
    lines += ["## Assumptions", "", "Values the paper does not state.", ""]
    lines += ["| id | value | reason |", "| --- | --- | --- |"]
    for name, assumption in paper.assumptions.items():
        lines.append(f"| {name} | {_cell(assumption['value'])} | {_cell(assumption['reason'])} |")
    errata = paper.mapping.get("errata", {})
    if errata:
        lines += ["", "## Where the text is inconsistent", ""]
        lines += ["| id | where | what, and what Concord uses |", "| --- | --- | --- |"]
        for name, entry in errata.items():
            lines.append(f"| {name} | {_cell(entry['where'])} | {_cell(entry['text'])} |")
    discrepancies = paper.mapping.get("discrepancies", {})
    if discrepancies:
        lines += ["", "## Where the released code differs from the text", ""]
        lines += ["| id | text | code |", "| --- | --- | --- |"]
        for name, entry in discrepancies.items():
            lines.append(f"| {name} | {_cell(entry['text'])} | {_cell(entry['code'])} |")
    return "\n".join(lines) + "\n"


def _markdown(rows: Sequence[Row], columns: Sequence[str]) -> list[str]:
    lines = ["| " + " | ".join(columns) + " |", "| " + " | ".join(["---"] * len(columns)) + " |"]
    lines += ["| " + " | ".join(_cell(row[c]) for c in columns) + " |" for row in rows]
    return lines


def _cell(text: str) -> str:
    return " ".join(str(text).split()).replace("|", r"\|")


def ledger(tables: Sequence[Path], csv_path: Path, md_path: Path, html_path: Path) -> None:
    """Join the papers' verdicts into the ledger: CSV, Markdown, and a page to sort and filter."""
    rows = [row for table in tables for row in read_rows(table)]
    text = ["# Ledger of claims", "", *scoreboard(rows), "", *_markdown(rows, COLUMNS), ""]
    with whole(csv_path) as path:
        path.write_text(_csv(rows), encoding="utf-8")
    with whole(md_path) as path:
        path.write_text("\n".join(text), encoding="utf-8")
    with whole(html_path) as path:
        path.write_text(_html(rows), encoding="utf-8")


def scoreboard(rows: Sequence[Row]) -> list[str]:
    """Return the number of verdicts of each kind, per paper and reading, as a Markdown table."""
    columns = ("paper", "reading", *claims.VERDICTS)
    lines = ["| " + " | ".join(columns) + " |", "| " + " | ".join(["---"] * len(columns)) + " |"]
    groups: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        groups.setdefault((row["paper"], row["reading"]), []).append(row["verdict"])
    for (paper, reading), found in sorted(groups.items()):
        counts = [str(found.count(verdict)) for verdict in claims.VERDICTS]
        lines.append("| " + " | ".join([f"`{paper}`", reading, *counts]) + " |")
    return lines


def expected_rows(path: Path) -> list[Row]:
    """Return the committed verdicts, ``paper: claim: reading: verdict``, as rows."""
    rows = []
    for paper, found in (load_yaml(path) or {}).items():
        for claim, readings in found.items():
            for reading, verdict in readings.items():
                where = f"{path}: {paper}.{claim}.{reading}"
                verdict = claims.known(verdict, where)
                rows.append(
                    {"paper": paper, "claim": claim, "reading": reading, "verdict": verdict}
                )
    return rows


def changes(rows: Sequence[Row], expected: Sequence[Row]) -> list[str]:
    """Return one sentence for every verdict that differs from the committed one."""
    before = {(r["paper"], r["claim"], r["reading"]): r["verdict"] for r in expected}
    after = {(r["paper"], r["claim"], r["reading"]): r["verdict"] for r in rows}
    texts = []
    for key in sorted({*before, *after}):
        was, now = before.get(key, "not committed"), after.get(key, "no longer a claim")
        if was != now:
            texts.append(f"{' '.join(key)}: {was} -> {now}")
    return texts


def compare(ledger_path: Path, expected_path: Path, strict: bool) -> list[str]:
    """Return the changes against the committed verdicts.

    Raises
    ------
    ConcordError
        If there are any and ``strict`` asks for none.
    """
    found = changes(read_rows(ledger_path), expected_rows(expected_path))
    if found and strict:
        raise ConcordError(
            f"{len(found)} verdicts differ from {expected_path} ({'; '.join(found)}); "
            "find out why, or commit the new verdicts with: concord expect"
        )
    return found


def expect(ledger_path: Path, expected_path: Path, readme: Path) -> None:
    """Make a ledger's verdicts the committed ones, and renew the README's scoreboard."""
    rows = read_rows(ledger_path)
    nested: dict[str, dict[str, dict[str, str]]] = {}
    for row in rows:
        readings = nested.setdefault(row["paper"], {}).setdefault(row["claim"], {})
        readings[row["reading"]] = row["verdict"]
    head = "# Verdicts at paper scale, seed 1; written by `concord expect results/claims.csv`.\n"
    with whole(expected_path) as path:
        path.write_text(head + dump_yaml(nested), encoding="utf-8")
    text = with_scoreboard(readme.read_text(encoding="utf-8"), expected_rows(expected_path))
    with whole(readme) as path:
        path.write_text(text, encoding="utf-8")


def with_scoreboard(text: str, rows: Sequence[Row]) -> str:
    """Return the README's text with the scoreboard of these verdicts between its two marks."""
    start, end = "<!-- scoreboard -->", "<!-- end of scoreboard -->"
    if start not in text or end not in text:
        raise ConcordError(f"the README has no place for the scoreboard; add {start} and {end}")
    before, rest = text.split(start, 1)
    after = rest.split(end, 1)[1]
    return "\n".join([before + start, "", *scoreboard(rows), "", end + after])


def _html(rows: Sequence[Row]) -> str:
    """Return the ledger as one self-contained page."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True
    )
    template = environment.get_template("ledger.html")
    counts = {v: sum(row["verdict"] == v for row in rows) for v in claims.VERDICTS}
    return template.render(columns=COLUMNS, rows=rows, counts=counts)
