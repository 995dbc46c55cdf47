"""Readers of the data files, one function per data set.

Each checks shape, range and counts and raises a ``ConcordError`` that names the file. The expected
counts are arguments so that a part of a data set, or a file of the same format, can be read too.
Labels are int64: 0 and 1 in the two-class sets, the digit 0-9 in the others. None of the formats
is ever unpickled.
"""

from __future__ import annotations

import csv
import gzip
import json
import math
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from concord.errors import ConcordError
from concord_studies.datasets.tables import rows_of

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

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


def a9a(path: str | Path, counts: tuple[int, int] = (24720, 7841)) -> tuple[csr_matrix, np.ndarray]:
    """Read a9a (svmlight text): 123 binary features, classes -1 and +1.

    path: the file ``a9a``. counts: expected rows of class -1 and of class +1. Returns
    features, (n, 123) float64, compressed sparse rows, every stored value 1, no intercept column;
    and labels, (n,) int64, 0 for class -1 and 1 for class +1. A ConcordError if the file is
    missing, malformed, or has other values or counts.
    """
    path = _existing(path, "a9a")
    try:
        features, signs = _sklearn().datasets.load_svmlight_file(
            str(path), n_features=123, dtype=np.float64, zero_based=False
        )
    except (ValueError, OverflowError, OSError, EOFError) as error:
        raise _malformed(path, "svmlight text with feature numbers 1 to 123", error) from error
    if not np.all(np.abs(signs) == 1):
        raise ConcordError(f"{path}: the classes are not -1 and +1 only; {_AGAIN}")
    if not np.all(features.data == 1):
        raise ConcordError(f"{path}: the stored feature values are not all 1; {_AGAIN}")
    labels = (signs > 0).astype(np.int64)
    _check_counts(path, labels, counts)
    return features, labels


def magic(
    path: str | Path, counts: tuple[int, int] = (6688, 12332)
) -> tuple[np.ndarray, np.ndarray]:
    """Read the MAGIC Gamma Telescope data (comma-separated): 10 numbers and a class, g or h.

    path: the file ``magic04.data``. counts: expected rows of class h and of class g. Returns
    features, (n, 10) float64, columns as in ``MAGIC_COLUMNS``, not standardized; and labels, (n,)
    int64, 1 for gamma (g) and 0 for hadron (h). A ConcordError if the file is missing, malformed,
    or has other values or counts.
    """
    path = _existing(path, "magic")
    layout = f"lines of {len(MAGIC_COLUMNS)} comma-separated numbers and a class"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # an empty file is reported below
            cells = np.loadtxt(path, delimiter=",", dtype=str, comments=None, ndmin=2)
        if cells.shape[1] != len(MAGIC_COLUMNS) + 1:
            raise ValueError(f"{cells.shape[1]} columns")
        features = cells[:, :-1].astype(np.float64)
    except (ValueError, OSError) as error:
        raise _malformed(path, layout, error) from error
    for values, (column, (low, high)) in zip(features.T, MAGIC_COLUMNS.items(), strict=True):
        wrong = ~(np.isfinite(values) & (values >= low) & (values <= high))
        if wrong.any():
            line = int(np.argmax(wrong))
            raise ConcordError(
                f"{path}: {column} of row {line + 1} is {values[line]}, which is not a finite "
                f"number in [{low:g}, {high:g}]; {_AGAIN}"
            )
    classes = np.char.strip(cells[:, -1])
    if not np.isin(classes, ("g", "h")).all():
        raise ConcordError(f"{path}: the classes are not g and h only; {_AGAIN}")
    labels = (classes == "g").astype(np.int64)
    _check_counts(path, labels, counts)
    return features, labels


def mnist_images(path: str | Path, count: int) -> np.ndarray:
    """Read ``count`` MNIST images, (count, 28, 28) uint8.

    A ConcordError if the file is missing, truncated, malformed, or holds another number of images.
    """
    return _idx(_existing(path, "mnist"), (count, 28, 28))


def mnist_labels(path: str | Path, count: int) -> np.ndarray:
    """Read ``count`` MNIST labels, (count,) int64 in 0-9; errors as in ``mnist_images``."""
    path = _existing(path, "mnist")
    labels = _idx(path, (count,)).astype(np.int64)
    _check_digits(path, labels, 0, 9)
    return labels


