"""Folders that results cannot be put into are told before anything is done."""

import os
from pathlib import Path

import pytest

from concord.errors import ConcordError
from concord_studies.io import check_folder, check_writable


def loop(path: Path) -> None:
    path.symlink_to(path.name)


def link_to_nowhere(path: Path) -> None:
    path.symlink_to("nowhere/at/all")


@pytest.mark.parametrize("make", [Path.touch, os.mkfifo, loop, link_to_nowhere])
@pytest.mark.parametrize("below", ["", "smoke", "seeds/1"])
def test_what_is_no_folder_is_told(tmp_path, make, below):
    make(tmp_path / "results")
    with pytest.raises(ConcordError, match=r"/results: it is no folder; remove it, or name"):
        check_folder(tmp_path / "results" / below)


def test_folders_and_what_is_not_there_yet_are_fine(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "results").symlink_to("elsewhere")
    monkeypatch.chdir(tmp_path)
    for folder in ("results", "results/smoke", "other/results"):
        check_folder(Path(folder))
        check_writable(Path(folder))


def test_what_may_not_be_written_to_is_told(tmp_path, monkeypatch):
    """Root may write everywhere, hence the stand-in."""
    mine, others = tmp_path / "mine", tmp_path / "others"
    for folder in (mine, others):
        folder.mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: path != others or mode != os.W_OK)
    check_writable(mine, mine / "new", tmp_path)
    for path in (others, others / "new" / "file"):
        with pytest.raises(ConcordError, match="/others: it cannot be written to; allow it"):
            check_writable(mine, path)


def a_folder_with_a_file(path: Path) -> None:
    path.mkdir()
    (path / "file").touch()
