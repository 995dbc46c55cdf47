"""judge: from metrics to verdicts, study by study; and the ledger of all.

A study's verdicts are one CSV table and one page; the ledger joins these tables. A *case* is a
claim on one set of runs, a *reading* a way to understand what the paper does.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from concord.errors import ConcordError
from concord_studies import provenance, results
from concord_studies.claims import ledger as ledgers
from concord_studies.claims import robustness
from concord_studies.claims.claim import RULES
from concord_studies.claims.ledger import Row
from concord_studies.claims.quantities import Missing
from concord_studies.claims.verdicts import find_reason_number
from concord_studies.claims.verdicts import judge as judge_check
from concord_studies.configuration.study import Study
from concord_studies.digests import digest, digest_code
from concord_studies.guard import Guard
from concord_studies.markup import format_csv
from concord_studies.pages import claims as pages
from concord_studies.provenance import AGAIN, sha256
from concord_studies.results import Measured
from concord_studies.runs.run import Run

Find = Callable[[Run], Measured]
# Of a study, what runs come from: it shows in what verdicts are made from.
_OF_RUNS = ("experiments", "problems", "defaults", "figures", "tables")


def verdict_inputs(study: Study, with_multiverse: bool = False) -> dict[str, Any]:
    """Return the inputs, other than metrics, of a study's verdicts: digests and settings by name.

    with_multiverse: whether the table of the multiverse tells which verdicts depend on the seed. If
    not, the claims whose committed verdict depends on it are among the inputs.
    """
    return {
        "study": {key: value for key, value in study.raw.items() if key not in _OF_RUNS},
        "shown": [*study.sections.figures, *study.sections.tables],
        **{key: study.config[key] for key in ("scale", "seed")},
        **rule_inputs(study, with_multiverse),
        **digest_code(__name__),
    }


def rule_inputs(study: Study, with_multiverse: bool) -> dict[str, str]:
    """Return digests of the rules of verdicts and of the claims that depend on the seed, by name.

    with_multiverse: as of ``verdict_inputs``.
    """
    reads = ({"paper": study.key, "claim": c, "reading": r} for c, _, r in study.cases)
    seeds = ledgers.find_seed_dependent(reads, _committed_file(study))
    return {
        "rules": sha256(RULES),
        "seeds": digest({"of": [] if with_multiverse else sorted(seeds)}),
    }


def judge(
    study: Study,
    tables: Sequence[Path],
    outputs: Sequence[Path],
    multiverse: Path | None = None,
    statement: Path | None = None,
) -> None:
    """Judge every claim of a study, in each of its readings (.csv .md).

    tables: the metrics.csv of the experiments that were made; claims on others are not run.
    outputs: the table and the page to write.
    multiverse: the table of verdicts over the universes; None: not made.
    statement: the file that states the job's inputs, written by the plan; None: unchecked.
    """
    rules = partial(rule_inputs, study, multiverse is not None)
    guard = Guard(statement, outputs[0], [__name__], rules)
    rows = verdicts(study, tables, multiverse, guard.statement.get("tables"))
    seeds = ledgers.note_unvaried_seeds(rows, _committed_file(study))
    _write(rows, pages.claims_page(study, rows, seeds), outputs, guard)


def ledger(
    tables: Sequence[Path], outputs: Sequence[Path], expected: Path, statement: Path | None = None
) -> None:
    """Join the studies' verdicts into the ledger (.csv .md), beside the committed ones.

    tables: the verdicts of studies. outputs: the table and the page to write. expected: the file of
    the committed verdicts. statement: as of ``judge``.
    """
    guard = Guard(statement, outputs[0], [__name__])
    rows = [row for table in tables for row in ledgers.read_rows(table)]
    shown = ledgers.fill_in_committed(rows, ledgers.expected_rows(expected))
    page = pages.ledger_page(shown, ledgers.note_unvaried_seeds(rows, expected))
    _write(rows, page, outputs, guard)


def _write(rows: Sequence[Row], page: str, outputs: Sequence[Path], guard: Guard) -> None:
    """Write verdicts as a table (.csv) and a page (.md), with their provenance."""
    texts = {".csv": format_csv(ledgers.COLUMNS, rows), ".md": page}
    guard.check_again()
    written = {output: texts[output.suffix] for output in outputs}
    provenance.write(written, planned=guard.digest)


def _committed_file(study: Study) -> Path:
    """Return the file of the committed verdicts."""
    return study.path.parents[1] / "expected_verdicts.yaml"


def verdicts(
    study: Study,
    tables: Sequence[Path],
    multiverse: Path | None = None,
    table_digests: Mapping[str, str] | None = None,
) -> list[Row]:
    """Judge a study's claims; return a row for each claim, case and reading.

    tables, multiverse: as of ``judge``. table_digests: as of ``make_finder``.
    """
    universes = () if multiverse is None else robustness.read_rows(multiverse)
    find = make_finder(study, tables, table_digests)
    contradicted = robustness.seed_disagreements(universes, study.config["seed"])
    robust = robustness.find_robustness(universes)
    rows: list[Row] = []
    judged = {key: judge_check(case.check, case.reads, find) for key, case in study.cases.items()}
    for (name, label, reading), alone in judged.items():
        judgement = robustness.weigh_seeds(alone, contradicted.get((name, label, reading)))
        over = robust.get((name, reading))
        alike = [one for (n, _, r), one in judged.items() if (n, r) == (name, reading)]
        number = partial(find_reason_number, judgement=judgement, all_cases=alike)
        rows.append(
            {
                **pages.state_row(study, name, label, reading),
                "verdict": judgement.verdict,
                "because": pages.state_reason(study.claims[name], judgement.verdict, number),
                "ours": judgement.ours,
                "number": judgement.number,
                "multiverse": over.text if over else "",
                "alone": alone.verdict,
            }
        )
    return rows


def make_finder(
    study: Study, tables: Sequence[Path], table_digests: Mapping[str, str] | None = None
) -> Find:
    """Return a function that finds the metrics of a study's run, or raises ``Missing``.

    tables: the metrics.csv of the experiments that were made.
    table_digests: by experiment, the digest of the statement its table must be made from.
    """
    folders = {path.parent.name: path.parent for path in tables}
    names = study.sections.names

    @cache
    def read(experiment: str) -> dict[str, Measured]:
        """Return the measured runs of an experiment."""
        return results.read(folders[experiment], names, (table_digests or {}).get(experiment))

    def find(run: Run) -> Measured:
        """Return the metrics of a run; raise ``Missing`` if it has not been made."""
        if run.experiment not in folders:
            raise Missing(explain_missing(run))
        measured = read(run.experiment).get(run.name)
        return check_same_run(run, measured, folders[run.experiment])

    return find


def check_same_run(run: Run, measured: Measured | None, folder: Path) -> Measured:
    """Return the metrics ``measured``; raise if they are of another run of the same name.

    folder: of the metrics.csv, for the error.
    """
    if measured is None or digest(measured.run) != run.digest:
        raise ConcordError(
            f"{folder / 'metrics.csv'}: it was made from another configuration of {run.name}; "
            f"{AGAIN}"
        )
    return measured


def explain_missing(run: Run) -> str:
    """Return a sentence on the reason why a run has no metrics."""
    lacking = run.unavailable
    if lacking is None and run.downloads:
        names = ", ".join(run.downloads)
        lacking = f"it reads {names}, which snakemake everything downloads"
    return f"{run.folder} was not run" + (f": {lacking}" if lacking else "")
