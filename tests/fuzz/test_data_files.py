"""Data files that are cut, swollen or something else: refused in one sentence with their name."""

import gzip
import struct
import tracemalloc
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
from mutations import garbled

import everything
from concord.errors import ConcordError
from concord_studies.datasets import readers

parayil = everything.shared("parayil2020", "readers")

RULE = "read, or refused in one sentence with the file's name"


def libsvm() -> bytes:
    """Six rows of a9a."""
    rows = ["-1 3:1 11:1 14:1", "+1 1:1 123:1", "-1 5:1", "+1 2:1 3:1 4:1", "-1 7:1", "-1 123:1"]
    return "".join(f"{row} \n" for row in rows).encode()


def magic() -> bytes:
    """Four rows of MAGIC."""
    row = "28.7967,16.0021,2.6449,0.3918,0.1982,27.7004,22.011,-8.2027,40.092,81.8828"
    return "".join(f"{row},{c}\n" for c in "gghg").encode()


def idx(*shape: int) -> bytes:
    head = struct.pack(f">{len(shape) + 1}I", 0x800 + len(shape), *shape)
    size = int(np.prod(shape, dtype=float))
    return gzip.compress(head + bytes(i % 10 for i in range(min(size, 10**5))), mtime=0)


def mat(**variables: Any) -> bytes:
    import io

    stream = io.BytesIO()
    scipy.io.savemat(stream, variables)
    return stream.getvalue()


def digits(count: int = 2) -> bytes:
    colors = np.arange(32 * 32 * 3 * count, dtype=np.uint8).reshape(32, 32, 3, count)
    return mat(X=colors, y=np.arange(1, count + 1)[:, None])


READERS: dict[str, tuple[Callable[[Path], Any], Callable[[], bytes]]] = {
    "a9a": (partial(parayil.a9a, counts=(4, 2)), libsvm),
    "magic": (partial(readers.magic, counts=(1, 3)), magic),
    "images": (partial(parayil.mnist_images, count=2), lambda: idx(2, 28, 28)),
    "labels": (partial(parayil.mnist_labels, count=30), lambda: idx(30)),
    "svhn": (partial(parayil.svhn, count=2), digits),
}


def outcome(read: Callable[[Path], Any], path: Path) -> str:
    try:
        read(path)
    except ConcordError as error:
        text = str(error)
        assert text.startswith(f"{path}: ") and text.isprintable() and len(text) < 600, text
        return "refused"
    return "read"


@pytest.mark.parametrize("name", READERS)
def test_the_files_themselves_are_read(name, tmp_path):
    read, make = READERS[name]
    (tmp_path / "file").write_bytes(make())
    assert outcome(read, tmp_path / "file") == "read"


