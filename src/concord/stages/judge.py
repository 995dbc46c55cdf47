"""judge: from metrics to verdicts, paper by paper; and the ledger of all papers.

A paper's verdicts are one CSV table and one page; the ledger joins the papers' tables.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from concord import integrity
from concord.claims import rules
from concord.claims import verdicts as judgements
from concord.claims.ledger import (
    FILTERS,
    INTERVALS,
    SMOKE,
    Entry,
    Row,
    as_csv,
    compare,
    entries,
    is_smoke,
    read_rows,
    scores,
)
from concord.claims.quantities import Missing, Quantity
from concord.errors import ConcordError
from concord.integrity import Made
from concord.io import read_table, read_text, whole
from concord.provenance import code, describe, digest, sha256
from concord.report.markup import markdown
from concord.report.pages import Folded, Section, markdown_page, page, render, template_digest
from concord.results import Measured
from concord.runs import data_sets, unavailable
from concord.stages.draw import checked, metrics_digest
from concord.stages.measure import made as measured_from
from concord.studies.paper import Paper, Run


def judge(paper: Paper, results: Path, outputs: Sequence[Path]) -> None:
    """Judge every claim of a paper, in each of its readings (.csv .md .html)."""
    rows = verdicts(paper, results)
    about = paper.mapping["paper"]
    text = f"{about['authors']} ({about['year']}). "
    text += f"{about['reference']}." if about.get("reference") else ""
    texts = {
        ".csv": as_csv(rows),
        ".md": markdown_page(about["title"], text, sections(paper, rows), _link(paper)),
        ".html": page(about["title"], text, sections(paper, rows)),
    }
    for output in outputs:
        with whole(output) as path:
            path.write_text(texts[output.suffix], encoding="utf-8")
    integrity.seal(outputs, made(paper, results))


def made(paper: Paper, results: Path) -> Made:
    """Return what a paper's verdicts are made from."""
    config = {key: paper.config[key] for key in ("scale", "seed")}
    return {
        "entry": digest({**paper.mapping, "config": config}),
        "code": code(__name__),
        "template": template_digest("page.html"),
        "rules": sha256(rules.PATH),
        "metrics": metrics_digest(paper.claim_runs(), results),
    }


def joined(tables: Sequence[Path]) -> Made:
    """Return what the ledger is made from."""
    seals = {str(path): integrity.sealed(path)[1] for path in tables}
    template = template_digest("page.html")
    return {"verdicts": digest(seals), "code": code(__name__), "template": template}


def verdicts(paper: Paper, results: Path) -> list[Row]:
    """Return one row per claim, case and reading."""
    chosen = {run.folder: run for run in paper.claim_runs()}

    @cache
    def measured(folder: str) -> Measured:
        return checked(chosen[folder], results)

    def source(quantity: Quantity, reading: str) -> list[Measured]:
        runs = paper.quantity_runs(quantity, reading, "claims")
        for run in runs:
            if not at_hand(run, results):
                raise Missing(_why_not(run))
        return [measured(run.folder) for run in runs]

    rows: list[Row] = []
    for name, claim in paper.claims.items():
        where = f"claims.{name}"
        for reading in dict.fromkeys(r for case in claim.cases.values() for r in case.readings):
            for label, case in claim.cases.items():
                if reading not in case.readings:
                    continue
                check = case.checker(paper.at(where))
                alone = judgements.judge(check, partial(source, reading=reading))
                found = judgements.over_seeds(alone, (case.seeds or {}).get(reading))
                runs = paper.case_runs(case, reading, where)
                rests = dict.fromkeys(a for run in runs for a in run.mapping["assumptions"])
                rows.append(
                    {
                        "paper": paper.key,
                        "claim": name,
                        "case": label,
                        "reading": reading,
                        "verdict": found.verdict,
                        "where": claim.where,
                        "says": _cell(claim.says),
                        "printed": case.printed,
                        "ours": found.ours,
                        "kind": case.kind,
                        "rule": claim.rule or "",
                        "reason": _cell(case.reason),
                        "figure": claim.figure or "",
                        "assumptions": ", ".join(rests),
                        "alone": alone.verdict,
                        "seed": str(paper.config["seed"]),
                        "scale": paper.config["scale"],
                    }
                )
    return rows


