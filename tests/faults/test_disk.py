"""A disk that is full, and folders that cannot be written to."""

import os
import random
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tiny_project import ALL, METRICS, TinyProject, differing

pytestmark = [pytest.mark.workflow, pytest.mark.thorough]


@contextmanager
def mounted(place: Path, *arguments: str) -> Iterator[Callable[..., None]]:
    """Mount something while a with statement lasts; give a function that changes its options."""

    def mount(*arguments: str) -> None:
        done = subprocess.run(["mount", *arguments], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")

    if os.geteuid() != 0:
        pytest.skip("mounting a small or a read-only file system takes root")
    mount(*arguments, str(place))
    try:
        yield lambda options: mount("-o", f"remount,{options}", str(place))
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_is_told_and_after_making_room_all_goes_on(
    finished, tmp_path, effort, reliability
):
    """Results, or the project, on a file system with a few kilobytes left; then they are more."""
    rng, wrong = random.Random(3), []
    tries = [("results", 30, [METRICS])]
    for number in range(1, effort):
        tries.append((rng.choice(["results", "."]), rng.randrange(2**number % 400 + 1), ALL))
    for number, (folder, kilobytes, targets) in enumerate(tries):
        place = tmp_path / str(number)
        disk = (place / folder).resolve()
        disk.mkdir(parents=True)
        with mounted(disk, "-t", "tmpfs", "-o", "size=50m", "tmpfs"):
            project = TinyProject(place)
            disk.mkdir(exist_ok=True)
            system = os.statvfs(disk)
            filler = disk / "filler"
            filler.write_bytes(bytes(system.f_bavail * system.f_frsize - 1024 * kilobytes))
            full = project.snakemake(*targets)
            filler.unlink()
            again = project.snakemake(*targets)
            made = project.made()
        expected = {name: content for name, content in finished.made().items() if name in made}
        differs = differing(made, expected)
        told = full.returncode != 0 and "No space left on device" in full.stdout
        # Snakemake's own log has no place either if its folder is on the disk.
        told = told and (folder == "." or "Traceback" not in full.stdout)
        if not told or again.returncode != 0 or not made or differs:
            wrong.append((folder, kilobytes, full.stdout, again.stdout, differs))
    rule = "it is told; with more room the same command makes the bytes of an undisturbed run"
    reliability("faults", "full disk", len(tries), len(wrong), rule)
    assert not wrong


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Have a folder refuse all changes: by modes, or for root, by mounting it onto itself."""
    if os.geteuid() == 0:
        with mounted(folder, "--bind", str(folder)) as change:
            change("bind,ro")
            yield
        return
    modes = {path: path.stat().st_mode for path in [folder, *folder.rglob("*")]}
    for path, mode in modes.items():
        path.chmod(mode & ~0o222)
    try:
        yield
    finally:
        for path, mode in modes.items():
            path.chmod(mode)


@pytest.mark.parametrize("folder", ["results", "."])
def test_a_folder_that_cannot_be_written_to_is_told_in_one_sentence(folder, project, reliability):
    place = (project.folder / folder).resolve()
    place.mkdir(exist_ok=True)
    with read_only(place):
        done = project.snakemake(METRICS)
        made = project.made()
    sentence = (
        f"concord: {place}: it cannot be written to; allow it, or work in a copy of the project"
    )
    ok = done.returncode != 0 and done.stdout.rstrip().endswith(sentence) and not made
    ok = ok and "Traceback" not in done.stdout
    rule = "one sentence names the folder, and nothing is made"
    reliability(
        "faults", f"read-only {'project' if folder == '.' else folder}", 1, int(not ok), rule
    )
    assert ok, done.stdout


def test_results_that_may_not_be_replaced_are_named(copy, reliability):
    """Snakemake's own refusal, before anything is done."""
    before = copy.made()
    with read_only(copy.folder / "results"):
        done = copy.snakemake(METRICS, "--forcerun", "measure")
        after = copy.made()
    ok = done.returncode != 0 and "metrics.csv" in done.stdout
    ok = ok and "Traceback" not in done.stdout
    ok = ok and "rite-protected" in done.stdout and before == after
    rule = "the error names the files, and nothing is changed"
    reliability("faults", "read-only finished results", 1, int(not ok), rule)
    assert ok, done.stdout
