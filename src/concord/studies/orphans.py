"""Results that no study asks for any more: runs that were renamed, changed or removed."""

from collections.abc import Iterable
from pathlib import Path

from concord.studies.stated import RESERVED
from concord.studies.study import Study


def orphans(results: Path, studies: Iterable[Study]) -> list[Path]:
    """Return the folders of runs below ``results`` that are of no run of these studies."""
    asked = {results / run.folder for study in studies for run in study.runs.values()}
    made = {path.parent for path in results.glob("*/*/*/run.yaml")}
    return sorted(f for f in made - asked if f.relative_to(results).parts[0] not in RESERVED)
