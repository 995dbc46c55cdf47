"""Snakemake and its jobs are killed at random moments, again and again, until all is made."""

import itertools
import os
import random
import signal
import subprocess
import time
from collections import Counter

import psutil
import pytest
from tiny_project import ALL, TinyProject, differing

pytestmark = [pytest.mark.workflow, pytest.mark.thorough]

FAULTS = {
    "SIGKILL of Snakemake and its jobs": (signal.SIGKILL, "group"),
    "SIGKILL of Snakemake alone": (signal.SIGKILL, "process"),
    "SIGKILL of a job": (signal.SIGKILL, "job"),
    "SIGINT of Snakemake and its jobs": (signal.SIGINT, "group"),
    "SIGTERM of Snakemake": (signal.SIGTERM, "process"),
}
RULE = "after --unlock the same command ends with the same bytes, and leaves nothing behind"


def strike(fault: str, snakemake: psutil.Popen, project: TinyProject, rng: random.Random) -> bool:
    """Inject a fault some files and some time from now; tell whether it was not too late."""
    number, target = FAULTS[fault]
    files, seconds = rng.randrange(3), rng.uniform(0, 1)
    before = len(project.files())
    while len(project.files()) < before + files or (target == "job" and not project.running_jobs()):
        if snakemake.poll() is not None:
            return False
        time.sleep(0.02)
    time.sleep(seconds)
    jobs = project.running_jobs()
    if snakemake.poll() is not None or (target == "job" and not jobs):
        return False
    if target == "group":
        os.killpg(snakemake.pid, number)
    elif target == "process":
        snakemake.send_signal(number)
    else:
        rng.choice(jobs).send_signal(number)
    return True


def start(project: TinyProject) -> psutil.Popen:
    with open(project.folder / "output.txt", "w") as output:
        return psutil.Popen(
            project.command(*ALL),
            cwd=project.folder,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def test_signals_at_any_moment_cost_nothing_but_time(finished, tmp_path, effort, reliability):
    rng = random.Random(20)
    faults = effort * list(FAULTS)
    rng.shuffle(faults)
    tried, failed, wrong = Counter(), Counter(), []
    numbers = itertools.count()  # a fault may come too late, when all has been made
    while faults and not wrong:
        project = TinyProject(tmp_path / str(next(numbers)))
        struck, hit = [], True
        while hit:
            if struck:  # as Snakemake says if its lock was left behind
                project.make("--unlock")
            snakemake = start(project)
            try:
                hit = bool(faults) and strike(faults[-1], snakemake, project, rng)
                struck += [faults.pop()] if hit else []
                code = snakemake.wait(120)
            finally:
                if snakemake.poll() is None:
                    os.killpg(snakemake.pid, signal.SIGKILL)
        psutil.wait_procs(project.running_jobs(), 60)  # those that outlived their Snakemake
        said = (project.folder / "output.txt").read_text()
        differs = differing(project.made(), finished.made())
        left = [str(process) for process in project.running_jobs()]
        if code != 0 or differs or left:
            wrong.append((struck, code, differs, left, said))
            failed.update(set(struck))
        tried.update(struck)
    for fault in FAULTS:
        reliability("faults", fault, tried[fault], failed[fault], RULE)
    assert not wrong
    assert sum(tried.values()) == effort * len(FAULTS)
