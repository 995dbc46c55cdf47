"""Snakemake and its jobs are killed, find the disk full, or may not write."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from smoke_project import RESULTS, Project, timeless
from test_scenarios import ALL, reduce

import shared_folders

pytestmark = [pytest.mark.workflow, pytest.mark.thorough]


def start_project(folder: Path) -> Project:
    """Return a project of one experiment in which nothing has been made."""
    project = Project(folder)
    reduce(project)
    return project


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What an undisturbed run makes."""
    folder = shared_folders.made(
        tmp_path_factory, "undisturbed", lambda folder: start_project(folder).make(*ALL)
    )
    return made(folder)


def made(folder: Path) -> dict[str, bytes]:
    """Return all results; but for hidden files, which a kill may leave for an hour."""
    found = {p.relative_to(folder).as_posix(): p for p in (folder / RESULTS).rglob("[!.]*.*")}
    return {name: timeless(path.read_bytes()) for name, path in found.items() if path.is_file()}


FAULTS = {
    "SIGKILL of Snakemake and its jobs": (signal.SIGKILL, "group"),
    "SIGKILL of Snakemake alone": (signal.SIGKILL, "process"),
    "SIGKILL of a job": (signal.SIGKILL, "job"),
    "SIGINT of Snakemake and its jobs": (signal.SIGINT, "group"),
    "SIGTERM of Snakemake": (signal.SIGTERM, "process"),
}


def jobs_of(project: Project) -> list[psutil.Process]:
    """Return the processes of jobs in this project, whoever started them."""
    found = []
    for process in psutil.process_iter():
        try:
            if "concord_cli" in process.cmdline() and process.cwd() == str(project.folder):
                found.append(process)
        except psutil.Error:
            continue
    return found


def start(project: Project) -> psutil.Popen:
    with open(project.folder / "output.txt", "w") as output:
        command, options = project.command(*ALL), {"stdout": output, "stderr": subprocess.STDOUT}
        return psutil.Popen(command, cwd=project.folder, start_new_session=True, **options)


@pytest.mark.parametrize("fault", FAULTS)
def test_what_was_killed_goes_on_with_the_same_command(
    fault, undisturbed, tmp_path, effort, reliability
):
    number, target = FAULTS[fault]
    rng, failed = random.Random(20), 0
    for attempt in range(effort):
        project = start_project((tmp_path / str(attempt)).resolve())
        snakemake = start(project)
        while snakemake.poll() is None and not jobs_of(project):
            time.sleep(0.02)
        time.sleep(rng.uniform(0, 1))
        if target == "group":
            os.killpg(snakemake.pid, number)
        else:
            for process in [snakemake] if target == "process" else jobs_of(project)[:1]:
                process.send_signal(number)
        snakemake.wait(120)
        project.make("--unlock")  # as Snakemake says if its lock was left behind
        project.make(*ALL)
        psutil.wait_procs(jobs_of(project), 60)  # those that outlived their Snakemake
        failed += made(project.folder) != undisturbed
    rule = "after --unlock the same command ends with the same bytes"
    reliability("faults", fault, effort, failed, rule)
    assert not failed


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


def test_a_full_disk_is_told_and_after_making_room_all_goes_on(undisturbed, tmp_path, reliability):
    """Results on a file system with a few kilobytes left; then they are more."""
    project = start_project(tmp_path / "project")
    disk = project.folder / "results"
    disk.mkdir()
    with mounted(disk, "-t", "tmpfs", "-o", "size=50m", "tmpfs"):
        system, filler = os.statvfs(disk), disk / "filler"
        filler.write_bytes(bytes(system.f_bavail * system.f_frsize - 1024 * 30))
        full = project.snakemake(*ALL)
        filler.unlink()
        project.make(*ALL)
        ok = "No space left on device" in full.stdout and "Traceback" not in full.stdout
        ok = ok and full.returncode != 0 and made(project.folder) == undisturbed
    rule = "it is told; with more room the same command makes the bytes of an undisturbed run"
    reliability("faults", "full disk", 1, int(not ok), rule)
    assert ok, full.stdout
