"""The multiverse of a study: its claims judged in every universe, as a table, a page and pictures.

What was not run in a universe makes claims there *not run*, for its reason; the rest is judged.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from concord.progress import each
from concord_studies import provenance, results
from concord_studies.claims import robustness
from concord_studies.claims.quantities import Missing
from concord_studies.claims.robustness import BASE, Row
from concord_studies.configuration.study import Study
from concord_studies.configuration.universes import Multiverse, reduce_run
from concord_studies.digests import digest, digest_code
from concord_studies.io import read_text
from concord_studies.markup import table_of
from concord_studies.pages import multiverse as pages
from concord_studies.results import Measured
from concord_studies.runs.run import Run
from concord_studies.stages import judge
from concord_studies.stages.judge import Find, make_finder, require_same_run

DRAWING = "concord_studies.figures._specifications"


def multiverse_inputs(study: Study) -> dict[str, Any]:
    """Return the inputs, other than metrics, of a study's verdicts over its universes, by name."""
    return {
        **judge.verdict_inputs(study, with_multiverse=True),
        "survey": digest_code(__name__, DRAWING),
    }


def survey(
    study: Study, tables: Sequence[Path], outputs: Sequence[Path], pictures: Path | None = None
) -> None:
    """Judge every claim in every universe (.csv .md), and draw the results into a folder.

    tables: the metrics.csv of experiments, and of universes, that were made.
    """
    from concord_studies.figures import (
        _specifications as figures,  # matplotlib, which planning does without
    )

    planned = outputs[0].with_suffix(".yaml")
    stated = digest(read_text(planned)) if planned.exists() else None  # as it is now
    found = Multiverse(study)
    rows = list(judge_universes(found, tables))
    texts = {".csv": table_of(robustness.COLUMNS, rows), ".md": pages.page(found, rows)}
    drawn: list[Path] = []
    if pictures is not None:
        says = {name: claim.says for name, claim in study.claims.items()}
        smoke = study.config["scale"] == "smoke"
        drawn = figures.save(rows, pages.names(found), says, pictures, smoke)
    written = {output: texts[output.suffix] for output in outputs}
    provenance.write(written, drawn, seed=study.config["seed"], planned=stated)


def judge_universes(found: Multiverse, tables: Sequence[Path]) -> Iterator[Row]:
    """Yield a row for every case and reading, of the study and of each universe that changes it."""
    own = [path for path in tables if path.parents[1].name != "multiverse"]
    folders = {path.parent.name: path.parent for path in tables if path not in own}
    cases, base = found.study.cases, make_finder(found.study, own)

    @cache
    def computed(universe: str) -> tuple[dict[str, Measured], dict[str, str]]:
        """Return the runs that a universe computes, and why others cannot be run."""
        if universe not in folders:
            return {}, {}
        folder = folders[universe]
        about = provenance.read_provenance(folder / "metrics.csv")
        return results.read(folder), about.get("refused", {})

    def find_in(universe: str, run: Run) -> Measured:
        """Return the metrics that a universe has in place of a run of the study."""
        other = found.runs[universe].get((run.experiment, run.name))
        if other is None:
            return base(run)
        own = _find_run(found, universe, other, base, computed, folders)
        for reads in found.universes[universe].reads(run):
            own = rename_metrics(own, reads.metric, reads.agent)
        return own

    for key, case in cases.items():
        yield robustness.row(*key, BASE, case.judge(base))
    for name, changed in each(list(found.runs.items()), "universes"):
        for key, case in cases.items():
            if any((run.experiment, run.name) in changed for run in case.runs):
                find = partial(find_in, name)
                yield robustness.row(*key, name, case.judge(find))


def _find_run(
    found: Multiverse,
    universe: str,
    run: Run,
    base: Find,
    computed: Callable[[str], tuple[dict[str, Measured], dict[str, str]]],
    folders: Mapping[str, Path],
) -> Measured:
    """Return the metrics of a run of a universe, which may be computed in another one."""
    home, name = found.find_home(run), f"{run.experiment}/{run.name}"
    if home == BASE:
        return base(found.find_twin(run))
    runs, refused = computed(home)
    if name in refused:
        raise Missing(f"{universe}: {name} cannot be run: {refused[name]}")
    if name not in runs:
        raise Missing(f"{universe}: {name} was not run")
    own = require_same_run(reduce_run(found.study, run), runs[name], folders[home])
    return Measured(run.document, own.metrics)


def rename_metrics(run: Measured, metrics: Mapping[str, str], agent: int | None) -> Measured:
    """Return a run with other metrics under the claimed names, with ``agent`` as agent 0."""
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
