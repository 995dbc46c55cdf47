"""Readers: the real files where there are any, and tiny files of the same formats."""

import gzip
import io
import os
import re
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import everything
from concord.errors import ConcordError
from concord_studies.datasets import readers

parayil = everything.shared("parayil2020", "readers")

ROOT = Path(__file__).resolve().parents[3]
DATA = Path(os.environ.get("CONCORD_DATA_MIRROR") or ROOT.parent / "shared" / "data")


def real(*names: str) -> Path:
    """Return the folder of real files; skip the test where they are not."""
    missing = [name for name in names if not (DATA / name).is_file()]
    if missing:
        pytest.skip(f"{DATA} has no {missing[0]}; set CONCORD_DATA_MIRROR to a folder that has it")
    return DATA


# Tiny files in the published formats -----------------------------------------------------------

SVMLIGHT = "-1 1:1 3:1 123:1 \n+1 2:1 \n-1 7:1 9:1\n"
SHOWERS = (
    "28.7,16.0,2.6,0.39,0.19,27.7,22.0,-8.2,40.0,81.8,g\n"
    "31.6,11.7,2.5,0.53,0.37,26.2,23.8,-9.9,6.3,205.2,h\n"
    "162.0,136.0,4.0,0.03,0.01,116.7,-64.8,-45.2,76.9,256.7,g\n"
)


def idx(values: np.ndarray) -> bytes:
    header = struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape)
    return gzip.compress(header + values.astype(np.uint8).tobytes(), mtime=0)


