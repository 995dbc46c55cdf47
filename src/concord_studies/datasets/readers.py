"""Readers of data sets that several studies use, and of tables of a user's own.

A registered file is read if it has the registered SHA-256 (``registry.verify``); nothing else needs
to be checked of it then. Data sets of scikit-learn are taken as they are. Labels of classes are
int64. Nothing is ever unpickled.
"""

from __future__ import annotations

import csv
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from concord.errors import ConcordError
from concord_studies.datasets.registry import verify
from concord_studies.datasets.tables import rows_of


def magic(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read the MAGIC Gamma Telescope data, ``magic04.data``: 10 numbers and a class a row.

    Returns features, (19020, 10) float64, not standardized; and labels, (19020,) int64, 1 for gamma
    (g) and 0 for hadron (h).
    """
    cells = np.loadtxt(verify("magic/magic04.data", path), delimiter=",", dtype=str, comments=None)
    return cells[:, :-1].astype(np.float64), (cells[:, -1] == "g").astype(np.int64)


def breast_cancer() -> tuple[np.ndarray, np.ndarray]:
    """Return scikit-learn's copy of the Breast Cancer Wisconsin (Diagnostic) data.

    Returns features, (569, 30) float64, not standardized, and labels, (569,) int64, 1 for benign
    (357 rows) and 0 for malignant (212).
    """
    table = _read_bundled("breast_cancer.csv", skiprows=1, delimiter=",")
    return table[:, :-1].copy(), table[:, -1].astype(np.int64)


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Return scikit-learn's digits: images (1797, 64) float64 in [0, 1], labels (1797,) int64."""
    table = _read_bundled("digits.csv.gz", delimiter=",")
    return table[:, :-1] / 16, table[:, -1].astype(np.int64)


def diabetes() -> tuple[np.ndarray, np.ndarray]:
    """Return scikit-learn's copy of the diabetes data of Efron et al. (2004).

    Returns features, (442, 10) float64, not standardized, and targets, (442,) float64, the
    progression of the disease after a year.
    """
    return _read_bundled("diabetes_data_raw.csv.gz"), _read_bundled("diabetes_target.csv.gz")


def _read_bundled(name: str, **options: Any) -> np.ndarray:
    """Read a table in scikit-learn's folder; to import that would take a second.

    options: of ``numpy.loadtxt``.
    """
    spec = find_spec("sklearn")
    if spec is None or spec.origin is None:
        raise ConcordError("scikit-learn, which has the data set, is not installed; install it")
    path = Path(spec.origin).parent / "datasets" / "data" / name
    table: np.ndarray = np.loadtxt(path, **options)
    return table


def columns_of(path: Path) -> list[str]:
    """Return the names of a CSV table's columns, from its header alone."""
    with _refuse_other_files(path):
        return next(rows_of(path))


@contextmanager
def _refuse_other_files(path: Path) -> Iterator[None]:
    """Raise a ConcordError where a file is read that is no CSV table."""
    try:
        yield
    except (ValueError, OSError, EOFError, csv.Error, zlib.error) as error:
        detail = " ".join(str(error).split())
        raise ConcordError(
            f"{path}: is not a CSV table with a header ({detail}); correct it"
        ) from error


def table(path: str | Path) -> dict[str, np.ndarray]:
    """Read a CSV table with a header; return its columns of numbers, (rows,), by name."""
    import pandas  # a quarter of a second

    path = Path(path)
    with _refuse_other_files(path):
        for _ in rows_of(path):
            pass  # each is as long as the header
        frame = pandas.read_csv(path)
    for name in frame:
        if frame[name].dtype.kind not in "fiub" or frame[name].isna().any():
            raise ConcordError(
                f"{path}: the column {name!r} has entries that are missing or no numbers; remove "
                "these rows, or code them"
            )
    return {str(name): frame[name].to_numpy() for name in frame}


def stack_draws(columns: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return draws by parameter: columns theta[1], theta[2], ... as one array, (draws, elements).

    columns: by name, (draws,) each; their order is that of the elements. One without an index stays
    as it is, (draws,).
    """
    columns_by_name: dict[str, list[np.ndarray]] = {}
    for name, values in columns.items():
        parts = columns_by_name.setdefault(name.partition("[")[0], [])
        parts.append(np.asarray(values, dtype=float))
    return {
        name: np.stack(parts, axis=1) if f"{name}[1]" in columns else parts[0]
        for name, parts in columns_by_name.items()
    }
