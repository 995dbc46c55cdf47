"""The metrics that verdicts read: those of the experiments given, and no others."""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from concord.errors import ConcordError
from concord_studies import results
from concord_studies.claims.quantities import Missing
from concord_studies.configuration.study import Study
from concord_studies.provenance import AGAIN, digest
from concord_studies.results import Measured
from concord_studies.runs.run import Run

Find = Callable[[Run], Measured]


def finder(study: Study, tables: Sequence[Path]) -> Find:
    """Return a function from a study's run to its metrics, which raises ``Missing``.

    tables: the metrics.csv of those experiments that were made.
    """
    folders = {path.parent.name: path.parent for path in tables}
    names = study.sections.names

    @cache
    def read(experiment: str) -> dict[str, Measured]:
        """Return the measured runs of an experiment."""
        return results.read(folders[experiment], names)

    def find(run: Run) -> Measured:
        """Return the metrics of a run; ``Missing`` if it has not been made."""
        if run.experiment not in folders:
            raise Missing(why_not(run))
        found = read(run.experiment).get(run.name)
        return matching(run, found, folders[run.experiment])

    return find


def matching(run: Run, found: Measured | None, folder: Path) -> Measured:
    """Return what was measured of a run; refuse it where another run was measured."""
    if found is None or digest(found.run) != run.digest:
        raise ConcordError(
            f"{folder / 'metrics.csv'}: it was made from another configuration of {run.name}; "
            f"{AGAIN}"
        )
    return found


def why_not(run: Run) -> str:
    """Return a sentence on the reason why a run has no metrics."""
    lacking = run.unavailable
    if lacking is None and run.downloads:
        names = ", ".join(run.downloads)
        lacking = f"it reads {names}, which snakemake everything downloads"
    return f"{run.folder} was not run" + (f": {lacking}" if lacking else "")
