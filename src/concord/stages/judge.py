"""judge: from metrics to verdicts, paper by paper; and the ledger of all papers.

A paper's verdicts are one CSV table and one page; the ledger joins the papers' tables.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from concord import claims, integrity
from concord.assemble import data_sets, unavailable
from concord.errors import ConcordError, short
from concord.experiment import Paper, Run
from concord.figures.data import Measured
from concord.files import dump_yaml, whole
from concord.integrity import Made
from concord.pages import Section, page, render, template_digest
from concord.provenance import code, describe, digest
from concord.reading import load_yaml, read_table, read_text
from concord.stages.draw import checked, metrics_digest
from concord.stages.measure import made as measured_from
from concord.text import markdown, table, uncell

COLUMNS = (
    *("paper", "claim", "reading", "verdict", "where", "says", "printed", "ours"),
    *("kind", "reason", "figure", "assumptions"),
    *("alone", "seed", "scale"),
)
SHOWN = COLUMNS[:-3]  # alone is the verdict with this seed alone
FILTERS = ("reading", "verdict")
SMOKE = "Smoke scale: few chains and iterations, so the verdicts mean nothing."

INTERVALS = (
    "Every number has an interval unless no chance enters it; verdicts follow from the intervals, "
    "which hold together at 95 %. Chance is that of the samplers, for the data that the seed drew."
)

Row = Mapping[str, str]


def judge(paper: Paper, results: Path, outputs: Sequence[Path]) -> None:
    """Judge every claim of a paper, in each of its readings (.csv .md .html)."""
    rows = verdicts(paper, results)
    about = paper.mapping["paper"]
    text = f"{about['authors']} ({about['year']}). "
    text += f"{about['reference']}." if about.get("reference") else ""
    texts = {
        ".csv": _csv(rows),
        ".md": _markdown(about["title"], text, sections(paper, rows), _link(paper)),
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
        "metrics": metrics_digest(paper.claim_runs(), results),
    }


def joined(tables: Sequence[Path]) -> Made:
    """Return what the ledger is made from."""
    seals = {str(path): integrity.sealed(path)[1].get(path.name) for path in tables}
    template = template_digest("page.html")
    return {"verdicts": digest(seals), "code": code(__name__), "template": template}


def verdicts(paper: Paper, results: Path) -> list[Row]:
    """Return one row per claim and reading."""
    rows: list[Row] = []

    @cache
    def measured(folder: str) -> Measured:
        return checked(chosen[folder], results)

    chosen = {run.folder: run for run in paper.claim_runs()}

    for name, claim in paper.claims.items():
        check = claim.checker(f"{paper.path}: claims.{name}")
        for reading in claim.readings:
            runs: dict[str, Run] = {}
            for quantity in claims.quantities(check):
                found = paper.quantity_runs(quantity, reading, f"claims.{name}")
                runs.update((run.folder, run) for run in found)

            def source(quantity: claims.Quantity, reading: str = reading) -> list[Measured]:
                runs = paper.quantity_runs(quantity, reading, f"claims.{name}")  # noqa: B023
                for run in runs:
                    if not at_hand(run, results):
                        raise claims.Missing(_why_not(run))
                return [measured(run.folder) for run in runs]

            alone = claims.judge(check, source)
            judgement = claims.over_seeds(alone, (claim.seeds or {}).get(reading))
            rests = {a: None for run in runs.values() for a in run.mapping["assumptions"]}
            rows.append(
                {
                    "paper": paper.key,
                    "claim": name,
                    "reading": reading,
                    "verdict": judgement.verdict,
                    "where": claim.where,
                    "says": " ".join(claim.says.split()),
                    "printed": _printed(check),
                    "ours": judgement.ours,
                    "kind": claim.kind,
                    "reason": " ".join(claim.reason.split()),
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


def _printed(check: Any) -> str:
    printed = getattr(check, "printed", None)
    return "" if printed is None else f"{printed:g} +- {check.tolerance:g}"


def sections(paper: Paper, rows: Sequence[Row]) -> list[Section]:
    """Return a paper's page: claims, assumptions, errata and discrepancies."""
    seeds = paper.mapping.get("seeds")
    compared = f"Verdicts were compared for {_cell(seeds)}." if seeds else ""
    found = [
        Section(
            "Claims",
            SMOKE if paper.config["scale"] == "smoke" else compared,
            SHOWN[1:],
            [[row[column] for column in SHOWN[1:]] for row in rows],
            FILTERS,
        )
    ]
    if not rows:
        found = [Section("Claims", "None is stated yet.", (), [])]
    verdict: dict[str, str] = {}
    for row in rows:
        before = f"{verdict[row['claim']]}, " if row["claim"] in verdict else ""
        verdict[row["claim"]] = f"{before}{row['verdict']} ({row['reading']})"
    for name, heading, text, columns in (
        (
            *("assumptions", "Assumptions", "Values the paper does not state."),
            ("value", "reason", "sensitivity"),
        ),
        ("errata", "Where the text is inconsistent", "", ("where", "text")),
        (
            *("discrepancies", "Where the released code differs from the text", ""),
            ("text", "code", "checked_by"),
        ),
    ):
        entries = paper.mapping.get(name, {})
        cells = [
            [key, *(_cell(entry.get(c, "")) for c in columns)] for key, entry in entries.items()
        ]
        for line in cells:
            if columns[-1] == "checked_by" and line[-1]:
                line[-1] = f"{line[-1]}: {verdict.get(line[-1], claims.NOT_RUN)}"
        if cells:
            heads = ["id", *(column.replace("_", " ") for column in columns)]
            found.append(Section(heading, text, heads, cells))
    return found


