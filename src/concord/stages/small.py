"""small: small runs of an experiment, each from its configuration to its metrics.

One process makes what a command for every stage of every run would make, byte for byte. What stands
is left alone, so that after an interruption, or for one changed run, only that is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from concord import integrity
from concord.errors import ConcordError
from concord.io import dump_yaml, read_table, whole
from concord.provenance import digest, sha256
from concord.stages.measure import made as measured_from
from concord.stages.measure import measure
from concord.stages.sample import made as sampled_from
from concord.stages.sample import sample
from concord.stages.vary import failures
from concord.studies.paper import Paper, Run

FILES = ("run.yaml", "trace.nc", "trace.json", "metrics.csv", "metrics.json")


def small(
    paper: Paper,
    experiment: str,
    names: Sequence[str],
    results: Path,
    output: Path | None,
    resources: Path,
) -> None:
    """Make runs of an experiment below the folder of results; write how they stand.

    Raises
    ------
    ConcordError
        If a run fails, after the others have been made.
    """
    runs = paper.chosen(experiment, names)
    failed = failures({run.name: partial(_make, run, results, resources) for run in runs})
    if failed:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in failed.items())
        raise ConcordError(f"{experiment}: {reasons}")
    if output is not None:
        lines = [f"{run},{state}\n" for run, state in states(runs, results, resources).items()]
        with whole(output) as path:
            path.write_text("".join(["run,state\n", *lines]), encoding="utf-8")


def _make(run: Run, results: Path, resources: Path) -> None:
    folder = results / run.folder
    path, trace, table = (folder / name for name in ("run.yaml", "trace.nc", "metrics.csv"))
    text = dump_yaml(run.mapping)
    if not path.is_file() or path.read_bytes() != text.encode():
        with whole(path) as temporary:
            temporary.write_text(text, encoding="utf-8")

    def stands(result: Path, wanted: integrity.Made) -> bool:
        return result.is_file() and wanted.items() <= integrity.intact(result).items()

    sampled = sampled_from(run.mapping, resources)
    measured = stands(table, measured_from(run.mapping, resources, trace))
    if not stands(trace, sampled) and (trace.exists() or not measured):
        sample(path, trace, resources)
    if not stands(table, measured_from(run.mapping, resources, trace)):
        measure(path, trace, table, resources)


def states(runs: Sequence[Run], results: Path, resources: Path) -> dict[str, str]:
    """Return, by run, a digest of what its files must be made from, and of the files."""
    found = {}
    for run in runs:
        files = [results / run.folder / name for name in FILES]
        digests = {path.name: sha256(path) for path in files if path.is_file()}
        found[run.name] = digest({**measured_from(run.mapping, resources), **digests})
    return found


def stated(table: Path) -> Mapping[str, str]:
    """Return how small runs stood when they were made; nothing if the table cannot be read."""
    try:
        return {row["run"]: row["state"] for row in read_table(table, ("run", "state"))}
    except ConcordError:
        return {}
