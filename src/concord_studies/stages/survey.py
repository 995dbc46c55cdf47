"""survey: judge a study's claims in every universe of its multiverse, and draw the verdicts.

A *universe* is the study with one assumption changed. A claim on a run that was not made in a
universe is *not run* there, with the reason.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from concord.progress import each
from concord_studies import provenance, results
from concord_studies.claims import robustness, verdicts
from concord_studies.claims.quantities import Missing
from concord_studies.claims.robustness import BASE, Row
from concord_studies.configuration.study import Study
from concord_studies.configuration.universes import Multiverse, reduce_run
from concord_studies.digests import digest_code
from concord_studies.guard import Guard
from concord_studies.markup import format_csv
from concord_studies.pages import multiverse as pages
from concord_studies.results import Measured
from concord_studies.runs.run import Run
from concord_studies.stages import judge
from concord_studies.stages.judge import check_same_run, make_finder

ROOTS = (__name__, "concord_studies.figures._specifications")  # what draws is imported late


def multiverse_inputs(study: Study) -> dict[str, Any]:
    """Return digests and settings, by name, that the multiverse's verdicts depend on."""
    return {
        **judge.verdict_inputs(study, with_multiverse=True),
        **{key: study.config[key] for key in ("pairs", "not_varied")},
        **digest_code(*ROOTS),
    }


def survey(
    study: Study,
    tables: Sequence[Path],
    outputs: Sequence[Path],
    pictures: Path | None = None,
    statement: Path | None = None,
) -> None:
    """Judge every claim in every universe (.csv .md), and draw the results into a folder.

    tables: the metrics.csv of experiments, and of universes, that were made.
    outputs: the table and the page to write. pictures: the folder of the figures; None: none.
    statement: as of ``judge.judge``.
    """
    from concord_studies.figures import (
        _specifications as figures,  # matplotlib, which planning does without
    )

    guard = Guard(statement, outputs[0], ROOTS, partial(judge.rule_inputs, study, True))
    multiverse = Multiverse(study)
    rows = list(judge_universes(multiverse, tables, guard.statement.get("tables")))
    texts = {".csv": format_csv(robustness.COLUMNS, rows), ".md": pages.page(multiverse, rows)}
    drawn: list[Path] = []
    if pictures is not None:
        says = {name: claim.says for name, claim in study.claims.items()}
        smoke = study.config["scale"] == "smoke"
        drawn = figures.save(rows, pages.names(multiverse), says, pictures, smoke)
    written = {output: texts[output.suffix] for output in outputs}
    guard.check_again()
    provenance.write(written, drawn, seed=study.config["seed"], planned=guard.digest)


def judge_universes(
    multiverse: Multiverse, tables: Sequence[Path], table_digests: Mapping[str, str] | None = None
) -> Iterator[Row]:
    """Yield a row with the verdict of every case (claim, case, reading): first those of the study.

    Then follow those of each universe in which a run that the case reads differs.

    tables, table_digests: as of ``judge.make_finder``.
    """
    study, cases = multiverse.study, multiverse.study.cases
    base_tables = [path for path in tables if path.parents[1].name != "multiverse"]
    folders = {path.parent.name: path.parent for path in tables if path not in base_tables}
    find_base = make_finder(study, base_tables, table_digests)

    @cache
    def read(universe: str) -> tuple[dict[str, Measured], dict[str, str]]:
        """Return the measured runs of a universe, and the reasons why others are refused."""
        if universe not in folders:
            return {}, {}
        about = provenance.read_provenance(folders[universe] / "metrics.csv")
        return results.read(folders[universe]), about.get("refused", {})

    def find_varied(universe: str, run: Run) -> Measured:
        """Return the metrics of a universe's run, which may be computed in another universe."""
        home, name = multiverse.find_universe_of(run), f"{run.experiment}/{run.name}"
        if home == BASE:
            return find_base(multiverse.find_equal_run(run))
        runs, refused = read(home)
        if name in refused:
            raise Missing(f"{universe}: {name} cannot be run: {refused[name]}")
        if name not in runs:
            raise Missing(f"{universe}: {name} was not run")
        measured = check_same_run(reduce_run(study, run), runs[name], folders[home])
        return Measured(run.document, measured.metrics)

    def find(universe: str, run: Run) -> Measured:
        """Return the measured run of a universe, or the study's own where nothing differs."""
        varied = multiverse.runs[universe].get((run.experiment, run.name))
        if varied is None:
            return find_base(run)
        measured = find_varied(universe, varied)
        for reads in multiverse.universes[universe].find_replacements(run):
            measured = rename_metrics(measured, reads.metric, reads.agent)
        return measured

    for key, case in cases.items():
        judgement = verdicts.judge(case.check, case.reads, find_base)
        yield robustness.build_row(*key, BASE, judgement)
    for name, changed in each(list(multiverse.runs.items()), "universes"):
        for key, case in cases.items():
            if any((run.experiment, run.name) in changed for run in case.runs):
                judgement = verdicts.judge(case.check, case.reads, partial(find, name))
                yield robustness.build_row(*key, name, judgement)


def rename_metrics(run: Measured, metrics: Mapping[str, str], agent: int | None) -> Measured:
    """Return a measured run whose metrics have other names, for a claim to read.

    metrics: the present name of each claimed metric. agent: the agent that becomes agent 0; None:
    agents keep their numbers.
    """
    table = run.metrics
    for name, other in metrics.items():
        # Also of every data set, ``<metric>_set_<d>``.
        old, new = (
            table["metric"].str.fullmatch(f"{re.escape(m)}(_set_.*)?") for m in (name, other)
        )
        texts = table["metric"].where(~new, name + table["metric"].str.slice(len(other)))
        table = table.assign(metric=texts)[~old | new]
    if agent is not None:
        agents = table["agent"].where(table["agent"] != str(agent), "0")
        table = table.assign(agent=agents)[(table["agent"] != "0") | (str(agent) == "0")]
    return Measured(run.run, table.reset_index(drop=True))
