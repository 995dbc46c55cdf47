"""judge: from metrics to verdicts, paper by paper; and the ledger of all papers.

A paper's verdicts are one CSV table and one page; the ledger joins the papers' tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from concord import integrity
from concord.claims import multiverse, rules
from concord.claims import verdicts as judgements
from concord.claims.checks import quantities
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
from concord.claims.model import Case
from concord.claims.quantities import Missing
from concord.errors import ConcordError
from concord.integrity import Made
from concord.io import read_table, read_text, whole
from concord.make import at
from concord.make import made as made_from
from concord.provenance import code, commit, describe, digest, sha256
from concord.report import words
from concord.report.markup import markdown
from concord.report.pages import Folded, Section, markdown_page, page, render, template_digest
from concord.results import Measured
from concord.runs.run import Run
from concord.stages.draw import checked, metrics_digest
from concord.studies.paper import Paper


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


def made_alone(paper: Paper, results: Path) -> Made:
    """Return what a paper's verdicts are made from, but for the multiverse."""
    config = {key: paper.config[key] for key in ("scale", "seed")}
    return {
        "entry": digest({**paper.mapping, "config": config}),
        "code": code(__name__),
        "template": template_digest("page.html"),
        "rules": sha256(rules.PATH),
        "metrics": metrics_digest(paper.claim_runs(), results),
    }


def made(paper: Paper, results: Path) -> Made:
    """Return what a paper's verdicts are made from."""
    path = results / paper.key / "multiverse.csv"
    alone, (source, seal) = made_alone(paper, results), integrity.sealed(path)
    return {**alone, "multiverse": seal if alone.items() <= source.items() else ""}


def joined(tables: Sequence[Path]) -> Made:
    """Return what the ledger is made from."""
    seals = {str(path): integrity.sealed(path)[1] for path in tables}
    template = template_digest("page.html")
    return {"verdicts": digest(seals), "code": code(__name__), "template": template}


Find = Callable[[Run], Measured]


@dataclass(frozen=True)
class Judged:
    """A case of a claim in a reading, and the runs that it reads."""

    claim: str
    label: str
    reading: str
    case: Case
    check: Any
    sources: Mapping[int, Sequence[Run]]  # by the identity of its quantities

    @property
    def key(self) -> tuple[str, str, str]:
        """Return claim, case and reading."""
        return self.claim, self.label, self.reading

    @property
    def runs(self) -> list[Run]:
        """Return the runs of all quantities."""
        return [run for runs in self.sources.values() for run in runs]

    def judge(self, find: Find) -> judgements.Judgement:
        """Return the verdict on metrics that ``find`` returns, or says are missing."""
        return judgements.judge(
            self.check, lambda quantity: [find(run) for run in self.sources[id(quantity)]]
        )


def cases(paper: Paper) -> list[Judged]:
    """Return every case of every claim, in each of its readings."""
    found = []
    for name, claim in paper.claims.items():
        where = f"claims.{name}"
        for reading in dict.fromkeys(r for case in claim.cases.values() for r in case.readings):
            for label, case in claim.cases.items():
                if reading in case.readings:
                    check = case.checker(paper.at(where))
                    sources = {
                        id(quantity): paper.quantity_runs(quantity, reading, where)
                        for quantity in quantities(check)
                    }
                    found.append(Judged(name, label, reading, case, check, sources))
    return found


def finder(paper: Paper, results: Path) -> Find:
    """Return what finds the metrics of a paper's runs."""

    @cache
    def measured(folder: str) -> Measured:
        return checked(at(chosen[folder], results))

    chosen = {run.folder: run for run in paper.claim_runs()}

    def find(run: Run) -> Measured:
        if not at_hand(run, results):
            raise Missing(_why_not(run))
        return measured(run.folder)

    return find


