"""Results that are no longer those of the configuration, the code or the checkout, and look it."""

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from tiny_project import ALL, RESULTS, RUNS, TinyProject, differing

pytestmark = [pytest.mark.workflow, pytest.mark.thorough]

METRICS = [f"{run}/metrics.csv" for run in RUNS]


def seeds(project: TinyProject) -> set[str]:
    """Return the lines of all run.yaml that state a seed."""
    runs = (project.folder / RESULTS).rglob("run.yaml")
    return {line for run in runs for line in run.read_text().splitlines() if "seed: " in line[:6]}


def with_seed(project: TinyProject, seed: int) -> None:
    config = project.folder / "config" / "config.yaml"
    config.write_text(config.read_text().replace("seed: 1", f"seed: {seed}"))


@pytest.mark.parametrize("linked", [False, True])
def test_another_seed_without_snakemakes_records(linked, copy, tmp_path):
    """As `make clean` left it where results is a link, and as a copy of results alone is."""
    if linked:
        shutil.move(copy.folder / "results", tmp_path / "scratch")
        (copy.folder / "results").symlink_to(tmp_path / "scratch")
    shutil.rmtree(copy.folder / ".snakemake")
    assert copy.jobs(*ALL) == {}
    with_seed(copy, 5)
    assert copy.jobs(*METRICS) == {"measure": 1}
    if linked:  # the jobs are the same
        copy.make(*METRICS)
        assert seeds(copy) == {"seed: 5"}
        assert copy.jobs(*METRICS) == {}


def test_two_checkouts_that_share_their_results(finished, copy, tmp_path):
    other = TinyProject(tmp_path / "other", finished.folder)
    shutil.rmtree(other.folder / "results")
    (other.folder / "results").symlink_to(copy.folder / "results")
    with_seed(other, 5)
    other.make(*METRICS)
    assert seeds(copy) == {"seed: 5"}
    # Its records say that nothing has changed here.
    assert copy.jobs(*METRICS) == {"measure": 1}

    running = subprocess.Popen(
        copy.command(*METRICS), cwd=copy.folder, stdout=subprocess.PIPE, text=True
    )
    try:
        deadline = time.monotonic() + 200
        while seeds(copy) == {"seed: 5"}:
            assert running.poll() is None and time.monotonic() < deadline
            time.sleep(0.02)
        os.kill(running.pid, signal.SIGSTOP)
        second = other.snakemake(*METRICS)
        os.kill(running.pid, signal.SIGCONT)
        running.communicate(timeout=240)
    finally:
        running.kill()
        running.wait()
    assert second.returncode != 0 and "another Snakemake is at work" in second.stdout
    made, expected = copy.made(), finished.made()
    names = [name for name in made if name.endswith(("run.yaml", "metrics.csv"))]
    assert differing({n: made[n] for n in names}, {n: expected[n] for n in names}) == []


def test_source_that_was_changed_while_a_job_ran(copy, finished):
    """It is put back, times and all, before anybody looks."""
    source = copy.folder / "src/concord/samplers/de_sgld.py"
    text, status = source.read_text(), os.stat(source)
    assert "move = sd * rng" in text
    source.write_text(text.replace("move = sd * rng", "move = 2 * sd * rng"))
    environment = {**os.environ, "PYTHONPATH": str(copy.folder / "src")}
    stages = (
        ("sample", f"{RUNS[0]}/run.yaml", "-o", f"{RUNS[0]}/trace.nc"),
        ("measure", f"{RUNS[0]}/run.yaml", f"{RUNS[0]}/trace.nc", "-o", METRICS[0]),
    )
    for arguments in stages:
        command = [sys.executable, "-m", "concord_cli", *arguments]
        subprocess.run(command, cwd=copy.folder, env=environment, check=True)
    source.write_text(text)
    os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns))
    wrong = (copy.folder / METRICS[0]).read_bytes()
    assert wrong != (finished.folder / METRICS[0]).read_bytes()

    said = subprocess.run(
        [sys.executable, "-m", "concord_cli", *stages[1]],
        cwd=copy.folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert said.returncode == 2
    assert "trace.nc: it was made from another code; delete the file" in said.stderr
    assert copy.jobs(*METRICS) == {"measure": 1}
    copy.make(*METRICS)
    assert (copy.folder / METRICS[0]).read_bytes() == (finished.folder / METRICS[0]).read_bytes()


def test_a_folder_that_would_divide_pythons_path(finished, tmp_path):
    project = TinyProject(tmp_path / "a:b", finished.folder)
    done = project.snakemake(*METRICS)
    assert done.returncode != 0 and "Traceback" not in done.stdout
    assert "a:b/src: Python's path cannot hold a folder with ':'; rename it" in done.stdout
