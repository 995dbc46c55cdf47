"""Several Snakemakes in one folder, started almost together."""

import fcntl
import random
import subprocess
import time

import pytest
from tiny_project import RUNS, TinyProject, differing

pytestmark = [pytest.mark.workflow, pytest.mark.thorough]

ONE, OTHER = (f"{run}/metrics.csv" for run in RUNS)
REFUSAL = ": another Snakemake is at work here; wait until it is done"


def test_each_finishes_or_refuses_and_results_are_whole(finished, tmp_path, effort, reliability):
    """Two with the same target, one with another."""
    rng, wrong = random.Random(6), []
    for number in range(effort):
        project = TinyProject(tmp_path / str(number))
        running = []
        for target in (ONE, ONE, OTHER):
            running.append(
                subprocess.Popen(
                    project.command(target),
                    cwd=project.folder,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
            )
            time.sleep(rng.choice([0, rng.uniform(0, 2)]))
        said = [snakemake.communicate(timeout=240)[0] for snakemake in running]
        codes = [snakemake.returncode for snakemake in running]
        told = [
            code == 0 or text.rstrip().endswith(REFUSAL)
            for code, text in zip(codes, said, strict=True)
        ]
        left = [*project.folder.glob(".snakemake/locks/*.lock")]  # Snakemake's own
        project.make(ONE, OTHER)
        made, expected = project.made(), finished.made()
        differs = differing(made, {name: expected.get(name, b"") for name in made})
        if 0 not in codes or not all(told) or left or differs or "Traceback" in "".join(said):
            wrong.append((codes, left, differs, said))
    rule = "each finishes or refuses in a sentence; results are whole, and no lock is left"
    reliability("faults", "three Snakemakes at once", effort, len(wrong), rule)
    assert not wrong


def test_one_works_at_a_time_even_at_other_files(project):
    """Snakemake's own locks would let it. What plans, and jobs of a cluster, need no lock."""
    records = project.folder / ".snakemake"
    records.mkdir()
    with open(records / ".running", "a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = project.snakemake(ONE)
        assert not project.made()
        planned = project.jobs(ONE)
        job = ("--mode", "remote", "--no-hooks", f"{RUNS[0]}/run.yaml")
        of_a_cluster = project.snakemake(*job)
    assert planned == {"measure": 1, "run": 1}
    assert of_a_cluster.returncode == 0, of_a_cluster.stdout
    assert done.returncode != 0
    assert done.stdout.rstrip().endswith(REFUSAL)
