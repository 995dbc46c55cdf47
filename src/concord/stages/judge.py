"""judge: from metrics to verdicts, study by study; and the ledger of all.

A study's verdicts are one CSV table and one page; the ledger joins these tables.
"""

from collections.abc import Sequence
from pathlib import Path

from concord import integrity
from concord.claims import ledger as ledgers
from concord.claims import robustness, rules
from concord.claims.ledger import Row
from concord.integrity import Made
from concord.markup import line, table_of
from concord.pages import claims as pages
from concord.provenance import code, digest, sha256
from concord.stages.measured import finder, metrics_digest
from concord.studies.study import Study


def judge(study: Study, results: Path, outputs: Sequence[Path]) -> None:
    """Judge every claim of a study, in each of its readings (.csv .md)."""
    source = made(study, results)
    rows = verdicts(study, results, source)
    entries = ledgers.entries(rows)
    page = pages.of_paper(study, entries)
    texts = {".csv": table_of(ledgers.COLUMNS, rows), ".md": page}
    integrity.write({output: texts[output.suffix] for output in outputs}, source)


def ledger(tables: Sequence[Path], outputs: Sequence[Path]) -> None:
    """Join the studies' verdicts into the ledger (.csv .md)."""
    rows = [row for table in tables for row in ledgers.read_rows(table)]
    texts = {".csv": table_of(ledgers.COLUMNS, rows), ".md": pages.ledger(rows)}
    integrity.write({output: texts[output.suffix] for output in outputs}, joined(tables))


def made_alone(study: Study, results: Path) -> Made:
    """Return what a study's verdicts are made from, but for the multiverse."""
    config = {key: study.config[key] for key in ("scale", "seed")}
    return {
        "entry": digest({**study.raw, "config": config}),
        "code": code(__name__),
        "rules": sha256(rules.PATH),
        "metrics": metrics_digest(study.claim_runs(), results),
    }


def made(study: Study, results: Path) -> Made:
    """Return what a study's verdicts are made from."""
    path = results / study.key / "multiverse.csv"
    alone, (source, seal) = made_alone(study, results), integrity.sealed(path)
    return {**alone, "multiverse": seal if alone.items() <= source.items() else ""}


def joined(tables: Sequence[Path]) -> Made:
    """Return what the ledger is made from."""
    seals = {str(path): integrity.sealed(path)[1] for path in tables}
    return {"verdicts": digest(seals), "code": code(__name__)}


def verdicts(study: Study, results: Path, source: Made) -> list[Row]:
    """Return one row per claim, case and reading; ``source`` is what they are ``made`` from."""
    universes: Sequence[robustness.Row] = ()
    if source["multiverse"]:
        universes = robustness.read_rows(results / study.key / "multiverse.csv")
    find = finder(study, results)
    contradicted = robustness.contradictions(universes, study.config["seed"])
    robust = robustness.of_claims(universes)
    rows: list[Row] = []
    for (name, label, reading), case in study.cases.items():
        claim, alone = study.claims[name], case.judge(find)
        found = robustness.over_seeds(alone, contradicted.get((name, label, reading)))
        rests = dict.fromkeys(a for run in case.runs for a in run.assumptions)
        over = robust.get((name, reading))
        rows.append(
            {
                "paper": study.key,
                "claim": name,
                "case": label,
                "reading": reading,
                "verdict": found.verdict,
                "where": claim.where,
                "source": claim.source if study.printed else ledgers.OURS,
                "says": line(claim.says),
                "printed": case.printed,
                "ours": found.ours,
                "kind": case.check.kind,
                "rule": claim.rule or "",
                "reason": line(case.reason),
                "figure": claim.figure or "",
                "assumptions": ", ".join(rests),
                "multiverse": over.text if over else "",
                "alone": alone.verdict,
                "seed": str(study.config["seed"]),
                "scale": study.config["scale"],
            }
        )
    return rows
