"""judge: from metrics to verdicts, study by study; and the ledger of all.

A study's verdicts are one CSV table and one page; the ledger joins these tables.
"""

from collections.abc import Sequence
from pathlib import Path

from concord_studies import integrity
from concord_studies.claims import ledger as ledgers
from concord_studies.claims import robustness, rules
from concord_studies.claims.ledger import Row
from concord_studies.configuration.study import Study
from concord_studies.integrity import Made
from concord_studies.markup import table_of
from concord_studies.pages import claims as pages
from concord_studies.provenance import code, digest, sha256
from concord_studies.stages.measured import finder, metrics_digest


def judge(study: Study, results: Path, outputs: Sequence[Path]) -> None:
    """Judge every claim of a study, in each of its readings (.csv .md)."""
    source = made(study, results)
    rows = verdicts(study, results, source)
    entries = ledgers.entries(rows)
    page = pages.of_paper(study, entries, ledgers.unvaried(rows, _expected(study)))
    texts = {".csv": table_of(ledgers.COLUMNS, rows), ".md": page}
    integrity.write({output: texts[output.suffix] for output in outputs}, source)


def ledger(tables: Sequence[Path], outputs: Sequence[Path], expected: Path) -> None:
    """Join the studies' verdicts into the ledger (.csv .md), beside the committed ones."""
    rows = [row for table in tables for row in ledgers.read_rows(table)]
    page = pages.ledger(rows, ledgers.unvaried(rows, expected))
    texts = {".csv": table_of(ledgers.COLUMNS, rows), ".md": page}
    integrity.write({output: texts[output.suffix] for output in outputs}, joined(tables, expected))


def made_alone(study: Study, results: Path) -> Made:
    """Return the digests from which a study's verdicts are made, without the multiverse."""
    config = {key: study.config[key] for key in ("scale", "seed")}
    return {
        "entry": digest({**study.raw, "config": config}),
        "code": code(__name__),
        "rules": sha256(rules.PATH),
        "metrics": metrics_digest(study.claim_runs(), results),
    }


def made(study: Study, results: Path) -> Made:
    """Return the digests from which a study's verdicts are made."""
    path = results / study.key / "multiverse.csv"
    alone, (source, seal) = made_alone(study, results), integrity.sealed(path)
    varied = seal if alone.items() <= source.items() else ""
    stated = ({"paper": study.key, "claim": c, "reading": r} for c, _, r in study.cases)
    seeds = "" if varied else digest({"of": sorted(ledgers.by_seed(stated, _expected(study)))})
    return {**alone, "multiverse": varied, "seeds": seeds}


def _expected(study: Study) -> Path:
    """Return the file of the committed verdicts."""
    return study.path.parents[1] / "expected_verdicts.yaml"


def joined(tables: Sequence[Path], expected: Path) -> Made:
    """Return the digests from which the ledger is made."""
    seals = {str(path): integrity.sealed(path)[1] for path in tables}
    committed = sha256(expected) if expected.exists() else ""
    return {"verdicts": digest(seals), "committed": committed, "code": code(__name__)}


def verdicts(study: Study, results: Path, source: Made) -> list[Row]:
    """Return one row per claim, case and reading; ``source`` is the result of ``made``."""
    universes: Sequence[robustness.Row] = ()
    if source["multiverse"]:
        universes = robustness.read_rows(results / study.key / "multiverse.csv")
    find = finder(study, results)
    contradicted = robustness.contradictions(universes, study.config["seed"])
    robust = robustness.of_claims(universes)
    rows: list[Row] = []
    for (name, label, reading), case in study.cases.items():
        alone = case.judge(find)
        found = robustness.over_seeds(alone, contradicted.get((name, label, reading)))
        over = robust.get((name, reading))
        rows.append(
            {
                **pages.stated(study, name, label, reading),
                "verdict": found.verdict,
                "ours": found.ours,
                "multiverse": over.text if over else "",
                "alone": alone.verdict,
            }
        )
    return rows
