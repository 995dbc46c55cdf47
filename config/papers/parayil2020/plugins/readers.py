"""Readers of the data of parayil2020: a9a, MNIST and SVHN.

Each checks shape, range and counts and raises a ``ConcordError`` that names the file. The expected
counts are arguments so that a part of a data set can be read too. Labels are int64.
"""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from concord.errors import ConcordError
from concord_studies.datasets.readers import AGAIN, check_counts, existing, malformed

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


def a9a(path: str | Path, counts: tuple[int, int] = (24720, 7841)) -> tuple[csr_matrix, np.ndarray]:
    """Read a9a (svmlight text): 123 binary features, classes -1 and +1.

    path: the file ``a9a``. counts: expected rows of class -1 and of class +1. Returns
    features, (n, 123) float64, compressed sparse rows, every stored value 1, no intercept column;
    and labels, (n,) int64, 0 for class -1 and 1 for class +1. A ConcordError if the file is
    missing, malformed, or has other values or counts.
    """
    from sklearn.datasets import load_svmlight_file  # half a second, and of one data set

    path = existing(path, "a9a")
    try:
        features, signs = load_svmlight_file(
            str(path), n_features=123, dtype=np.float64, zero_based=False
        )
    except (ValueError, OverflowError, OSError, EOFError) as error:
        raise malformed(path, "svmlight text with feature numbers 1 to 123", error) from error
    if not np.all(np.abs(signs) == 1):
        raise ConcordError(f"{path}: the classes are not -1 and +1 only; {AGAIN}")
    if not np.all(features.data == 1):
        raise ConcordError(f"{path}: the stored feature values are not all 1; {AGAIN}")
    labels = (signs > 0).astype(np.int64)
    check_counts(path, labels, counts)
    return features, labels


def mnist_images(path: str | Path, count: int) -> np.ndarray:
    """Read ``count`` MNIST images, (count, 28, 28) uint8.

    A ConcordError if the file is missing, truncated, malformed, or holds another number of images.
    """
    return _idx(existing(path, "mnist"), (count, 28, 28))


def mnist_labels(path: str | Path, count: int) -> np.ndarray:
    """Read ``count`` MNIST labels, (count,) int64 in 0-9; errors as in ``mnist_images``."""
    path = existing(path, "mnist")
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
                    f"(unsigned bytes of shape {' x '.join(map(str, shape))}); {AGAIN}"
                )
            received = stream.readinto(values.data)
            # The read beyond the end also makes gzip compare its checksum.
            if received != values.size or stream.read(1):
                raise ConcordError(
                    f"{path}: holds {'more than ' if received == values.size else ''}{received} "
                    f"values instead of {values.size}; {AGAIN}"
                )
    except (OSError, EOFError, zlib.error) as error:
        raise malformed(path, "a complete gzip file", error) from error
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

    path = existing(path, "svhn")
    try:
        content = loadmat(path, variable_names=("X", "y"))
        colors, classes = content["X"], content["y"]
    except Exception as error:  # scipy reports a malformed file by many types
        raise malformed(path, "a MATLAB 5 file with the variables X and y", error) from error
    if not (isinstance(colors, np.ndarray) and isinstance(classes, np.ndarray)):
        raise ConcordError(f"{path}: X and y are not arrays; {AGAIN}")
    if colors.shape != (32, 32, 3, count) or colors.dtype != np.uint8:
        raise ConcordError(
            f"{path}: X is {colors.dtype} of shape {colors.shape} instead of uint8 of shape "
            f"{(32, 32, 3, count)}; {AGAIN}"
        )
    if classes.shape != (count, 1) or classes.dtype.kind not in "uif":
        raise ConcordError(
            f"{path}: y is {classes.dtype} of shape {classes.shape} instead of numbers of shape "
            f"{(count, 1)}; {AGAIN}"
        )
    _check_digits(path, classes, 1, 10)
    # Integer weights are exact in float32, so white is exactly 1.
    grey = np.zeros((32, 32, count), dtype=np.float32)
    for channel, weight in enumerate((299, 587, 114)):
        grey += np.float32(weight) * colors[:, :, channel]
    grey /= np.float32(255_000)
    labels = classes[:, 0].astype(np.int64) % 10
    return np.ascontiguousarray(grey.transpose(2, 0, 1)), labels


def _check_digits(path: Path, labels: np.ndarray, low: int, high: int) -> None:
    wrong = ~((labels >= low) & (labels <= high) & (labels == np.floor(labels)))
    if wrong.any():
        raise ConcordError(
            f"{path}: label {labels[wrong].flat[0]} is not a whole number from {low} to {high}; "
            f"{AGAIN}"
        )
