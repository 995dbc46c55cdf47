"""The metrics that stages read: those of today's configuration, code and data, and no others."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from concord_studies import integrity
from concord_studies.claims.quantities import Missing
from concord_studies.configuration.study import Study
from concord_studies.make import Place, at, made
from concord_studies.provenance import digest
from concord_studies.results import Measured, read
from concord_studies.runs.run import Run

Find = Callable[[Run], Measured]


def metrics_digest(runs: Sequence[Run], results: Path) -> str:
    """Return a digest of the metrics of runs, taken from their seals."""
    paths = [at(run, results).table for run in runs]
    return digest({str(path): integrity.sealed(path)[1] for path in paths})


def checked(place: Place) -> Measured:
    """Read a run's metrics, refused unless made from today's configuration, code and data."""
    trace = place.trace if place.trace.exists() else None
    integrity.check(place.table, made(place.run, place.resources, trace, place.variant))
    return read(place.run.document, place.table)


def finder(study: Study, results: Path) -> Find:
    """Return a function from a study's run to its metrics, which raises ``Missing``."""

    @cache  # there is one workflow in a process
    def find(run: Run) -> Measured:
        """Return the metrics of a run; ``Missing`` if it has not been made."""
        if not at_hand(run, results):
            raise Missing(why_not(run))
        return replace(checked(at(run, results)), names=study.sections.names)

    return find


def at_hand(run: Run, results: Path) -> bool:
    """Return whether a run's metrics exist; stale ones count if they can be made again."""
    place = at(run, results)
    if not place.table.exists():
        return False
    makeable = not run.unavailable and not run.downloads
    wanted = made(run, place.resources)
    return makeable or wanted.items() <= integrity.sealed(place.table)[0].items()


def why_not(run: Run) -> str:
    """Return a sentence on the reason why a run has no metrics."""
    lacking = run.unavailable
    if lacking is None and run.downloads:
        names = ", ".join(run.downloads)
        lacking = f"it reads {names}, which `snakemake everything` downloads"
    return f"{run.folder} was not run" + (f": {lacking}" if lacking else "")
