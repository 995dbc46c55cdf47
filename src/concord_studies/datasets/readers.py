"""Readers of data files, one function per data set, and of tables that a study registers.

Readers of downloaded files check shape, range and counts, and raise a ``ConcordError`` that names
the file; data sets of scikit-learn are taken as they are. The expected counts are arguments so that
a part of a data set, or a file of the same format, can be read too. Labels of classes are int64: 0
and 1 of two classes, the digit 0-9 of ten. None of the formats is ever unpickled.
"""

from __future__ import annotations

import csv
import math
import warnings
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from concord.errors import ConcordError
from concord_studies.datasets.tables import rows_of

#: Columns of the MAGIC file and the closed range of each (bhar2023, section 6).
MAGIC_COLUMNS = {
    "fLength": (0.0, math.inf),
    "fWidth": (0.0, math.inf),
    "fSize": (0.0, math.inf),
    "fConc": (0.0, 1.0),
    "fConc1": (0.0, 1.0),
    "fAsym": (-math.inf, math.inf),
    "fM3Long": (-math.inf, math.inf),
    "fM3Trans": (-math.inf, math.inf),
    "fAlpha": (0.0, 90.0),
    "fDist": (0.0, math.inf),
}


def magic(
    path: str | Path, counts: tuple[int, int] = (6688, 12332)
) -> tuple[np.ndarray, np.ndarray]:
    """Read the MAGIC Gamma Telescope data (comma-separated): 10 numbers and a class, g or h.

    path: the file ``magic04.data``. counts: expected rows of class h and of class g. Returns
    features, (n, 10) float64, columns as in ``MAGIC_COLUMNS``, not standardized; and labels, (n,)
    int64, 1 for gamma (g) and 0 for hadron (h). A ConcordError if the file is missing, malformed,
    or has other values or counts.
    """
    path = existing(path, "magic")
    layout = f"lines of {len(MAGIC_COLUMNS)} comma-separated numbers and a class"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # an empty file is reported below
            cells = np.loadtxt(path, delimiter=",", dtype=str, comments=None, ndmin=2)
        if cells.shape[1] != len(MAGIC_COLUMNS) + 1:
            raise ValueError(f"{cells.shape[1]} columns")
        features = cells[:, :-1].astype(np.float64)
    except (ValueError, OSError) as error:
        raise malformed(path, layout, error) from error
    for values, (column, (low, high)) in zip(features.T, MAGIC_COLUMNS.items(), strict=True):
        wrong = ~(np.isfinite(values) & (values >= low) & (values <= high))
        if wrong.any():
            line = int(np.argmax(wrong))
            raise ConcordError(
                f"{path}: {column} of row {line + 1} is {values[line]}, which is not a finite "
                f"number in [{low:g}, {high:g}]; {AGAIN}"
            )
    classes = np.char.strip(cells[:, -1])
    if not np.isin(classes, ("g", "h")).all():
        raise ConcordError(f"{path}: the classes are not g and h only; {AGAIN}")
    labels = (classes == "g").astype(np.int64)
    check_counts(path, labels, counts)
    return features, labels


def breast_cancer() -> tuple[np.ndarray, np.ndarray]:
    """Return scikit-learn's copy of the Breast Cancer Wisconsin (Diagnostic) data.

    Returns features, (569, 30) float64, not standardized, and labels, (569,) int64, 1 for benign
    (357 rows) and 0 for malignant (212). A ConcordError if the installed scikit-learn carries other
    data.
    """
    sklearn = _sklearn()
    features, labels = sklearn.datasets.load_breast_cancer(return_X_y=True)
    source = f"scikit-learn {sklearn.__version__}, load_breast_cancer"
    if features.shape != (569, 30) or not (np.isfinite(features) & (features >= 0)).all():
        raise ConcordError(
            f"{source}: the features are not 569 x 30 finite numbers of at least 0; {_PINNED}"
        )
    labels = labels.astype(np.int64)
    check_counts(source, labels, (212, 357), _PINNED)
    return features, labels


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Return scikit-learn's digits: images (1797, 64) float64 in [0, 1], labels (1797,) int64."""
    images, labels = _sklearn().datasets.load_digits(return_X_y=True)
    return images / 16, labels.astype(np.int64)


def diabetes() -> tuple[np.ndarray, np.ndarray]:
    """Return scikit-learn's copy of the diabetes data of Efron et al. (2004).

    Returns features, (442, 10) float64, not standardized, and targets, (442,) float64, the
    progression of the disease after a year. A ConcordError if the installed scikit-learn carries
    other data.
    """
    sklearn = _sklearn()
    features, targets = sklearn.datasets.load_diabetes(return_X_y=True, scaled=False)
    if features.shape != (442, 10) or targets.min() != 25 or targets.max() != 346:
        raise ConcordError(
            f"scikit-learn {sklearn.__version__}, load_diabetes: the data are not 442 x 10, with "
            f"targets from 25 to 346; {_PINNED}"
        )
    return features, targets


AGAIN = "delete the file and fetch it again"
_PINNED = "install the version pinned in envs/requirements.lock"


def existing(path: str | Path, dataset: str) -> Path:
    """Return the path of a data set's file; a ConcordError with the command that makes it."""
    path = Path(path)
    if not path.is_file():
        raise ConcordError(
            f"{path}: there is no such file; make it with "
            f"`python -m concord_cli fetch {dataset}/{path.name} -o {path}`"
        )
    return path


def malformed(path: Path, layout: str, error: Exception, remedy: str = AGAIN) -> ConcordError:
    """Return the refusal of a file that does not have the layout of its data set."""
    detail = " ".join(str(error).split()) or type(error).__name__
    return ConcordError(f"{path}: is not {layout} ({detail}); {remedy}")


def check_counts(
    source: object, labels: np.ndarray, counts: tuple[int, int], remedy: str = AGAIN
) -> None:
    """Refuse labels 0 and 1 of which there are other numbers of rows than expected."""
    found = tuple(int(n) for n in np.bincount(labels, minlength=2))
    if found != tuple(counts):
        raise ConcordError(
            f"{source}: {found[0]} and {found[1]} rows of the two classes instead of {counts[0]} "
            f"and {counts[1]}; {remedy}"
        )


def _sklearn() -> Any:
    import sklearn.datasets  # half a second, and not all readers use it

    return sklearn


def table(path: str | Path) -> dict[str, np.ndarray]:
    """Read a CSV table with a header: its columns of numbers by name."""
    import pandas  # a quarter of a second

    path = Path(path)
    try:
        for _ in rows_of(path):
            pass  # each is as long as the header
        frame = pandas.read_csv(path)
    except (ValueError, OSError, EOFError, csv.Error, zlib.error) as error:
        raise malformed(path, "a CSV table with a header", error, "correct it") from error
    for name in frame:
        if frame[name].dtype.kind not in "fiub" or frame[name].isna().any():
            raise ConcordError(
                f"{path}: the column {name!r} has entries that are missing or no numbers; remove "
                "these rows, or code them"
            )
    return {str(name): frame[name].to_numpy() for name in frame}


def parameters(columns: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return draws by parameter of columns named theta, or theta[1], theta[2], ... in order."""
    found: dict[str, list[np.ndarray]] = {}
    for name, values in columns.items():
        found.setdefault(name.partition("[")[0], []).append(np.asarray(values, dtype=float))
    return {
        name: np.stack(parts, axis=1) if f"{name}[1]" in columns else parts[0]
        for name, parts in found.items()
    }
