"""Folders that results cannot be put into are told before anything is done."""

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from concord.errors import ConcordError
from concord_studies.io import check_folder, check_regular, check_writable, hold


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


HOLD = (
    "import sys; from pathlib import Path; from concord_studies.io import hold; "
    "hold(Path(sys.argv[1]));"
)


def start_and_hold(folder: Path) -> subprocess.Popen:
    code = HOLD + "print('held', flush=True); sys.stdin.read()"
    holder = subprocess.Popen(
        [sys.executable, "-c", code, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout.readline() == b"held\n"
    return holder


def test_a_folder_is_held_by_one_process_until_it_is_killed(tmp_path):
    folder = tmp_path / "new" / "results"
    with start_and_hold(folder) as holder:
        with pytest.raises(ConcordError, match=f"{folder}: another Snakemake is at work here"):
            hold(folder)
        holder.kill()
    with start_and_hold(folder) as holder:
        holder.kill()


def a_folder_with_a_file(path: Path) -> None:
    path.mkdir()
    (path / "file").touch()


@pytest.mark.parametrize("make", [os.mkfifo, loop, link_to_nowhere, a_folder_with_a_file])
def test_what_cannot_be_locked_is_named(tmp_path, make):
    make(tmp_path / ".running")
    with pytest.raises(ConcordError, match=r"/.running: it cannot be locked \(.*\); remove it"):
        hold(tmp_path)


def test_a_link_is_not_locked(tmp_path):
    (tmp_path / "mine").touch()
    (tmp_path / ".running").symlink_to("mine")
    with pytest.raises(ConcordError, match=r"/.running: it cannot be locked \(it is a link\)"):
        hold(tmp_path)


@pytest.mark.parametrize("make", [os.mkfifo, loop, link_to_nowhere, a_folder_with_a_file])
def test_what_snakemake_would_write_through_is_named(tmp_path, make):
    (tmp_path / "sample.tsv").touch()
    check_regular(tmp_path / "new.tsv", tmp_path / "sample.tsv")
    make(tmp_path / "measure.tsv")
    with pytest.raises(ConcordError, match=r"measure.tsv: it is no regular file; remove it"):
        check_regular(tmp_path / "sample.tsv", tmp_path / "measure.tsv")


def test_without_locks_it_says_so_and_goes_on(tmp_path, monkeypatch, capsys):
    def no_locks(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    hold(tmp_path)
    said = capsys.readouterr().err
    assert said.endswith(".running: No locks available; run one Snakemake at a time\n")
