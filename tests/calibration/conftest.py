"""The board: what the tests of calibration saw, for the figure, the table and the page."""

from collections.abc import Iterator

import pytest

from calibration import covered
from calibration.board import Board
from reliability import FOLDER


@pytest.fixture(scope="session")
def board(effort: int) -> Iterator[Board]:
    """Gather ranks; at the end write the page's text and, after a larger run, table and figure."""
    seen = Board(keep=effort > 1)
    yield seen
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "calibration.md").write_text(covered.page())
    if effort > 1:
        seen.write(FOLDER / "calibration" / "ranks.csv")
        seen.draw([FOLDER / f"calibration.{suffix}" for suffix in ("png", "pdf")])
