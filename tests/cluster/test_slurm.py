"""profiles/slurm on a real SLURM: the bytes of a local run, killed jobs repeated, nothing left.

Snakemake waits most of the time, so that what several of them make is made at the same time.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from faults.tiny_project import ALL, METRICS, TinyProject
from slurm import (
    ACCOUNT,
    CONFIGURATION,
    MARK,
    PARTITION,
    OthersConfiguration,
    Slurm,
    claimed,
    missing,
    missing_for_accounting,
    missing_for_memory,
    of_its_jobs,
    running,
    say,
    wait_until,
)

from workflow.smoke_project import PARTS, RESULTS, ROOT

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


@contextmanager
def slurm_or_skip(accounting: bool) -> Iterator[Slurm]:
    """Run a SLURM, or skip the test and say what it lacks."""
    if reason := missing():
        pytest.skip(reason)
    try:
        with running(accounting) as slurm:
            yield slurm
    except OthersConfiguration as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def slurm() -> Iterator[Slurm]:
    """A SLURM in whose queue 2,000 jobs wait while the tests run, with accounting if it can be."""
    with slurm_or_skip(accounting=missing_for_accounting() is None) as slurm:
        held = ("--hold", f"--partition={PARTITION}", f"--account={ACCOUNT}", "--output=/dev/null")
        array = say("sbatch", "--parsable", *held, f"--array=1-{QUEUED}", "--wrap=true").strip()
        # A change of one makes it a job of its own, which else only its start does.
        say("scontrol", "update", f"JobId={array}_[1-{QUEUED - 1}]", "Comment=queued")
        yield slurm


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
def snakemake(
    folder: Path, *arguments: str, scale: str = "smoke"
) -> Iterator[subprocess.Popen[bytes]]:
    """Run Snakemake at a scale, with partition and account in the environment as users have."""
    account = {} if missing_for_accounting() else {"SBATCH_ACCOUNT": ACCOUNT}
    with open(folder / "output.txt", "wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "snakemake", *arguments, "--config", f"scale={scale}"],
            cwd=folder,
            env={**os.environ, "SBATCH_PARTITION": PARTITION, **account},
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


@pytest.mark.parametrize("accounting", [False, True])
def test_nothing_of_it_is_left_after_a_failure(accounting, tmp_path):
    if accounting and (reason := missing_for_accounting()):
        pytest.skip(reason)
    pid = tmp_path / "pid"
    with pytest.raises(ZeroDivisionError), slurm_or_skip(accounting) as slurm:  # noqa: PT012
        orphan = "setsid sh -c 'trap \"\" TERM; sleep 1000' &"  # of which SLURM knows no parent
        say("sbatch", "--output=/dev/null", f"--wrap={orphan} echo $$ > {pid}; exec sleep 1000")
        wait_until(lambda: pid.exists() and pid.read_text().endswith("\n"), 60)
        job = Path("/proc", pid.read_text().strip())
        assert job.exists()
        assert listeners(slurm.ports) == {("127.0.0.1", port) for port in slurm.ports}
        raise ZeroDivisionError
    daemons = {"munged", "slurmctld", "slurmd"}
    assert set(slurm.daemons) == daemons | ({"mariadbd", "slurmdbd"} if accounting else set())
    assert all(daemon.poll() is not None for daemon in slurm.daemons.values())
    assert not job.exists() and not of_its_jobs()
    assert listeners(slurm.ports) == set()
    assert not CONFIGURATION.exists() and not slurm.folder.exists()


def test_without_accounting_a_run_is_made(tmp_path):
    project = TinyProject(tmp_path / "project")
    with slurm_or_skip(accounting=False) as slurm:
        with snakemake(project.folder, METRICS, *ON_SLURM) as process:
            said(project.folder, process)
        states = [job["state"] for job in slurm.ended(project.folder)]
    assert states == ["COMPLETED"]


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


# By module: a line of it, and what comes before that: more memory than the first attempt has (1 GB,
# with two Snakemakes in it), and more time.
MEMORY = "    return metrics.measure(", '    held = b"x" * (800 * 2**20)\n'
TIME = (
    "    table = entry.module.tabulate(",
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
    project = TinyProject(tmp_path / "project")
    demands = {"stages/draw": TIME} | ({} if missing_for_memory() else {"runs/measure": MEMORY})
    for module, (line, more) in demands.items():
        path = project.folder / f"src/concord_studies/{module}.py"
        text = path.read_text()
        assert text.count(line) == 1
        path.write_text(text.replace(line, more + line))
    # Memory and time of a short experiment, of an output, and of verdicts
    first = {("1000M", "5:00"), ("600M", "5:00"), ("1000M", "10:00")}
    second = {("2000M", "10:00"), ("1200M", "10:00"), ("2000M", "20:00")}
    killed: dict[str, str] = {}
    with snakemake(project.folder, *ALL, *ON_SLURM, *ONE_BY_ONE) as process:
        while process.poll() is None:
            for job in slurm.jobs("--states=RUNNING"):
                one = job["memory"], job["limit"]
                if job["folder"] != str(project.folder) or one not in first or job["id"] in killed:
                    continue
                if one == ("1000M", "5:00") and "runs/measure" in demands:
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
    (name,) = made  # fewer runs than the local one has of the experiment
    assert set(made[name].splitlines()) <= set(expected[name].splitlines())
    assert len(killed) == len(repeated) == len(done) == 1 + 3  # experiment; figure, table, verdicts
    assert {job["id"]: job["state"] for job in ended if job not in done} == {
        job: ENDS[way][0] for job, way in killed.items()
    }
    assert {job["partition"] for job in ended} == {PARTITION}
    logs = (project.folder / "results/logs/slurm").rglob("*.log")
    printed = {log.stem: log.read_text() for log in logs}
    assert all(ENDS[way][1] in printed[job] for job, way in killed.items())
    if slurm.accounting:
        assert {job["account"] for job in ended} == {ACCOUNT}
        if missing_for_memory() is None:
            assert "OUT_OF_MEMORY" in say("sacct", "--noheader", "--format=State%-30")


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


def test_slurm_makes_an_experiment_of_the_arena_at_full_scale(slurm, tmp_path, reliability):
    """Thirteen entries on three links, scored by one job; another joins what there is of them."""
    piece = "results/full/arena/links"
    made = []
    for name, how in (("here", ("--cores", "1")), ("there", ON_SLURM)):
        folder = copied(tmp_path / name)
        with snakemake(folder, f"{piece}/metrics.csv", *how, scale="full") as process:
            output = said(folder, process)
        made.append({n: (folder / piece / n).read_bytes() for n in ("runs.yaml", "metrics.csv")})
    assert output.count("has been submitted with SLURM jobid") == 2
    assert b"b2_by_seconds_set_30" in made[1]["metrics.csv"]
    differing = [name for name in made[0] if made[0][name] != made[1].get(name)]
    reliability(
        "cluster",
        "files of the arena at full scale that SLURM made",
        len(made[0]),
        len(differing),
        "byte for byte that of a local run",
    )
    assert differing == []
