"""What it takes to plan a figure of many runs: `python tests/bench/planning.py 1000 2000 10000`.

A dry run, in a project of its own, of experiments of a hundred runs that one figure shows: CPU
seconds and largest memory of Snakemake, reading and checking the study included.
"""

import os
import resource
import subprocess
import sys
import tempfile
from copy import deepcopy
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
STUDY = """
paper: { title: Many, authors: A, year: 2021 }
problems: { linear: { kind: linear_regression, points: 40 } }
defaults: { agents: 4, topology: ring, chains: 8, iterations: 12, metrics: [w2],
            sampler: { kind: de_sgld } }
figures:
  all: { kind: curves, title: All, runs: [],
         options: { metric: w2, lines: step, agents: [average] } }
"""


def write_study(runs: int) -> str:
    """Return a study of so many runs, a hundred in an experiment, and a figure of them."""
    study, values = (
        yaml.safe_load(STUDY),
        [round(1e-6 * n, 6) for n in range(1, min(runs, 100) + 1)],
    )
    sweep = {"step": {"key": "sampler.step_size", "values": values}}
    names = [f"steps_{number}" for number in range(max(runs // 100, 1))]
    study["experiments"] = {name: {"problem": "linear", "sweep": deepcopy(sweep)} for name in names}
    study["figures"]["all"]["runs"] = names
    return yaml.safe_dump(study)


def plan(runs: int) -> tuple[int, float, float]:
    """Return the number of jobs, CPU seconds and megabytes of a dry run."""
    with tempfile.TemporaryDirectory() as folder:
        for part in ("Snakefile", "workflow", "src", "envs", "profiles"):
            os.symlink(ROOT / part, Path(folder, part))
        file = Path(folder, "config", "papers", "planned", "study.yaml")
        file.parent.mkdir(parents=True)
        file.write_text(write_study(runs))
        (file.parents[2] / "datasets.yaml").symlink_to(ROOT / "config" / "datasets.yaml")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "snakemake", "-n", "results/planned/figures/all.pdf"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    total = next(line for line in done.stdout.splitlines() if line.startswith("total"))
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return int(total.split()[1]), seconds, after.ru_maxrss / 1024


if __name__ == "__main__":
    print("runs,jobs,cpu_seconds,max_rss_mb")
    for runs in sorted(map(int, sys.argv[1:])):  # growing: the memory is that of the largest yet
        jobs, seconds, megabytes = plan(runs)
        print(f"{runs},{jobs},{seconds:.1f},{megabytes:.0f}", flush=True)