def _link(paper: Paper) -> Callable[[str], str]:
    """Return what links a figure or table from a page in the paper's folder of results."""

    def link(name: str) -> str:
        drawn = name in paper.mapping.get("figures", {})
        section, suffix = ("figures", "svg") if drawn else ("tables", "md")
        return f"[{markdown(name)}]({section}/{name}.{suffix})" if name else ""

    return link


def _cell(text: Any) -> str:
    return " ".join(str(text).split())


def _markdown(
    title: str,
    text: str,
    parts: Iterable[Section],
    figure: Callable[[str], str] = markdown,
) -> str:
    """Return a page as Markdown; ``figure`` is how cells of that column are written."""
    lines = [f"# {markdown(title)}", "", *([markdown(text), ""] if text else [])]
    for section in parts:
        lines += [f"## {section.heading}", ""] if section.heading else []
        lines += [markdown(section.text), ""] if section.text else []
        writers = [figure if column == "figure" else markdown for column in section.columns]
        rows = [
            [write(cell) for write, cell in zip(writers, row, strict=True)] for row in section.rows
        ]
        lines += [*_table(section.columns, rows), ""] if section.columns else []
    return "\n".join(lines)


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a table of cells that are Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return ["| " + " | ".join(c.replace("|", r"\|") for c in line) + " |" for line in lines]


def _csv(rows: Sequence[Row]) -> str:
    return table(COLUMNS, ([row[column] for column in COLUMNS] for row in rows))


def read_rows(path: Path) -> Sequence[Row]:
    """Read a table of verdicts, which must be as it was written."""
    integrity.check(path)
    rows = [
        {column: uncell(text) for column, text in row.items()} for row in read_table(path, COLUMNS)
    ]
    for number, row in enumerate(rows, 1):
        claims.known(row["verdict"], f"{path}: row {number}")
    return rows


def is_smoke(rows: Iterable[Row]) -> bool:
    """Whether verdicts come from runs of smoke scale, and so mean nothing."""
    return any(row["scale"] == "smoke" for row in rows)


def ledger(tables: Sequence[Path], outputs: Sequence[Path]) -> None:
    """Join the papers' verdicts into the ledger (.csv .md .html)."""
    rows = [row for table in tables for row in read_rows(table)]
    text = SMOKE if is_smoke(rows) else ""
    columns = SHOWN
    cells = [[row[column] for column in columns] for row in rows]
    section = Section("", "", columns, cells, ("paper", *FILTERS))
    board = Section("", text, *scores(rows))
    texts = {
        ".csv": _csv(rows),
        ".md": _markdown("Ledger of claims", "", [board, section]),
        ".html": page("Ledger of claims", f"{text} {INTERVALS}", [section]),
    }
    for output in outputs:
        with whole(output) as path:
            path.write_text(texts[output.suffix], encoding="utf-8")
    integrity.seal(outputs, joined(tables))


