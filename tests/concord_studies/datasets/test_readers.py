"""Readers: the real files where there are any, and tiny files of the same formats."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

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


def test_real_magic():
    features, labels = readers.magic(real("magic04.data") / "magic04.data")
    assert features.shape == (19020, 10)
    assert np.bincount(labels).tolist() == [6688, 12332]
    assert features[0].tolist() == [
        28.7967, 16.0021, 2.6449, 0.3918, 0.1982, 27.7004, 22.011, -8.2027, 40.092, 81.8828,
    ]  # fmt: skip
    assert labels[0] == 1 and labels[-1] == 0


# Tiny files in the published formats, in place of the registered ones -----------------------------


@pytest.mark.parametrize("content", [None, b"", b"<html>gone</html>"])
def test_another_file_is_refused_with_the_command_that_makes_it(tmp_path, content):
    path = tmp_path / "magic04.data"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(
        ConcordError, match=rf"make it with `concord fetch magic/magic04.data -o {path}`"
    ):
        readers.magic(path)


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
    with pytest.raises(ConcordError, match=words):
        readers.table(path)
