"""Readers: the real files where there are any, and tiny files of the same formats."""

import gzip
import os
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from concord.errors import ConcordError
from concord_studies.datasets import readers

ROOT = Path(__file__).resolve().parents[3]
DATA = Path(os.environ.get("CONCORD_DATA_MIRROR") or ROOT.parent / "shared" / "data")


def real(*names: str) -> Path:
    """Return the folder of real files; skip the test where they are not."""
    missing = [name for name in names if not (DATA / name).is_file()]
    if missing:
        pytest.skip(f"{DATA} has no {missing[0]}; set CONCORD_DATA_MIRROR to a folder that has it")
    return DATA


# Tiny files in the published formats -----------------------------------------------------------

SHOWERS = (
    "28.7,16.0,2.6,0.39,0.19,27.7,22.0,-8.2,40.0,81.8,g\n"
    "31.6,11.7,2.5,0.53,0.37,26.2,23.8,-9.9,6.3,205.2,h\n"
    "162.0,136.0,4.0,0.03,0.01,116.7,-64.8,-45.2,76.9,256.7,g\n"
)


def refused(words: str, call, path: Path, *args) -> None:
    """Hold that a reader refuses a file, and names it and what is wrong."""
    with pytest.raises(ConcordError, match=words) as caught:
        call(path, *args)
    assert str(caught.value).startswith(str(path))


# Real files --------------------------------------------------------------------------------------


def test_real_magic():
    features, labels = readers.magic(real("magic04.data") / "magic04.data")
    assert features.shape == (19020, 10)
    assert np.bincount(labels).tolist() == [6688, 12332]
    assert features[0].tolist() == [
        28.7967, 16.0021, 2.6449, 0.3918, 0.1982, 27.7004, 22.011, -8.2027, 40.092, 81.8828,
    ]  # fmt: skip
    assert labels[0] == 1 and labels[-1] == 0


def test_breast_cancer():
    features, labels = readers.breast_cancer()
    assert features.shape == (569, 30) and features.dtype == np.float64
    assert np.bincount(labels).tolist() == [212, 357]


# Tiny files --------------------------------------------------------------------------------------


def test_magic_format(tmp_path):
    path = tmp_path / "magic04.data"
    path.write_text(SHOWERS)
    features, labels = readers.magic(path, (1, 2))
    assert labels.tolist() == [1, 0, 1]
    assert features[1].tolist() == [31.6, 11.7, 2.5, 0.53, 0.37, 26.2, 23.8, -9.9, 6.3, 205.2]


# Contents that are refused, and the words for it.
REFUSED = {
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
}
READ = {
    "magic": lambda path: readers.magic(path, (1, 2))[0],
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
        (readers.magic, "magic/magic04.data"),
    ],
)
def test_missing_files_name_the_command(tmp_path, reader, name):
    path = tmp_path / name.partition("/")[2]
    refused(re.escape(f"python -m concord_cli fetch {name} -o {path}"), reader, path)


# Any bytes ---------------------------------------------------------------------------------------


GOOD = {
    "magic": (SHOWERS.encode(), (3, 10)),
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