def scoreboard(rows: Sequence[Row]) -> list[str]:
    """Return the number of verdicts of each kind, per paper and reading, as a Markdown table."""
    columns, cells = scores(rows)
    return _table(columns, [[f"`{paper}`", *others] for paper, *others in cells])


def scores(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Return the same as columns and rows."""
    groups: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        groups.setdefault((row["paper"], row["reading"]), []).append(row["verdict"])
    cells = [
        [*key, *(str(found.count(verdict)) for verdict in claims.VERDICTS)]
        for key, found in sorted(groups.items())
    ]
    return ["paper", "reading", *claims.VERDICTS], cells


def expected_rows(path: Path) -> list[Row]:
    """Return the committed verdicts, ``paper: claim: reading: verdict``, as rows."""
    document = load_yaml(path)
    rows: list[Row] = []
    for paper, found in _items({} if document is None else document, f"{path}", "papers"):
        for claim, readings in _items(found, f"{path}: {paper}", "claims"):
            for reading, verdict in _items(readings, f"{path}: {paper}.{claim}", "readings"):
                verdict = claims.known(verdict, f"{path}: {paper}.{claim}.{reading}")
                rows.append(
                    {"paper": paper, "claim": claim, "reading": reading, "verdict": verdict}
                )
    return rows


def _items(mapping: Any, where: str, what: str) -> Iterable[tuple[str, Any]]:
    if not isinstance(mapping, dict):
        raise ConcordError(f"{where}: it is not a mapping of {what}, but {short(mapping)}")
    return mapping.items()


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
    """Return the changes against the committed verdicts; at smoke scale there are none to speak of.

    Raises
    ------
    ConcordError
        If there are any and ``strict`` asks for none.
    """
    rows = read_rows(ledger_path)
    if is_smoke(rows):
        return []
    found = changes(rows, expected_rows(expected_path))
    if found and strict:
        raise ConcordError(
            f"{len(found)} verdicts differ from {expected_path} ({'; '.join(found)}); "
            "find out why, or commit the new verdicts with: concord expect"
        )
    return found


def expect(ledger_path: Path, expected_path: Path, readme: Path) -> None:
    """Make a ledger's verdicts the committed ones, and renew the README's scoreboard."""
    rows = read_rows(ledger_path)
    if is_smoke(rows):
        raise ConcordError(f"{ledger_path} is of smoke scale; commit verdicts of scale paper")
    nested: dict[str, dict[str, dict[str, str]]] = {}
    for row in rows:
        readings = nested.setdefault(row["paper"], {}).setdefault(row["claim"], {})
        readings[row["reading"]] = row["verdict"]
    head = "# Verdicts at paper scale, seed 1; written by `concord expect results/claims.csv`.\n"
    with whole(expected_path) as path:
        path.write_text(head + dump_yaml(nested), encoding="utf-8")
    text = with_scoreboard(read_text(readme), expected_rows(expected_path))
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


def seeds(tables: Sequence[Path]) -> list[str]:
    """Return one sentence for every verdict that master seeds do not agree on.

    Inconclusive agrees with either; what a claim states under ``seeds`` is left aside.
    """
    found: dict[str, dict[str, list[str]]] = {}
    for row in (row for path in tables for row in read_rows(path)):
        key = f"{row['paper']} {row['claim']} {row['reading']}"
        found.setdefault(key, {}).setdefault(row["alone"], []).append(row["seed"])
    return [
        f"{key}: " + ", ".join(f"{verdict} with {', '.join(s)}" for verdict, s in said.items())
        for key, said in found.items()
        if {claims.HOLDS, claims.FAILS} <= set(said)
    ]


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
        changes=compare(ledger_path, expected_path, strict=False),
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
            f"{provenance}: it does not say the seed; delete the file, it is made again"
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
