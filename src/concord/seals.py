"""Seals: what files held when metrics were measured, so that none is changed and passes for it.

A seal stands beside metrics.csv and is what `sha256sum` writes: `sha256sum --check metrics.sha256`
tells whether the files are still the same.
"""

from __future__ import annotations

import os
from pathlib import Path

from concord.errors import ConcordError
from concord.files import whole
from concord.provenance import sha256


def seal(run_path: Path, metrics_path: Path) -> None:
    """Write the seal of a metrics.csv and of the run.yaml that it was measured from."""
    with whole(metrics_path.with_suffix(".sha256")) as path:
        path.write_text(_text(run_path, metrics_path), encoding="utf-8")


def check(run_path: Path, metrics_path: Path) -> None:
    """Compare a metrics.csv and the run.yaml that it was measured from with their seal.

    Raises
    ------
    ConcordError
        If there is no seal, or if either file has changed since.
    """
    try:
        intact = metrics_path.with_suffix(".sha256").read_bytes()
    except FileNotFoundError:
        intact = b""
    if intact != _text(run_path, metrics_path).encode():
        raise ConcordError(
            f"{metrics_path}: it is not as it was measured from {run_path.name}; "
            "delete the file, it is made again"
        )


def _text(run_path: Path, metrics_path: Path) -> str:
    folder = metrics_path.parent
    paths = (run_path, metrics_path)
    return "".join(f"{sha256(path)}  {os.path.relpath(path, folder)}\n" for path in paths)