def at_hand(run: Run, results: Path) -> bool:
    """Whether a run has been made; one made from something else counts if it can be made again."""
    path = results / run.folder / "metrics.csv"
    makeable = not unavailable(run.mapping) and not data_sets(run.mapping)
    wanted = measured_from(run.mapping, Path("resources"))
    return path.exists() and (makeable or wanted.items() <= integrity.sealed(path)[0].items())


def _why_not(run: Run) -> str:
    """Say what a run that has no metrics lacks."""
    lacking = unavailable(run.mapping)
    if lacking is None and data_sets(run.mapping):
        names = ", ".join(data_sets(run.mapping))
        lacking = f"it reads {names}, which `snakemake everything` downloads"
    return f"{run.folder} was not run" + (f": {lacking}" if lacking else "")


def sections(paper: Paper, rows: Sequence[Row]) -> list[Section]:
    """Return a paper's page: claims, readings, assumptions, errata and discrepancies."""
    seeds = paper.mapping.get("seeds")
    compared = f"Verdicts were compared for {_cell(seeds)}." if seeds else ""
    text = SMOKE if paper.config["scale"] == "smoke" else compared
    found = [Section("Claims", text, COLUMNS, _claims(rows), FILTERS)]
    if not rows:
        found = [Section("Claims", "None is stated yet.", (), [])]
    followed = {run.mapping["reading"]: None for run in paper.runs.values()}
    meanings = [[reading, _cell(paper.readings[reading])] for reading in followed]
    found.append(Section("Readings", "", ("reading", "meaning"), meanings))
    verdict: dict[str, list[str]] = {}
    for judged in entries(rows):
        row = judged.rows[0]
        verdict.setdefault(row["claim"], []).append(f"{judged.verdict} ({row['reading']})")
    for name, heading, text, columns in (
        (
            *("assumptions", "Assumptions", "Values the paper does not state."),
            ("value", "reason"),
        ),
        ("errata", "Where the text is inconsistent", "", ("where", "text")),
        (
            *("discrepancies", "Where the released code differs from the text", ""),
            ("text", "code", "checked_by"),
        ),
    ):
        stated = paper.assumptions if name == "assumptions" else paper.mapping.get(name, {})
        cells = [
            [key, *(_cell(entry.get(c, "")) for c in columns)] for key, entry in stated.items()
        ]
        for line in cells:
            if columns[-1] == "checked_by" and line[-1]:
                line[-1] = f"{line[-1]}: {', '.join(verdict.get(line[-1], ['not judged']))}"
        if cells:
            heads = ["id", *(column.replace("_", " ") for column in columns)]
            found.append(Section(heading, text, heads, cells))
    if "released_code" in paper.mapping:
        found.append(Section("Released code", _cell(paper.mapping["released_code"]), (), []))
    return found


COLUMNS = ("where", "says", "printed", "reading", "verdict", "ours", "figure")


def _claims(rows: Sequence[Row], columns: Sequence[str] = COLUMNS) -> list[list[str | Folded]]:
    """Return a line for every claim and reading; what is behind a verdict is folded."""
    return [
        [
            _says(entry) if c == "says" else _ours(entry) if c == "ours" else _plain(entry, c)
            for c in columns
        ]
        for entry in entries(rows)
    ]


def _plain(entry: Entry, column: str) -> str:
    if column == "verdict":
        return entry.verdict
    return "; ".join(dict.fromkeys(filter(None, (row[column] for row in entry.rows))))


def _says(entry: Entry) -> Folded:
    rests = dict.fromkeys(a for row in entry.rows for a in row["assumptions"].split(", ") if a)
    lines = [f"claim {entry.rows[0]['claim']}, a check of kind {_plain(entry, 'kind')}"]
    lines += dict.fromkeys(row["reason"] for row in entry.rows)
    lines += [f"assumptions: {', '.join(rests)}"] if rests else []
    return Folded(entry.rows[0]["says"], "how it is judged", tuple(lines))


