"""resolve: from a paper's folder to the run.yaml of one run."""

from __future__ import annotations

from pathlib import Path

from concord.io import dump_yaml, whole
from concord.studies.paper import Paper


def resolve(paper: Paper, experiment: str, run: str, output: Path) -> None:
    """Write every parameter of one run to ``output``."""
    with whole(output) as path:
        path.write_text(dump_yaml(paper.run(experiment, run).mapping), encoding="utf-8")
