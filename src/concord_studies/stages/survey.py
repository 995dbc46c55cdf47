"""The multiverse of a study: its claims judged in every universe, as a table, a page and pictures.

What was not run in a universe makes claims there *not run*, for its reason; the rest is judged.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from concord.progress import each
from concord_studies import integrity
from concord_studies.claims import robustness
from concord_studies.claims.quantities import Missing
from concord_studies.claims.robustness import BASE, Row
from concord_studies.configuration.study import Study
from concord_studies.configuration.universes import Multiverse, lean
from concord_studies.integrity import Made
from concord_studies.markup import table_of
from concord_studies.pages import multiverse as pages
from concord_studies.provenance import code, digest, sha256
from concord_studies.results import Measured, read
from concord_studies.runs.run import Run
from concord_studies.stages import judge
from concord_studies.stages.measured import Find, finder


def survey(
    study: Study, results: Path, outputs: Sequence[Path], pictures: Path | None = None
) -> None:
    """Judge every claim in every universe (.csv .md), and draw the results into a folder."""
    from concord_studies.figures import (
        _specifications as figures,  # matplotlib, which planning does without
    )

    found = Multiverse(study)
    rows = list(judged(found, results))
    texts = {".csv": table_of(robustness.COLUMNS, rows), ".md": pages.page(found, rows)}
    drawn: list[Path] = []
    if pictures is not None:
        says = {name: claim.says for name, claim in study.claims.items()}
        smoke = study.config["scale"] == "smoke"
        drawn = figures.save(rows, pages.names(found), says, pictures, smoke)
    written = {output: texts[output.suffix] for output in outputs}
    integrity.write(written, made(study, results, found), drawn, seed=study.config["seed"])


def made(study: Study, results: Path, found: Multiverse | None = None) -> Made:
    """Return the digests from which a study's verdicts over the universes are made."""
    files = [batch.file(results) for batch in (found or Multiverse(study)).batches.values()]
    computed = {str(file): sha256(file) if file.is_file() else "" for file in files}
    drawing = "concord_studies.figures._specifications"
    own = {"universes": digest(computed), "survey": code(__name__, drawing)}
    return {**judge.made_alone(study, results), **own}


def judged(found: Multiverse, results: Path) -> Iterator[Row]:
    """Yield a row for every case and reading, of the study and of each universe that changes it."""
    cases, base = found.study.cases, finder(found.study, results)
    for key, case in cases.items():
        yield robustness.row(*key, BASE, case.judge(base))
    for name, changed in each(list(found.runs.items()), "universes"):
        there = _Universe(found, name, results, base)
        for key, case in cases.items():
            if any((run.experiment, run.name) in changed for run in case.runs):
                yield robustness.row(*key, name, case.judge(there.find))


class _Universe:
    """A finder of runs' metrics, as one universe has the runs."""

    def __init__(self, found: Multiverse, name: str, results: Path, base: Find) -> None:
        """Set the multiverse, the universe's name, the results, and the study's own finder."""
        self.found, self.name, self.results, self.base = found, name, results, base

    def find(self, run: Run) -> Measured:
        """Return the metrics that a universe has in place of a run of the study."""
        other = self.found.runs[self.name].get((run.experiment, run.name))
        if other is None:
            return self.base(run)
        found = self._computed(other)
        for reads in self.found.universes[self.name].reads(run):
            found = renamed(found, reads.metric, reads.agent)
        return found

    def _computed(self, run: Run) -> Measured:
        """Return a run's metrics, if they stand for today's code and data."""
        home = self.found.home(run)
        if home[0] == BASE:
            return self.base(self.found.twin(run))
        place = self.found.batches[home].place(lean(self.found.study, run), self.results)
        name = f"{run.experiment}/{run.name}"
        if place.lacks_metrics():
            raise Missing(f"{self.name}: {name} was not run")
        if why := integrity.document(place.table).get("refused"):
            raise Missing(f"{self.name}: {name} cannot be run: {why}")
        return read(run.document, place.table)


def renamed(run: Measured, metrics: Mapping[str, str], agent: int | None) -> Measured:
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