def _ours(entry: Entry) -> str | Folded:
    """Return the sentence of the case that decides, the others folded."""
    if len(entry.rows) == 1:
        return entry.rows[0]["ours"]
    lines = tuple(f"{_case(row)}: {row['verdict']}. {row['ours']}" for row in entry.rows)
    first = next(row for row in entry.rows if row["verdict"] == entry.verdict)
    many = f"{entry.counted}; " if entry.counted else ""
    return Folded(f"{many}{_case(first)}: {first['ours']}", f"{len(lines)} cases", lines)


def _case(row: Row) -> str:
    return row["case"].replace("+", ", ").replace("=", " ")


def _link(paper: Paper) -> Callable[[str], str]:
    """Return what links a figure or table from a page in the paper's folder of results."""

    def link(name: str) -> str:
        drawn = name in paper.mapping.get("figures", {})
        section, suffix = ("figures", "svg") if drawn else ("tables", "md")
        return f"[{markdown(name)}]({section}/{name}.{suffix})" if name else ""

    return link


def _cell(text: Any) -> str:
    return " ".join(str(text).split())


def ledger(tables: Sequence[Path], outputs: Sequence[Path]) -> None:
    """Join the papers' verdicts into the ledger (.csv .md .html)."""
    rows = [row for table in tables for row in read_rows(table)]
    text = SMOKE if is_smoke(rows) else ""
    columns = ("paper", *COLUMNS)
    section = Section("", "", columns, _claims(rows, columns), ("paper", *FILTERS))
    board = Section("", text, *scores(rows))
    texts = {
        ".csv": as_csv(rows),
        ".md": markdown_page("Ledger of claims", "", [board, section]),
        ".html": page("Ledger of claims", f"{text} {INTERVALS}", [section]),
    }
    for output in outputs:
        with whole(output) as path:
            path.write_text(texts[output.suffix], encoding="utf-8")
    integrity.seal(outputs, joined(tables))


def front(
    ledger_path: Path, page_path: Path, results: Path, expected_path: Path, output: Path
) -> None:
    """Write the report's front page: verdicts, which changed, how they were made, the ledger."""
    rows = read_rows(ledger_path)
    columns, cells = scores(rows)
    made = {"results": str(results), **describe([])}
    seeds = {_seed(path) for path in results.glob("*/*/*.json")}
    text = render(
        "front.html",
        smoke=SMOKE if is_smoke(rows) else "",
        columns=columns,
        scores=cells,
        changes=compare(ledger_path, expected_path, strict=False) if expected_path.exists() else [],
        made=made,
        seeds=sorted(seeds),
        times=run_times(results / "benchmarks"),
        ledger=read_text(page_path),
    )
    with whole(output) as path:
        path.write_text(text, encoding="utf-8")


def _seed(provenance: Path) -> str:
    """Return the master seed that a figure's provenance states."""
    try:
        return str(json.loads(read_text(provenance))["seed"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ConcordError(
            f"{provenance}: it does not state the seed; delete the file to have it made again"
        ) from error


def run_times(benchmarks: Path) -> list[tuple[str, int, float]]:
    """Return, per paper, the number of jobs on record and the seconds they took together."""
    totals: dict[str, tuple[int, float]] = {}
    for path in sorted(benchmarks.glob("*/**/*.tsv")):
        rows = read_table(path, ("s",), delimiter="\t")
        try:
            seconds = [float(row["s"]) for row in rows]
        except ValueError as error:
            raise ConcordError(f"{path}: s: {error}; delete the file") from error
        paper = path.relative_to(benchmarks).parts[0]
        jobs, total = totals.get(paper, (0, 0.0))
        totals[paper] = (jobs + len(seconds), total + sum(seconds))
    return [(paper, *total) for paper, total in totals.items()]
