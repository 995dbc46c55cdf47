"""Readers of the data of parayil2020, a9a, MNIST and SVHN: registered files, which are verified."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from concord_studies.datasets.registry import verify

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


def a9a(path: Path) -> tuple[csr_matrix, np.ndarray]:
    """Read a9a (svmlight text): 123 binary features, classes -1 and +1.

    Returns features, (32561, 123) float64, compressed sparse rows, every stored value 1, no
    intercept column; and labels, (32561,) int64, 0 for class -1 and 1 for class +1.
    """
    from sklearn.datasets import load_svmlight_file  # half a second, and of one data set

    path = verify("a9a/a9a", path)
    features, signs = load_svmlight_file(str(path), n_features=123, zero_based=False)
    return features, (signs > 0).astype(np.int64)


def mnist_images(path: Path) -> np.ndarray:
    """Read MNIST images, (images, 28, 28) uint8."""
    return _idx(path, dimensions=3)


def mnist_labels(path: Path) -> np.ndarray:
    """Read MNIST labels, (images,) int64 in 0-9."""
    return _idx(path, dimensions=1).astype(np.int64)


def _idx(path: Path, dimensions: int) -> np.ndarray:
    """Read a gzipped idx file of unsigned bytes: magic number, sizes in big endian, values."""
    with gzip.open(verify(f"mnist/{path.name}", path)) as stream:
        _, *shape = np.frombuffer(stream.read(4 + 4 * dimensions), dtype=">u4")
        return np.array(np.frombuffer(stream.read(), dtype=np.uint8)).reshape(shape)


def svhn(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read the cropped digits of SVHN (MATLAB 5 file) as grey images.

    Grey is the luma of ITU-R BT.601, 0.299 R + 0.587 G + 0.114 B, divided by 255.

    path: the file ``test_32x32.mat`` with X (32, 32, 3, n) and y (n, 1). Returns images
    (n, 32, 32) float32 in [0, 1], and labels, (n,) int64, where the file's class 10 is digit 0.
    """
    from scipy.io import loadmat  # of one data set

    content = loadmat(verify("svhn/test_32x32.mat", path), variable_names=("X", "y"))
    colors, classes = content["X"], content["y"]
    # Integer weights are exact in float32, so white is exactly 1.
    grey = np.zeros((32, 32, len(classes)), dtype=np.float32)
    for channel, weight in enumerate((299, 587, 114)):
        grey += np.float32(weight) * colors[:, :, channel]
    grey /= np.float32(255_000)
    labels = classes[:, 0].astype(np.int64) % 10
    return np.ascontiguousarray(grey.transpose(2, 0, 1)), labels
