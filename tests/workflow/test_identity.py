"""The same seed gives the same bytes: any number of cores, interrupted or not."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest
from smoke_project import RESULTS

pytestmark = pytest.mark.workflow

RUNS = [
    "linear_step/step_size=0.001",
    "linear_batch/batch_size=5",
    "linear_sghmc/reading=corrected,topology=ring",
    "linear_network/topology=no_edges",
]
TARGETS = [f"{RESULTS}/{run}/metrics.csv" for run in RUNS]


def metrics(project) -> dict[str, bytes]:
    return {target: (project.folder / target).read_bytes() for target in TARGETS}


def test_one_core_makes_what_two_cores_make(finished, project):
    project.make(*TARGETS, cores=1)
    assert metrics(project) == metrics(finished)
    assert len(set(metrics(project).values())) == len(RUNS)


def test_a_killed_snakemake_is_simply_repeated(finished, project):
    running = subprocess.Popen(
        project.command(*TARGETS),
        cwd=project.folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 200
        while not project.results("trace.nc"):
            assert running.poll() is None and time.monotonic() < deadline
            time.sleep(0.02)
        # While it lives, here held still, its lock holds: a second one refuses and takes nothing.
        os.killpg(running.pid, signal.SIGSTOP)
        second = project.snakemake(*TARGETS)
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
    assert second.returncode != 0 and "lock" in second.stdout
    assert len(project.results("metrics.csv")) < len(RUNS)
    assert list(project.folder.glob(".snakemake/locks/*.lock"))

    assert project.jobs(*TARGETS)
    project.make(*TARGETS)
    assert metrics(project) == metrics(finished)
    assert project.jobs(*TARGETS) == {}
    assert project.results(".*") == {}  # temporary files of the killed jobs
