"""How long a workflow would take on other numbers of cores: `tests/bench/cores.py results 8 64`.

Jobs and what they wait for are those of a dry run of everything that is forced; their seconds are
the column `s` of the benchmarks in a folder of results, zero where there is none (the command says
of how many jobs). A job starts once its inputs are there and a core is free, those of higher
priority first. Planning is not counted.
"""

import heapq
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple


class Job(NamedTuple):
    """A job of a dry run: its files, the file of its benchmark, "" without, and its priority."""

    inputs: list[str]
    outputs: list[str]
    benchmark: str
    priority: int


def read_jobs(text: str) -> list[Job]:
    """Return the jobs that a dry run prints."""
    blocks = re.split(r"^ *(?:local)?(?:rule|checkpoint) .*:$", text, flags=re.M)[1:]
    facts = [dict(re.findall(r"^ +(\w+): (.*)$", block, flags=re.M)) for block in blocks]
    files = [[fact.get(key, "").split(", ") for key in ("input", "output")] for fact in facts]
    return [
        Job(*of, fact.get("benchmark", ""), int(fact.get("priority", 0)))
        for of, fact in zip(files, facts, strict=True)
    ]


def simulate(jobs: list[Job], seconds: dict[str, float], cores: int) -> float:
    """Return when the last job ends. seconds: of jobs, by the file of their benchmark."""
    makers = {file: number for number, job in enumerate(jobs) for file in job.outputs if file}
    waits = [{makers[file] for file in job.inputs if file in makers} for job in jobs]
    ready = [(-job.priority, n) for n, job in enumerate(jobs) if not waits[n]]
    running: list[tuple[float, int]] = []
    heapq.heapify(ready)
    now = 0.0
    while ready or running:
        while ready and len(running) < cores:
            number = heapq.heappop(ready)[1]
            heapq.heappush(running, (now + seconds.get(jobs[number].benchmark, 0.0), number))
        now, ended = heapq.heappop(running)
        for number, wait in enumerate(waits):
            if ended in wait:
                wait.remove(ended)
                if not wait:
                    heapq.heappush(ready, (-jobs[number].priority, number))
    return now


def main(folder: str, *cores: str) -> None:
    """Print the seconds on each number of cores, beside those of all jobs and of the longest."""
    command = [sys.executable, "-m", "snakemake", "-n", "reproduce", "--forceall"]
    jobs = read_jobs(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    seconds = {}
    for job in jobs:
        path = Path(folder, *Path(job.benchmark).parts[1:])
        if job.benchmark and path.is_file():
            seconds[job.benchmark] = float(path.read_text().splitlines()[1].split("\t")[0])
    print(f"{len(seconds)} of {len(jobs)} jobs have a benchmark")
    print(f"all jobs {sum(seconds.values()):.0f} s, the longest {max(seconds.values()):.0f} s")
    for number in map(int, cores):
        print(f"{number} cores: {simulate(jobs, seconds, number):.0f} s")


if __name__ == "__main__":
    main(*sys.argv[1:])
