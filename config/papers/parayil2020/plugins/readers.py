"""Readers of the data of parayil2020: a9a, MNIST and SVHN.

Only the registered files are read (config/datasets.yaml has their SHA-256): what they hold is
known. Labels are int64.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from concord_studies.datasets.readers import existing
from concord_studies.datasets.registry import verify

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


def _verified(path: Path) -> Path:
    """Return the path DATASET/FILE of a registered file; refuse one that is missing or another."""
    dataset = path.parent.name
    return verify(f"{dataset}/{path.name}", existing(path, dataset))


def a9a(path: Path) -> tuple[csr_matrix, np.ndarray]:
    """Read a9a (svmlight text): 123 binary features, and the classes 0 and 1.

    Returns features, (32561, 123) float64, compressed sparse rows, every stored value 1, no
    intercept column; and labels, (32561,), 0 for the file's class -1.
    """
    from sklearn.datasets import load_svmlight_file  # half a second, and of one data set

    features, signs = load_svmlight_file(str(_verified(path)), n_features=123, zero_based=False)
    return features, (signs > 0).astype(np.int64)


def mnist_images(path: Path) -> np.ndarray:
    """Read MNIST images, (n, 28, 28) uint8."""
    with gzip.open(_verified(path)) as stream:
        return np.frombuffer(stream.read(), np.uint8, offset=16).reshape(-1, 28, 28)


def mnist_labels(path: Path) -> np.ndarray:
    """Read MNIST labels, (n,) in 0-9."""
    with gzip.open(_verified(path)) as stream:
        return np.frombuffer(stream.read(), np.uint8, offset=8).astype(np.int64)


def svhn(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read the cropped digits of SVHN (MATLAB 5 file) as grey images.

    Grey is the luma of ITU-R BT.601, 0.299 R + 0.587 G + 0.114 B, divided by 255. Returns images
    (n, 32, 32) float32 in [0, 1], and labels, (n,), where the file's class 10 is digit 0.
    """
    from scipy.io import loadmat  # of one data set

    content = loadmat(_verified(path), variable_names=("X", "y"))
    # Integer weights are exact in float32, so white is exactly 1.
    grey = sum(
        np.float32(weight) * content["X"][:, :, channel]
        for channel, weight in enumerate((299, 587, 114))
    ) / np.float32(255_000)
    return np.ascontiguousarray(grey.transpose(2, 0, 1)), content["y"][:, 0].astype(np.int64) % 10