def write_mnist(folder: Path, counts: tuple[int, int]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    arrays = {}
    for part, count in zip(("train", "t10k"), counts, strict=True):
        arrays[f"{part}-images-idx3-ubyte.gz"] = rng.integers(0, 256, (count, 28, 28))
        arrays[f"{part}-labels-idx1-ubyte.gz"] = rng.integers(0, 10, count)
    for name, values in arrays.items():
        (folder / name).write_bytes(idx(values))
    return arrays


def mat(**variables: np.ndarray) -> bytes:
    """Return a MATLAB file."""
    from scipy.io import savemat

    savemat(file := io.BytesIO(), variables, do_compression=True)
    return file.getvalue()


def refused(words: str, call, path: Path, *args) -> None:
    """Hold that a reader refuses a file, and names it and what is wrong."""
    with pytest.raises(ConcordError, match=words) as caught:
        call(path, *args)
    assert str(caught.value).startswith(str(path))


# Real files --------------------------------------------------------------------------------------


def test_real_a9a():
    features, labels = parayil.a9a(real("a9a") / "a9a")
    assert features.shape == (32561, 123)
    assert features.nnz == 451592
    assert features.dtype == np.float64 and labels.dtype == np.int64
    assert np.bincount(labels).tolist() == [24720, 7841]
    assert labels[0] == 0
    assert features[0].indices.tolist()[:3] == [2, 10, 13]  # the file counts from 1


def test_real_magic():
    features, labels = readers.magic(real("magic04.data") / "magic04.data")
    assert features.shape == (19020, 10)
    assert np.bincount(labels).tolist() == [6688, 12332]
    assert features[0].tolist() == [
        28.7967, 16.0021, 2.6449, 0.3918, 0.1982, 27.7004, 22.011, -8.2027, 40.092, 81.8828,
    ]  # fmt: skip
    assert labels[0] == 1 and labels[-1] == 0


def test_real_mnist():
    folder = real(
        "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz", "train-labels-idx1-ubyte.gz"
    )
    images = parayil.mnist_images(folder / "t10k-images-idx3-ubyte.gz", 10000)
    assert images.shape == (10000, 28, 28) and images.dtype == np.uint8
    assert images.min() == 0 and images.max() == 255
    test = parayil.mnist_labels(folder / "t10k-labels-idx1-ubyte.gz", 10000)
    assert np.bincount(test).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    train = parayil.mnist_labels(folder / "train-labels-idx1-ubyte.gz", 60000)
    assert train[:5].tolist() == [5, 0, 4, 1, 9]
    assert train.shape == (60000,)


def test_real_svhn():
    images, labels = parayil.svhn(real("test_32x32.mat") / "test_32x32.mat")
    assert images.shape == (26032, 32, 32)
    assert np.bincount(labels)[0] == 1744


def test_breast_cancer():
    features, labels = readers.breast_cancer()
    assert features.shape == (569, 30) and features.dtype == np.float64
    assert np.bincount(labels).tolist() == [212, 357]


# Tiny files --------------------------------------------------------------------------------------


def test_a9a_format(tmp_path):
    path = tmp_path / "a9a"
    path.write_text(SVMLIGHT)
    features, labels = parayil.a9a(path, (2, 1))
    expected = np.zeros((3, 123))
    expected[[0, 0, 0, 1, 2, 2], [0, 2, 122, 1, 6, 8]] = 1
    assert np.array_equal(features.toarray(), expected)
    assert labels.tolist() == [0, 1, 0]


def test_magic_format(tmp_path):
    path = tmp_path / "magic04.data"
    path.write_text(SHOWERS)
    features, labels = readers.magic(path, (1, 2))
    assert labels.tolist() == [1, 0, 1]
    assert features[1].tolist() == [31.6, 11.7, 2.5, 0.53, 0.37, 26.2, 23.8, -9.9, 6.3, 205.2]


def test_mnist_format(tmp_path):
    arrays = write_mnist(tmp_path, (5, 3))
    for part, count in (("train", 5), ("t10k", 3)):
        names = f"{part}-images-idx3-ubyte.gz", f"{part}-labels-idx1-ubyte.gz"
        images = parayil.mnist_images(tmp_path / names[0], count)
        labels = parayil.mnist_labels(tmp_path / names[1], count)
        assert images.dtype == np.uint8 and labels.dtype == np.int64
        assert np.array_equal(images, arrays[names[0]]) and np.array_equal(labels, arrays[names[1]])


def test_svhn_format(tmp_path):
    colors = np.random.default_rng(1).integers(0, 256, (32, 32, 3, 4), dtype=np.uint8)
    colors[..., 3] = 255
    classes = np.array([[1], [10], [9], [5]], dtype=np.uint8)
    (tmp_path / "test_32x32.mat").write_bytes(mat(X=colors, y=classes))
    images, labels = parayil.svhn(tmp_path / "test_32x32.mat", 4)
    assert images.shape == (4, 32, 32) and images.dtype == np.float32
    red, green, blue = colors[5, 20, :, 2].astype(float)
    luma = (0.299 * red + 0.587 * green + 0.114 * blue) / 255
    assert images[2, 5, 20] == pytest.approx(luma, rel=1e-6)  # float32 rounding
    assert (images[3] == 1).all() and images.min() >= 0
    assert labels.tolist() == [1, 0, 9, 5]


WHOLE = idx(np.full((4, 28, 28), 7))
COLORS, TWO = np.zeros((32, 32, 3, 2), np.uint8), np.ones((2, 1))

# Contents that are refused, and the words for it.
REFUSED = {
    "a9a": [
        (SVMLIGHT.replace("123:1", "124:1"), "feature numbers 1 to 123"),
        (SVMLIGHT.replace(" 1:1", " 0:1"), "feature numbers 1 to 123"),
        (SVMLIGHT.replace("+1 ", "2 "), "not -1 and \\+1"),
        (SVMLIGHT.replace("+1 ", "nan "), "not -1 and \\+1"),
        (SVMLIGHT.replace("2:1", "2:0.5"), "not all 1"),
        (SVMLIGHT.replace("7:1 9:1", "7:1 7:1"), "svmlight .*unique"),
        (SVMLIGHT + "+1 1:1\n", "2 and 2 rows .* instead of 2 and 1"),
        ("", "instead of 2 and 1|svmlight"),
        ("<!DOCTYPE html><html><body>404</body></html>", "svmlight"),
    ],
    "magic": [
        (SHOWERS.replace(",h", ",x"), "not g and h"),
        (SHOWERS.replace("16.0", "nan"), "fWidth of row 1 is nan"),
        (SHOWERS.replace("205.2", "inf"), "fDist of row 2 is inf"),
        (SHOWERS.replace("0.39", "1.39"), r"fConc of row 1 is 1.39, .* in \[0, 1\]"),
        (SHOWERS.replace("162.0,", ""), "lines of 10"),
        (SHOWERS.replace("31.6", "many"), "lines of 10"),
        ("1,2,g\n", "3 columns"),
        (SHOWERS + SHOWERS, "2 and 4 rows .* instead of 1 and 2"),
        ("", "lines of 10"),
        ("<html>\n<body>gone</body>\n</html>", "lines of 10"),
    ],
    "mnist": [
        (WHOLE[:-20], "complete gzip"),
        (b"", "header is empty"),
        (WHOLE[:-5] + bytes([WHOLE[-5] ^ 1]) + WHOLE[-4:], "complete gzip"),
        (b"<html>" + WHOLE, "complete gzip"),
        (idx(np.zeros((4, 28, 27))), "header .* 4 x 28 x 28"),
        (idx(np.zeros((5, 28, 28))), "header .* 4 x 28 x 28"),
        (idx(np.zeros(4)), "header .* 4 x 28 x 28"),
        (gzip.compress(gzip.decompress(WHOLE)[:-1], mtime=0), "holds 3135 values"),
        (gzip.compress(gzip.decompress(WHOLE) + b"1", mtime=0), "more than 3136 values"),
    ],
    "labels": [(idx(np.array([3, 10, 0, 0])), "label 10 is not a whole number from 0 to 9")],
    "svhn": [
        (mat(X=np.zeros((32, 32, 3, 3), np.uint8), y=TWO), "X is uint8 of shape"),
        (mat(X=np.zeros((32, 32, 3, 2)), y=TWO), "X is float64 of shape"),
        (mat(X=COLORS, y=np.ones((3, 1))), "y is .* of shape"),
        (mat(X=COLORS, y=np.array([[0], [1]])), "label 0 is not"),
        (mat(X=COLORS, y=np.array([[11], [1]])), "label 11 is not"),
        (mat(X=COLORS, y=np.array([[1.5], [1]])), "label 1.5 is not"),
        (mat(X=COLORS, y=np.array([[np.nan], [1]])), "label nan is not"),
        (mat(X=COLORS, y=np.array([["a"], ["b"]])), "y is .* of shape"),
        (mat(images=np.zeros(3)), "variables X and y"),
    ],
}
READ = {
    "a9a": lambda path: parayil.a9a(path, (2, 1))[0].toarray(),
    "magic": lambda path: readers.magic(path, (1, 2))[0],
    "mnist": lambda path: parayil.mnist_images(path, 4),
    "labels": lambda path: parayil.mnist_labels(path, 4),
    "svhn": lambda path: parayil.svhn(path, 2)[0],
}


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    ("name", "content", "words"), [(name, *case) for name in REFUSED for case in REFUSED[name]]
)
def test_what_is_wrong_is_told(tmp_path, name, content, words):
    refused(words, READ[name], written(tmp_path / name, content))


