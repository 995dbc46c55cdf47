"""profiles/slurm on a real SLURM: the bytes of a local run, killed jobs repeated, nothing left."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from slurm import (
    CONFIGURATION,
    MARK,
    PARTITION,
    OthersConfiguration,
    Slurm,
    claimed,
    missing,
    of_its_jobs,
    running,
    say,
    wait_until,
)

from workflow.smoke_project import FIGURES, PARTS, ROOT, Project

# Its tests stay in this file, and a file in one process: there can be but one SLURM on a machine.
pytestmark = pytest.mark.cluster

# Each job costs SLURM a Snakemake more than it costs a laptop, so it is not all papers: figures and
# a table of one; of another the runs that are at hand without a download, and verdicts.
SOME = (
    *(
        f"results/smoke/gurbuzbalaban2021/{name}"
        for name in ("figures/fig4.pdf", "tables/lemma12.md")
    ),
    "results/smoke/bhar2023/claims.csv",
)
ALL_PAPERS = ("reproduce", "ledger")
# The profile looks after jobs every 40 s at most, which for these jobs is long.
ON_SLURM = (
    *("--workflow-profile", "profiles/slurm"),
    *("--slurm-init-seconds-before-status-checks", "2"),
    *("--seconds-between-status-checks", "2"),
)


@contextmanager
def slurm_or_skip() -> Iterator[Slurm]:
    """Run a SLURM, or skip the test and say what it lacks."""
    if reason := missing():
        pytest.skip(reason)
    try:
        with running() as slurm:
            yield slurm
    except OthersConfiguration as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def slurm() -> Iterator[Slurm]:
    with slurm_or_skip() as slurm:
        yield slurm


@pytest.fixture(scope="module")
def targets(effort: int) -> tuple[str, ...]:
    """What is made with and without SLURM: with more effort, the whole smoke DAG."""
    return SOME if effort == 1 else ALL_PAPERS


@pytest.fixture(scope="module")
def local(slurm: Slurm, targets: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose targets have been made without SLURM.

    It starts from what the last smoke run of this project left, if there was one, and Snakemake's
    records of it: Snakemake itself makes what is missing or not of these sources.
    """
    folder = copied(tmp_path_factory.mktemp("local") / "project")
    for part in ("results/smoke", ".snakemake/metadata"):
        if (ROOT / part).exists():
            shutil.copytree(ROOT / part, folder / part)
    make(folder, *targets, "--cores", "2")
    return folder


def copied(folder: Path) -> Path:
    """Copy the project, without results."""
    folder.mkdir()
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, folder / part)
    return folder


