"""The same seed gives the same bytes: any number of cores, interrupted or not."""

import os
import re
import shutil
import signal
import subprocess
import time

import pytest
from smoke_project import RESULTS

pytestmark = pytest.mark.workflow

RUNS = [
    "linear_step/step_size=0.001",
    "linear_batch/batch_size=5",
    "linear_sghmc/reading=corrected+topology=ring",
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
        # While it lives, here held still, a second one refuses and takes nothing.
        os.killpg(running.pid, signal.SIGSTOP)
        second = project.snakemake(*TARGETS)
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
    assert second.returncode != 0 and "another Snakemake is at work" in second.stdout
    assert len(project.results("metrics.csv")) < len(RUNS)

    assert project.jobs(*TARGETS)
    project.make(*TARGETS)
    assert metrics(project) == metrics(finished)
    assert project.jobs(*TARGETS) == {}
    assert project.results(".*") == {}  # temporary files of the killed jobs


def test_chains_sampled_by_several_jobs_are_those_of_one(project):
    """A run of 120 chains over three jobs, beside one of a single job, and joined."""
    one, three = "linear_step/step_size=0.001", "linear_step/step_size=0.006"
    targets = [f"{RESULTS}/{run}/metrics.csv" for run in (one, three)]
    with project.edited("config/config.yaml", "chains: 8", "chains: 120"):
        project.make(*targets)
        whole = {target: (project.folder / target).read_bytes() for target in targets}
        shutil.rmtree(project.folder / RESULTS / three)
        done = project.snakemake(targets[1], config=("chains_per_job=50",))
    assert done.returncode == 0, done.stdout
    assert re.search(r"sample_chains +3", done.stdout) and re.search(r"sample +1", done.stdout)
    assert {target: (project.folder / target).read_bytes() for target in targets} == whole
    assert not project.results("chains_*.nc")