@pytest.mark.parametrize(
    ("reader", "name"),
    [
        (parayil.a9a, "a9a/a9a"),
        (readers.magic, "magic/magic04.data"),
        (lambda path: parayil.mnist_images(path, 1), "mnist/train-images-idx3-ubyte.gz"),
        (parayil.svhn, "svhn/test_32x32.mat"),
    ],
)
def test_missing_files_name_the_command(tmp_path, reader, name):
    path = tmp_path / name.partition("/")[2]
    refused(re.escape(f"python -m concord_cli fetch {name} -o {path}"), reader, path)


# Any bytes ---------------------------------------------------------------------------------------


GOOD = {
    "a9a": (SVMLIGHT.encode(), (3, 123)),
    "magic": (SHOWERS.encode(), (3, 10)),
    "mnist": (WHOLE, (4, 28, 28)),
    "svhn": (mat(X=COLORS, y=TWO), (2, 32, 32)),
}


@pytest.mark.parametrize("name", GOOD)
@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    changes=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), max_size=3),
    keep=st.floats(0, 1) | st.just(1.0),
    rubbish=st.none() | st.binary(max_size=200),
)
def test_damaged_bytes_never_escape(tmp_path, name, changes, keep, rubbish):
    """Either the reader refuses in its own words, or what it returns passes the checks."""
    good, shape = GOOD[name]
    content = bytearray(good if rubbish is None else rubbish)
    for position, value in changes:
        if content:
            content[int(position * (len(content) - 1))] = value
    path = written(tmp_path / "file", bytes(content[: round(keep * len(content))]))
    try:
        found = READ[name](path)
        assert found.shape == shape and np.isfinite(found).all()
    except ConcordError as error:
        assert str(error).startswith(str(path)) and "\n" not in str(error)


# Tables of one's own -----------------------------------------------------------------------------

RAGGED = {
    "longer than the header": ("x,y\n1,2,3\n4,5,6\n", "line 2 .* has 2 cells: it has 3"),
    "one of them longer": ("x,y\n1,2\n4,5,6\n", "line 3 .* has 2 cells: it has 3"),
    "a comma at the end": ("x,y\n1,2,\n4,5,\n", "line 2 .* has 2 cells: it has 3"),
    "one of them shorter": ("x,y\n1,2\n\n4\n", "line 4 .* has 2 cells: it has 1"),
    "shorter, after a cell of two lines": ('x,y\n1,"2\n"\n4\n', "line 4 .*: it has 1"),
    "empty": ("", "it has no row below a header"),
    "a header alone": ("x,y\n", "it has no row below a header"),
    "not UTF-8": (b"x,y\n1,\xff\n", "is not a CSV table with a header .*; correct it"),
}


@pytest.mark.parametrize("name", RAGGED)
@pytest.mark.parametrize("suffix", ["csv", "csv.gz"])
def test_rows_of_a_table_are_as_long_as_its_header(tmp_path, name, suffix):
    content, words = RAGGED[name]
    path = tmp_path / f"rows.{suffix}"
    content = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    refused(words, readers.table, path)


def test_tables_may_have_blank_lines_and_a_byte_order_mark(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text('\ufeff"x, in m",y\r\n\r\n1,2.5\r\n3,4\r\n\r\n')
    columns = readers.table(path)
    assert {name: values.tolist() for name, values in columns.items()} == {
        "x, in m": [1, 3],
        "y": [2.5, 4.0],
    }