# SVHN's file is verified before it is read: scipy's reader crashes on some broken ones.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "within"),
    [
        *((name, "") for name in ("a9a", "magic", "images", "labels")),
        *((name, " within gzip") for name in ("images", "labels")),
    ],
)
def test_garbled_files(name, within, tmp_path, tries):
    """Within gzip, what that would notice is left whole, and what is in it changed."""
    read, make = READERS[name]
    path, seen = tmp_path / "file", Counter()
    original = {"file": gzip.decompress(make()) if within else make()}

    def check(content: bytes) -> None:
        path.write_bytes(gzip.compress(content, 1) if within else content)
        seen[outcome(read, path)] += 1

    what = f"data file {name}, bytes{within} changed"
    tried = tries(what, RULE, 60, check, garbled(lambda: original))
    assert seen["refused"] > tried / 20


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("what", ["missing", "folder", "empty", "text", "other", "half"])
def test_other_things(name, what, tmp_path):
    read, make = READERS[name]
    path = tmp_path / "file"
    if what == "folder":
        path.mkdir()
    elif what != "missing":
        others = [other() for key, (_, other) in READERS.items() if key != name]
        contents = {"empty": b"", "text": b"<!DOCTYPE html>\n<html>\n", "other": others[0]}
        path.write_bytes(contents.get(what, make()[: len(make()) // 2]))
    assert outcome(read, path) == "refused"


LINES = {
    "feature 0": "+1 0:1",
    "feature 124": "+1 124:1",
    "a huge feature": f"+1 {10**30}:1",
    "a negative feature": "+1 -3:1",
    "no value": "+1 3",
    "a value of text": "+1 3:x",
    "a value of 2": "+1 3:2",
    "nan": "+1 3:nan",
    "class 0": "0 3:1",
    "class 2": "2 3:1",
    "no class": "3:1",
    "features out of order": "+1 5:1 3:1",
    "a feature twice": "+1 3:1 3:1",
    "several classes": "+1,-1 3:1",
    "a query": "+1 qid:3 3:1",
    "a NUL": "+1 3:1\0",
    "Latin-1": "+1 3:1 é",
    "a long line": "+1 " + " ".join(f"{i}:1" for i in range(1, 20000)),
}


@pytest.mark.parametrize("name", LINES)
def test_libsvm_lines(name, tmp_path):
    text = libsvm().decode().replace("+1 1:1 123:1", LINES[name])
    (tmp_path / "a9a").write_bytes(text.encode("latin-1"))
    found = outcome(READERS["a9a"][0], tmp_path / "a9a")
    assert found == ("read" if name == "a query" else "refused")


CELLS = ("", "x", "nan", "inf", "1e999", "-1", "1,1", "0x10", "1_0", "é", '"1"', "1 2", "\0", "#")


@pytest.mark.parametrize("cell", CELLS)
def test_magic_cells(cell, tmp_path):
    (tmp_path / "magic").write_text(magic().decode().replace("28.7967", cell, 1))
    outcome(READERS["magic"][0], tmp_path / "magic")
    (tmp_path / "magic").write_text(magic().decode().replace(",h", f",{cell}", 1))
    assert outcome(READERS["magic"][0], tmp_path / "magic") == "refused"


SHAPES = ((2, 28, 27), (1, 28, 28), (3, 28, 28), (2, 28), (2, 28, 28, 1), (2**32 - 1,) * 3)


@pytest.mark.parametrize("shape", SHAPES)
def test_idx_of_other_shapes(shape, tmp_path):
    (tmp_path / "images").write_bytes(idx(*shape))
    assert outcome(READERS["images"][0], tmp_path / "images") == "refused"


@pytest.mark.parametrize(
    "head", [b"", b"\0", b"\0\0\x0d\x03", b"\x1f\x8b", struct.pack(">I", 0x803)]
)
def test_idx_of_other_heads(head, tmp_path):
    (tmp_path / "images").write_bytes(gzip.compress(head + bytes(2000)))
    assert outcome(READERS["images"][0], tmp_path / "images") == "refused"


def test_a_gzip_bomb_is_not_unpacked(tmp_path):
    """200 MB of zeros in 200 kB: no more is unpacked than the file should hold."""
    path = tmp_path / "images"
    head = struct.pack(">4I", 0x803, 2, 28, 28)
    with gzip.open(path, "wb", 1) as stream:
        stream.write(head)
        for _ in range(200):
            stream.write(bytes(10**6))
    tracemalloc.start()
    try:
        assert outcome(READERS["images"][0], path) == "refused"
        assert tracemalloc.get_traced_memory()[1] < 10**7
    finally:
        tracemalloc.stop()


MATS = {
    "no X": lambda: mat(y=np.ones((2, 1))),
    "no y": lambda: mat(X=np.zeros((32, 32, 3, 2), np.uint8)),
    "other shape": lambda: mat(X=np.zeros((32, 32, 2), np.uint8), y=np.ones((2, 1))),
    "other type": lambda: mat(X=np.zeros((32, 32, 3, 2)), y=np.ones((2, 1))),
    "text": lambda: mat(X="text", y="text"),
    "cells": lambda: mat(X=np.array([[1], "a"], dtype=object), y=np.ones((2, 1))),
    "struct": lambda: mat(X={"a": 1}, y={"b": 2}),
    "class 0": lambda: mat(X=np.zeros((32, 32, 3, 2), np.uint8), y=np.array([[0], [1]])),
    "class 1.5": lambda: mat(X=np.zeros((32, 32, 3, 2), np.uint8), y=np.array([[1.5], [1]])),
    "class nan": lambda: mat(X=np.zeros((32, 32, 3, 2), np.uint8), y=np.array([[np.nan], [1]])),
    "complex": lambda: mat(X=np.zeros((32, 32, 3, 2), np.uint8), y=np.array([[1j], [1]])),
    "HDF5": lambda: b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + bytes(500),
    "version 4": lambda: struct.pack("<5i", 0, 2**31 - 1, 2**31 - 1, 0, 2) + b"X\0" + bytes(64),
}


@pytest.mark.parametrize("name", MATS)
def test_mat_files(name, tmp_path):
    (tmp_path / "svhn").write_bytes(MATS[name]())
    assert outcome(READERS["svhn"][0], tmp_path / "svhn") == "refused"