def _idx(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    """Read a gzipped idx file of unsigned bytes: magic number, dimensions, values."""
    # Two zero bytes, 8 for unsigned bytes, the number of dimensions; then each in big endian.
    header = np.array([0x800 + len(shape), *shape], dtype=">u4").tobytes()
    values = np.empty(math.prod(shape), dtype=np.uint8)
    try:
        with gzip.open(path) as stream:
            found = stream.read(len(header))
            if found != header:
                raise ConcordError(
                    f"{path}: the idx header is {found.hex() or 'empty'} instead of {header.hex()} "
                    f"(unsigned bytes of shape {' x '.join(map(str, shape))}); {_AGAIN}"
                )
            received = stream.readinto(values.data)
            # The read beyond the end also makes gzip compare its checksum.
            if received != values.size or stream.read(1):
                raise ConcordError(
                    f"{path}: holds {'more than ' if received == values.size else ''}{received} "
                    f"values instead of {values.size}; {_AGAIN}"
                )
    except (OSError, EOFError, zlib.error) as error:
        raise _malformed(path, "a complete gzip file", error) from error
    return values.reshape(shape)


def svhn(path: str | Path, count: int = 26032) -> tuple[np.ndarray, np.ndarray]:
    """Read the cropped digits of SVHN (MATLAB 5 file) as grey images.

    Grey is the luma of ITU-R BT.601, 0.299 R + 0.587 G + 0.114 B, divided by 255.

    path: the file ``test_32x32.mat`` with X (32, 32, 3, n) and y (n, 1). count: expected number n
    of images. Returns images (n, 32, 32) float32 in [0, 1], and labels, (n,) int64, where the
    file's class 10 is digit 0. A ConcordError if the file is missing, malformed, or has other
    shapes, types, counts or labels.
    """
    from scipy.io import loadmat  # of one data set

    path = _existing(path, "svhn")
    try:
        content = loadmat(path, variable_names=("X", "y"))
        colors, classes = content["X"], content["y"]
    except Exception as error:  # scipy reports a malformed file by many types
        raise _malformed(path, "a MATLAB 5 file with the variables X and y", error) from error
    if not (isinstance(colors, np.ndarray) and isinstance(classes, np.ndarray)):
        raise ConcordError(f"{path}: X and y are not arrays; {_AGAIN}")
    if colors.shape != (32, 32, 3, count) or colors.dtype != np.uint8:
        raise ConcordError(
            f"{path}: X is {colors.dtype} of shape {colors.shape} instead of uint8 of shape "
            f"{(32, 32, 3, count)}; {_AGAIN}"
        )
    if classes.shape != (count, 1) or classes.dtype.kind not in "uif":
        raise ConcordError(
            f"{path}: y is {classes.dtype} of shape {classes.shape} instead of numbers of shape "
            f"{(count, 1)}; {_AGAIN}"
        )
    _check_digits(path, classes, 1, 10)
    # Integer weights are exact in float32, so white is exactly 1.
    grey = np.zeros((32, 32, count), dtype=np.float32)
    for channel, weight in enumerate((299, 587, 114)):
        grey += np.float32(weight) * colors[:, :, channel]
    grey /= np.float32(255_000)
    labels = classes[:, 0].astype(np.int64) % 10
    return np.ascontiguousarray(grey.transpose(2, 0, 1)), labels


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
    _check_counts(source, labels, (212, 357), _PINNED)
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


_AGAIN = "delete the file and fetch it again"
_PINNED = "install the version pinned in envs/requirements.lock"


def _existing(path: str | Path, dataset: str) -> Path:
    path = Path(path)
    if not path.is_file():
        raise ConcordError(
            f"{path}: there is no such file; make it with "
            f"`python -m concord_cli fetch {dataset}/{path.name} -o {path}`"
        )
    return path


def _malformed(path: Path, layout: str, error: Exception, remedy: str = _AGAIN) -> ConcordError:
    detail = " ".join(str(error).split()) or type(error).__name__
    return ConcordError(f"{path}: is not {layout} ({detail}); {remedy}")


def _check_counts(
    source: object, labels: np.ndarray, counts: tuple[int, int], remedy: str = _AGAIN
) -> None:
    found = tuple(int(n) for n in np.bincount(labels, minlength=2))
    if found != tuple(counts):
        raise ConcordError(
            f"{source}: {found[0]} and {found[1]} rows of the two classes instead of {counts[0]} "
            f"and {counts[1]}; {remedy}"
        )


def _check_digits(path: Path, labels: np.ndarray, low: int, high: int) -> None:
    wrong = ~((labels >= low) & (labels <= high) & (labels == np.floor(labels)))
    if wrong.any():
        raise ConcordError(
            f"{path}: label {labels[wrong].flat[0]} is not a whole number from {low} to {high}; "
            f"{_AGAIN}"
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
        raise _malformed(path, "a CSV table with a header", error, "correct it") from error
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


def posteriordb(data: str | Path, draws: str | Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read a posterior of posteriordb: its data by name, and its reference draws by parameter."""
    given, chains = (_zipped(_existing(path, "posterior")) for path in (data, draws))
    columns = {name: np.concatenate([chain[name] for chain in chains]) for name in chains[0]}
    arrays = {n: np.asarray(v) if isinstance(v, list) else v for n, v in given.items()}
    return arrays, parameters(columns)


def _zipped(path: Path) -> Any:
    try:
        with zipfile.ZipFile(path) as archive:
            return json.loads(archive.read(archive.namelist()[0]))
    except (zipfile.BadZipFile, ValueError, IndexError, OSError) as error:
        raise _malformed(path, "one JSON document in a ZIP archive", error) from error
