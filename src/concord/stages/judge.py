"""judge: from metrics to verdicts, study by study; and the ledger of all.

A study's verdicts are one CSV table and one page; the ledger joins these tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from concord import integrity
from concord.claims import robustness, rules
from concord.claims import verdicts as judgements
from concord.claims.checks import quantities
from concord.claims.claim import Case
from concord.claims.ledger import Row, as_csv, read_rows
from concord.claims.quantities import Missing, Quantity
from concord.integrity import Made
from concord.io import whole
from concord.make import at
from concord.make import made as made_from
from concord.markup import line
from concord.pages import claims as pages
from concord.provenance import code, digest, sha256
from concord.results import Measured
from concord.runs.run import Run
from concord.stages.draw import checked, metrics_digest
from concord.studies.study import Study


def judge(study: Study, results: Path, outputs: Sequence[Path]) -> None:
    """Judge every claim of a study, in each of its readings (.csv .md)."""
    rows = verdicts(study, results)
    write({".csv": as_csv(rows), ".md": pages.of_paper(study, rows)}, outputs)
    integrity.seal(outputs, made(study, results))


def ledger(tables: Sequence[Path], outputs: Sequence[Path]) -> None:
    """Join the papers' verdicts into the ledger (.csv .md)."""
    rows = [row for table in tables for row in read_rows(table)]
    write({".csv": as_csv(rows), ".md": pages.ledger(rows)}, outputs)
    integrity.seal(outputs, joined(tables))


def write(texts: Mapping[str, str], outputs: Sequence[Path]) -> None:
    """Write the text of each output, by its suffix."""
    for output in outputs:
        with whole(output) as path:
            path.write_text(texts[output.suffix], encoding="utf-8")


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


Find = Callable[[Run], Measured]


@dataclass(frozen=True)
class Judged:
    """A case of a claim in a reading, and the runs that it reads."""

    claim: str
    label: str
    reading: str
    case: Case
    check: Any
    reads: Sequence[tuple[Quantity, Sequence[Run]]]

    @property
    def key(self) -> tuple[str, str, str]:
        """Return claim, case and reading."""
        return self.claim, self.label, self.reading

    @property
    def runs(self) -> list[Run]:
        """Return the runs of all quantities."""
        return [run for _, runs in self.reads for run in runs]

    def judge(self, find: Find) -> judgements.Judgement:
        """Return the verdict on metrics that ``find`` returns, or says are missing."""

        def measured(quantity: Quantity) -> list[Measured]:
            return [find(run) for run in next(runs for of, runs in self.reads if of == quantity)]

        return judgements.judge(self.check, measured)


def cases(study: Study) -> list[Judged]:
    """Return every case of every claim, in each of its readings."""
    found = []
    for name, claim in study.claims.items():
        where = f"claims.{name}"
        for reading in dict.fromkeys(r for case in claim.cases.values() for r in case.readings):
            for label, case in claim.cases.items():
                if reading in case.readings:
                    check = case.checker(study.at(where))
                    reads = [
                        (quantity, study.quantity_runs(quantity, reading, where))
                        for quantity in quantities(check)
                    ]
                    found.append(Judged(name, label, reading, case, check, reads))
    return found


def finder(study: Study, results: Path) -> Find:
    """Return what finds the metrics of a study's runs."""

    @cache
    def measured(folder: str) -> Measured:
        return checked(at(chosen[folder], results))

    chosen = {run.folder: run for run in study.claim_runs()}

    def find(run: Run) -> Measured:
        if not at_hand(run, results):
            raise Missing(_why_not(run))
        return measured(run.folder)

    return find


def verdicts(study: Study, results: Path) -> list[Row]:
    """Return one row per claim, case and reading."""
    find = finder(study, results)
    table = results / study.key / "multiverse.csv"
    universes = robustness.read_rows(table) if made(study, results)["multiverse"] else []
    contradicted = robustness.contradictions(universes, study.config["seed"])
    robust = robustness.of_claims(universes)
    rows: list[Row] = []
    for judged in cases(study):
        claim, case = study.claims[judged.claim], judged.case
        alone = judged.judge(find)
        found = judgements.over_seeds(alone, contradicted.get(judged.key))
        rests = dict.fromkeys(a for run in judged.runs for a in run.assumptions)
        over = robust.get((judged.claim, judged.reading))
        rows.append(
            {
                "paper": study.key,
                "claim": judged.claim,
                "case": judged.label,
                "reading": judged.reading,
                "verdict": found.verdict,
                "where": claim.where,
                "says": line(claim.says),
                "printed": case.printed,
                "ours": found.ours,
                "kind": case.kind,
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
