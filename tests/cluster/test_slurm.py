"""profiles/slurm on a real SLURM: the bytes of a local run, killed jobs repeated, nothing left.

Snakemake waits most of the time, so that what several of them make is made at the same time.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from slurm import PARTITION, OthersConfiguration, Slurm, missing, missing_for_memory, running, say

from workflow.smoke_project import PARTS, RESULTS, ROOT, Project

# Its tests stay in this file, and a file in one process: there can be but one SLURM on a machine.
pytestmark = [pytest.mark.cluster, pytest.mark.thorough]

# Each job costs SLURM a Snakemake more than it costs a laptop, so it is not all papers: a figure
# and a table of one, and a figure of another with another problem.
SOME = (
    f"{RESULTS}/figures/fig4.pdf",
    f"{RESULTS}/tables/lemma12.md",
    "results/smoke/bhar2023/figures/consensus.pdf",
)
ALL_PAPERS = ("reproduce", "ledger")
# The profile looks after jobs every 40 s at most, which for these jobs is long.
ON_SLURM = (
    *("--workflow-profile", "profiles/slurm"),
    *("--slurm-init-seconds-before-status-checks", "1"),
    *("--seconds-between-status-checks", "1"),
)
ONE_BY_ONE = ("--group-components", "outputs=1")
QUEUED = 2000


@pytest.fixture(scope="module")
def slurm() -> Iterator[Slurm]:
    """A SLURM in whose queue 2,000 jobs wait while the tests run; without one they are skipped."""
    if reason := missing():
        pytest.skip(reason)
    try:
        with running() as slurm:
            held = ("--hold", f"--partition={PARTITION}", "--output=/dev/null")
            array = say("sbatch", "--parsable", *held, f"--array=1-{QUEUED}", "--wrap=true").strip()
            # A change of one makes it a job of its own, which else only its start does.
            say("scontrol", "update", f"JobId={array}_[1-{QUEUED - 1}]", "Comment=queued")
            yield slurm
    except OthersConfiguration as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def targets(effort: int) -> tuple[str, ...]:
    """What is made with and without SLURM: with more effort, the whole smoke DAG."""
    return SOME if effort == 1 else ALL_PAPERS


@pytest.fixture(scope="module")
def undisturbed(
    targets: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, subprocess.Popen[bytes]]]:
    """A project in which SLURM makes the targets, while other tests run."""
    folder = copied(tmp_path_factory.mktemp("undisturbed") / "project")
    with snakemake(folder, *targets, *ON_SLURM) as process:
        yield folder, process


@pytest.fixture(scope="module")
def local(
    undisturbed: object, targets: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A project whose targets have been made without SLURM.

    It starts from what the last smoke run of this project left, if there was one, and Snakemake's
    records of it: Snakemake itself makes what is missing or not of these sources.
    """
    folder = copied(tmp_path_factory.mktemp("local") / "project")
    for part in ("results/smoke", ".snakemake/metadata"):
        if (ROOT / part).exists():
            shutil.copytree(ROOT / part, folder / part)
    with snakemake(folder, *targets, "--cores", "2") as process:
        said(folder, process)
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
    """Run Snakemake at smoke scale, with the partition in the environment as users have it."""
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


def said(folder: Path, process: subprocess.Popen[bytes]) -> str:
    """Return what a Snakemake said, once it has come to its success."""
    process.wait(7200)
    output = (folder / "output.txt").read_text()
    assert process.returncode == 0, output[-10000:]
    return output


def metrics(folder: Path) -> dict[str, bytes]:
    """Return the content of every metrics.csv by its path below the results."""
    results = folder / "results" / "smoke"
    return {str(p.relative_to(results)): p.read_bytes() for p in results.rglob("metrics.csv")}


