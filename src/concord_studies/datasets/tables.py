"""Tables that are kept with the project: other people's points, and numbers that they recorded."""

import csv
import gzip
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from msgspec import field

from concord.errors import ConcordError
from concord.options import Count, Index, Options
from concord_studies.datasets.registry import verify
from concord_studies.io import signature


class Recorded(Options):
    """A table of numbers that a paper's authors recorded, with which runs are compared."""

    table: Annotated[
        str,
        "registered table (config/datasets.yaml), with columns agent, iteration and the metric's",
    ]
    metric: Annotated[
        Literal["w2", "accuracy_mean", "accuracy_over_agents"], "the metric that is recorded"
    ]
    where: Annotated[dict[str, int | float | str], "column: value of the rows that are of it"] = (
        field(default_factory=dict)
    )
    like: Annotated[
        dict[str, str], "column: key of the run, such as sampler.h, whose value these rows have"
    ] = field(default_factory=dict)
    chains: Annotated[
        Count | None, "chains of the recorded run, of accuracies; none: as many as ours"
    ] = None
    digits: Annotated[Index | None, "decimals to which its numbers are rounded; none: all"] = None


def load_table(name: str, resources: Path) -> dict[str, np.ndarray]:
    """Return the columns of a registered table by name, as numbers (empty: nan) or texts.

    Its only file is ``<name>.csv.gz``, whose first line names the columns. A ConcordError if that
    is missing or another one.
    """
    file = f"{name}.csv.gz"
    path = verify(f"{name}/{file}", resources / name / file)
    return dict(_read_columns(path, signature(path)))


@lru_cache(maxsize=4)  # for runs that one process measures
def _read_columns(path: Path, identity: object) -> dict[str, np.ndarray]:
    """Return the columns of a CSV file by name; ``identity`` is the file's ``signature``."""
    # Without pandas, which takes longer to import than most of these tables to be read.
    columns, *rows = rows_of(path)
    return dict(zip(columns, map(_column, zip(*rows, strict=True)), strict=True))


def rows_of(path: Path) -> Iterator[list[str]]:
    """Yield the cells of the rows of a CSV file, perhaps gzipped, the header first.

    Blank lines are left out. A ConcordError at a row that is longer or shorter than the header,
    which pandas would shift or fill in silence, or if there is no row.
    """
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file)
        rows = filter(None, reader)
        width = len(header := next(rows, []))
        yield header
        row = None
        for row in rows:
            if len(row) != width:
                raise ConcordError(
                    f"{path}: line {reader.line_num} does not fit the header, which has {width} "
                    f"cells: it has {len(row)}; give each row one cell for each column"
                )
            yield row
        if row is None:
            raise ConcordError(f"{path}: it has no row below a header; add both")


def _column(texts: Sequence[str]) -> np.ndarray:
    """Return the entries of a table's column as numbers (empty: nan), or as texts."""
    try:
        return np.array([float(text or "nan") for text in texts])
    except ValueError:
        return np.array(texts)
