"""The folder of data files, ``resources``, and what problems are made of in it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from concord.errors import ConcordError
from concord_studies.datasets import readers, tables


@dataclass(frozen=True)
class DataFolder:
    """The data sets in a folder of downloaded files, ``<data set>/<file>``."""

    folder: Path

    def table(self, name: str) -> dict[str, np.ndarray]:
        """Return the columns of a registered table by name. A ConcordError if it has changed."""
        return tables.load_table(name, self.folder)

    def points(self, name: str) -> tuple[Any, np.ndarray]:
        """Return the features, (rows, columns), and the labels, (rows,), of a data set."""
        if name == "magic":
            return readers.magic(self.folder / "magic" / "magic04.data")
        if name == "breast_cancer":
            return readers.breast_cancer()
        raise ConcordError(f"dataset: there are no points called {name!r}")