@contextmanager
def snakemake(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run Snakemake at smoke scale, with the partition in the environment as a user has it."""
    with open(folder / "output.txt", "wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "snakemake", *arguments, "--config", "scale=smoke"],
            cwd=folder,
            env={**os.environ, "SBATCH_PARTITION": PARTITION},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)  # it cancels its jobs
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def make(folder: Path, *arguments: str) -> str:
    """Run Snakemake to its success and return what it said."""
    with snakemake(folder, *arguments) as process:
        process.wait(7200)
    output = (folder / "output.txt").read_text()
    assert process.returncode == 0, output[-10000:]
    return output


def listeners(ports: list[int]) -> set[tuple[str, int]]:
    """Return the addresses at which somebody listens on the ports."""
    listening = "0A"
    found = set()
    for family, table in ((socket.AF_INET, "tcp"), (socket.AF_INET6, "tcp6")):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            _, local, _, state, *_ = line.split()
            address, port = local.split(":")
            if state == listening and int(port, 16) in ports:
                words = bytes.fromhex(address)
                swapped = b"".join(words[i : i + 4][::-1] for i in range(0, len(words), 4))
                found.add((socket.inet_ntop(family, swapped), int(port, 16)))
    return found


def metrics(folder: Path) -> dict[str, bytes]:
    """Return the content of every metrics.csv by its path below the results."""
    results = folder / "results" / "smoke"
    return {str(p.relative_to(results)): p.read_bytes() for p in results.rglob("metrics.csv")}


def test_nothing_of_it_is_left_after_a_failure(tmp_path):
    pid = tmp_path / "pid"
    with pytest.raises(ZeroDivisionError), slurm_or_skip() as slurm:  # noqa: PT012
        orphan = "setsid sh -c 'trap \"\" TERM; sleep 1000' &"  # of which SLURM knows no parent
        say("sbatch", "--output=/dev/null", f"--wrap={orphan} echo $$ > {pid}; exec sleep 1000")
        wait_until(lambda: pid.exists() and pid.read_text().endswith("\n"), 60)
        job = Path("/proc", pid.read_text().strip())
        assert job.exists()
        assert listeners(slurm.ports) == {("127.0.0.1", port) for port in slurm.ports}
        raise ZeroDivisionError
    assert set(slurm.daemons) == {"munged", "slurmctld", "slurmd"}
    assert all(daemon.poll() is not None for daemon in slurm.daemons.values())
    assert not job.exists() and not of_its_jobs()
    assert listeners(slurm.ports) == set()
    assert not CONFIGURATION.exists() and not slurm.folder.exists()


def test_somebody_elses_configuration_is_left_alone(tmp_path):
    path = tmp_path / "slurm.conf"
    path.write_text("ClusterName=production\n")
    with pytest.raises(OthersConfiguration, match="configured here already"), claimed(path):
        pass
    assert path.read_text() == "ClusterName=production\n"


def test_what_killed_tests_left_is_taken_over(tmp_path):
    path = tmp_path / "slurm.conf"
    path.write_text(MARK + "ClusterName=concord\n")
    with claimed(path):
        assert path.read_text() == ""
        with pytest.raises(OthersConfiguration, match="another test run"), claimed(path):
            pass
    assert not path.exists()


def test_killed_jobs_are_repeated_with_more(slurm, local, tmp_path, effort, reliability):
    project = Project(tmp_path / "project")
    figures = FIGURES[:1] if effort == 1 else FIGURES
    one_by_one = ("--group-components", "runs=1", "outputs=1")
    # Memory and time of a run (sampling and measuring) and of a figure
    first, second = {("1000M", "10:00"), ("600M", "5:00")}, {("2000M", "20:00"), ("1200M", "10:00")}
    killed: set[str] = set()
    with snakemake(project.folder, *figures, *ON_SLURM, *one_by_one) as process:
        while process.poll() is None:
            for job in slurm.jobs("--states=RUNNING"):
                if (job["memory"], job["limit"]) in first and job["id"] not in killed:
                    time.sleep(len(killed) % 3)  # at another moment each
                    say("scancel", job["id"])
                    killed.add(job["id"])
            time.sleep(0.2)
    ended = slurm.jobs("--states=all")
    done = [job for job in ended if job["state"] == "COMPLETED"]
    repeated = [job for job in done if (job["memory"], job["limit"]) in second]
    made, expected = metrics(project.folder), metrics(local)
    lost = len(killed) - len(repeated)
    reliability(
        "cluster",
        "jobs killed with scancel",
        len(killed),
        lost,
        "repeated with twice the memory and time; the metrics are those of a local run",
    )
    assert process.returncode == 0, (project.folder / "output.txt").read_text()[-10000:]
    assert made == {name: expected[name] for name in made} != {}
    assert len(killed) == len(made) + len(figures)
    assert lost == 0 and len(repeated) == len(done)
    assert {job["partition"] for job in ended} == {PARTITION}


def test_slurm_makes_the_bytes_that_a_local_run_makes(slurm, local, targets, tmp_path, reliability):
    folder = copied(tmp_path / "project")
    for_two_cores = ("--group-components", "runs=12", "outputs=8")
    output = make(folder, *targets, *ON_SLURM, *for_two_cores)
    made, expected = metrics(folder), metrics(local)
    differing = [name for name in made if made[name] != expected.get(name)]
    reliability(
        "cluster",
        f"metrics.csv that SLURM made, of {'some' if targets == SOME else 'all'} runs",
        len(made),
        len(differing),
        "byte for byte that of a local run",
    )
    assert len(made) >= 20 and differing == []
    assert output.count("has been submitted with SLURM jobid") >= len(made) // 12
