"""Results that no study asks for any more: runs that were renamed, changed or removed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from concord.studies.paper import Paper
from concord.studies.stated import RESERVED


def orphans(results: Path, papers: Iterable[Paper]) -> list[Path]:
    """Return the folders of runs below ``results`` that are of no run of these studies."""
    asked = {results / run.folder for paper in papers for run in paper.runs.values()}
    made = {path.parent for path in results.glob("*/*/*/run.yaml")}
    return sorted(f for f in made - asked if f.relative_to(results).parts[0] not in RESERVED)
