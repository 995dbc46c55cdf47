"""The stages resolve, sample, measure and draw: each reads files and writes one result, whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from concord.assemble import Parts, assemble
from concord.errors import ConcordError
from concord.files import load_yaml

REQUIRED = ("paper", "experiment", "run", "labels", "reading", "scale", "seed", "agents",
            "topology", "problem", "partition", "sampler", "initial", "chains", "iterations",
            "record", "metrics", "assumptions")  # fmt: skip


def load_run(path: Path) -> tuple[dict[str, Any], Parts]:
    """Read a run.yaml and assemble its parts.

    Raises
    ------
    ConcordError
        If it is not a whole run: it is generated, so the remedy is to delete it.
    """
    run = load_yaml(path)
    missing = [key for key in REQUIRED if not isinstance(run, dict) or key not in run]
    if missing:
        raise ConcordError(
            f"{path}: the key {missing[0]!r} is missing; delete the file, it is made again"
        )
    return run, assemble(run, str(path))