def verdicts(paper: Paper, results: Path) -> list[Row]:
    """Return one row per claim, case and reading."""
    find = finder(paper, results)
    table = results / paper.key / "multiverse.csv"
    universes = multiverse.read_rows(table) if made(paper, results)["multiverse"] else []
    contradicted = multiverse.contradictions(universes, paper.config["seed"])
    robustness = multiverse.robustness(universes)
    rows: list[Row] = []
    for judged in cases(paper):
        claim, case = paper.claims[judged.claim], judged.case
        alone = judged.judge(find)
        found = judgements.over_seeds(alone, contradicted.get(judged.key))
        rests = dict.fromkeys(a for run in judged.runs for a in run.assumptions)
        over = robustness.get((judged.claim, judged.reading))
        rows.append(
            {
                "paper": paper.key,
                "claim": judged.claim,
                "case": judged.label,
                "reading": judged.reading,
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
                "multiverse": over.text if over else "",
                "alone": alone.verdict,
                "seed": str(paper.config["seed"]),
                "scale": paper.config["scale"],
            }
        )
    return rows


def at_hand(run: Run, results: Path) -> bool:
    """Whether a run has been made; one made from something else counts if it can be made again."""
    path = results / run.folder / "metrics.csv"
    makeable = not run.unavailable and not run.downloads
    wanted = made_from(run, Path("resources"))
    return path.exists() and (makeable or wanted.items() <= integrity.sealed(path)[0].items())


def _why_not(run: Run) -> str:
    """Say what a run that has no metrics lacks."""
    lacking = run.unavailable
    if lacking is None and run.downloads:
        names = ", ".join(run.downloads)
        lacking = f"it reads {names}, which `snakemake everything` downloads"
    return f"{run.folder} was not run" + (f": {lacking}" if lacking else "")


def sections(paper: Paper, rows: Sequence[Row]) -> list[Section]:
    """Return a paper's page: claims, readings, assumptions, errata and discrepancies."""
    text = SMOKE if paper.config["scale"] == "smoke" else ""
    columns = _columns(rows)
    found = [Section("Claims", text, columns, _claims(rows, columns), FILTERS)]
    if not rows:
        found = [Section("Claims", "None is stated yet.", (), [])]
    followed = {run.reading: None for run in paper.runs.values()}
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


def _columns(rows: Sequence[Row]) -> tuple[str, ...]:
    """Return the columns of a page; the multiverse only where it has been run."""
    return (*COLUMNS, "multiverse") if any(row["multiverse"] for row in rows) else COLUMNS


def _claims(rows: Sequence[Row], columns: Sequence[str]) -> list[list[str | Folded]]:
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
    text = re.sub(r"\bagent=(\d+)", lambda found: words.agent(found[1]), row["case"])
    return text.replace("+", ", ").replace("=", " ")


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
    columns = ("paper", *_columns(rows))
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
    """Write the report's front page: verdicts, which differ, how they were made, the ledger."""
    integrity.document(ledger_path)  # the page among what it seals
    rows = read_rows(ledger_path)
    columns, cells = scores(rows)
    made = {"results": str(results), **describe([])}
    drawn = (path for kind in ("figures", "tables") for path in results.glob(f"*/{kind}/*.json"))
    seeds = set(map(_seed, drawn))
    text = render(
        "front.html",
        smoke=SMOKE if is_smoke(rows) else "",
        columns=columns,
        scores=cells,
        compared=compare(rows, expected_path),
        made=made,
        seeds=sorted(seeds),
        times=run_times(results / "benchmarks"),
        ledger=read_text(page_path),
    )
    with whole(output) as path:
        path.write_text(text, encoding="utf-8")
    integrity.seal([output], front_made(ledger_path, expected_path))


def front_made(ledger_path: Path, expected_path: Path) -> Made:
    """Return what the report's front page is made from."""
    return {
        "ledger": integrity.sealed(ledger_path)[1],
        "expected": sha256(expected_path) if expected_path.exists() else "",
        "code": code(__name__),
        "template": template_digest("front.html"),
        "commit": digest(commit()),
    }


def _seed(provenance: Path) -> str:
    """Return the master seed that a figure's provenance states."""
    try:
        return str(integrity.document(provenance)["seed"])
    except KeyError as error:
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
