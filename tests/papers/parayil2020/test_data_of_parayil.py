"""Readers of parayil2020's data: the registered files, and files of the same formats."""

import os
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

import everything

readers = everything.shared("parayil2020", "readers")
DATA = Path(os.environ.get("CONCORD_DATA_MIRROR") or everything.ROOT.parent / "shared" / "data")


def real(dataset: str, name: str, tmp_path: Path) -> Path:
    """Return where a real file is, DATASET/FILE; skip the test where there is none."""
    if not (DATA / name).is_file():
        pytest.skip(f"{DATA} has no {name}; set CONCORD_DATA_MIRROR to a folder that has it")
    (tmp_path / dataset).mkdir(exist_ok=True)
    (tmp_path / dataset / name).symlink_to(DATA / name)
    return tmp_path / dataset / name


def test_real_a9a(tmp_path):
    features, labels = readers.a9a(real("a9a", "a9a", tmp_path))
    assert features.shape == (32561, 123) and features.nnz == 451592
    assert (features.data == 1).all()
    assert np.bincount(labels).tolist() == [24720, 7841]
    assert features[0].indices.tolist()[:3] == [2, 10, 13]  # the file counts from 1


def test_real_mnist(tmp_path):
    images = readers.mnist_images(real("mnist", "t10k-images-idx3-ubyte.gz", tmp_path))
    assert images.shape == (10000, 28, 28) and images.dtype == np.uint8
    assert images.min() == 0 and images.max() == 255
    test = readers.mnist_labels(real("mnist", "t10k-labels-idx1-ubyte.gz", tmp_path))
    assert np.bincount(test).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


def test_svhn_format(tmp_path, monkeypatch):
    monkeypatch.setattr(readers, "verify", lambda name, path: path)
    colors = np.random.default_rng(1).integers(0, 256, (32, 32, 3, 4), dtype=np.uint8)
    colors[..., 3] = 255
    savemat(tmp_path / "test_32x32.mat", {"X": colors, "y": np.array([[1], [10], [9], [5]])})
    images, labels = readers.svhn(tmp_path / "test_32x32.mat")
    assert images.shape == (4, 32, 32) and images.dtype == np.float32
    red, green, blue = colors[5, 20, :, 2].astype(float)
    luma = (0.299 * red + 0.587 * green + 0.114 * blue) / 255
    assert images[2, 5, 20] == pytest.approx(luma, rel=1e-6)  # float32 rounding
    assert (images[3] == 1).all() and images.min() >= 0
    assert labels.tolist() == [1, 0, 9, 5]