# By module: a line of it, and what comes before that: more memory than the first attempt has (1 GB,
# with two Snakemakes in it), and more time.
MEMORY = "    return metrics.measure(run.metrics, ", '    held = b"x" * (800 * 2**20)\n'
TIME = (
    "    table = output.module.tabulate(",
    """    import time
    if not (late := Path("late")).exists():
        late.touch()
        time.sleep(1000)
""",
)
# By what ends a job: its state, and what is among what it printed. Where SLURM ends a
# step for its memory, the job has failed, and only the step has the state OUT_OF_MEMORY.
ENDS = {
    "its memory": ("FAILED", "Out Of Memory"),
    "its time limit": ("TIMEOUT", "DUE TO TIME LIMIT"),
    "scancel": ("CANCELLED", "CANCELLED AT"),
}


def test_killed_jobs_are_repeated_with_more(slurm, undisturbed, tmp_path, request, reliability):
    """Runs that need more memory than they have, a table that needs more time, others cancelled."""
    project = Project(tmp_path / "project")
    demands = {"stages/draw": TIME} | ({} if missing_for_memory() else {"experiment": MEMORY})
    for module, (line, more) in demands.items():
        path = project.folder / f"src/concord_studies/{module}.py"
        text = path.read_text()
        assert text.count(line) == 1
        path.write_text(text.replace(line, more + line))
    # Memory and time of a short experiment, and of an output
    first = {("1000M", "5:00"), ("600M", "5:00")}
    second = {("2000M", "10:00"), ("1200M", "10:00")}
    killed: dict[str, str] = {}
    with snakemake(project.folder, *SOME[:2], *ON_SLURM, *ONE_BY_ONE) as process:
        while process.poll() is None:
            for job in slurm.jobs("--states=RUNNING"):
                one = job["memory"], job["limit"]
                if job["folder"] != str(project.folder) or one not in first or job["id"] in killed:
                    continue
                if one == ("1000M", "5:00") and "experiment" in demands:
                    killed[job["id"]] = "its memory"
                elif "table" not in job["comment"]:
                    killed[job["id"]] = "scancel"
                    say("scancel", job["id"])
                elif (project.folder / "late").exists():
                    killed[job["id"]] = "its time limit"
                    say("scontrol", "update", f"JobId={job['id']}", "EndTime=now+2")
            time.sleep(0.2)
    output = (project.folder / "output.txt").read_text()
    ended = slurm.ended(project.folder)
    done = [job for job in ended if job["state"] == "COMPLETED"]
    repeated = [job for job in done if (job["memory"], job["limit"]) in second]
    made, expected = metrics(project.folder), metrics(request.getfixturevalue("local"))
    lost = len(killed) - len(repeated)
    rule = "repeated with twice the memory and time; the metrics are those of a local run"
    for way, count in Counter(killed.values()).items():
        reliability("cluster", f"jobs ended by {way}", count, lost, rule)
    assert process.returncode == 0, output[-10000:]
    for name, content in made.items():  # fewer runs than the local one has of the experiment
        assert set(content.splitlines()) <= set(expected[name].splitlines())
    assert len(killed) == len(repeated) == len(done) == len(made) + 2  # experiments; figure, table
    assert {job["id"]: job["state"] for job in ended if job not in done} == {
        job: ENDS[way][0] for job, way in killed.items()
    }
    assert {job["partition"] for job in ended} == {PARTITION}
    logs = (project.folder / "results/logs/slurm").rglob("*.log")
    printed = {log.stem: log.read_text() for log in logs}
    assert all(ENDS[way][1] in printed[job] for job, way in killed.items())


def test_slurm_makes_the_bytes_that_a_local_run_makes(
    slurm, undisturbed, local, targets, reliability
):
    folder, process = undisturbed
    output = said(folder, process)
    made, expected = metrics(folder), metrics(local)
    differing = [name for name in made if made[name] != expected.get(name)]
    reliability(
        "cluster",
        f"metrics.csv that SLURM made, of {'some' if targets == SOME else 'all'} runs",
        len(made),
        len(differing),
        f"byte for byte that of a local run, with {QUEUED} other jobs in the queue",
    )
    assert len(made) >= 2 and differing == []
    assert output.count("has been submitted with SLURM jobid") >= 2
    assert len(slurm.jobs("--states=PENDING")) == QUEUED
