"""resolve: from a paper's file to the run.yaml of one run."""

from __future__ import annotations

from pathlib import Path

from concord.errors import ConcordError
from concord.experiment import Paper
from concord.files import dump_yaml, whole
from concord.provenance import digest


def resolve(
    paper: Paper, experiment: str, run: str, output: Path, expected: str | None = None
) -> None:
    """Write every parameter of one run to ``output``.

    Raises
    ------
    ConcordError
        If the run's digest is not the expected one: the file has changed since it was checked.
    """
    mapping = paper.run(experiment, run).mapping
    if expected is not None and digest(mapping) != expected:
        raise ConcordError(f"{paper.path} has changed since the workflow started; start it again")
    with whole(output) as path:
        path.write_text(dump_yaml(mapping), encoding="utf-8")
