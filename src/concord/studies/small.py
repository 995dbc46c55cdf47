"""Small runs: those that a command takes longer to start for than to compute.

One job resolves, samples and measures several of them. They are of one experiment, and the same
figures, tables and verdicts show them: so asking for one of these makes no run that it does not
show, and a run that changes redraws only what shows it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from concord.contracts import Extra
from concord.plugins import plugin
from concord.runs import data_sets, optional_data_sets
from concord.studies.paper import Paper, Run

# Of a run and of a job, in updates of an agent in a chain: a second or two, and about ten. A step
# costs about as much as a thousand of them besides, whatever it updates.
SMALL, TOGETHER, STEP = 2e6, 1e7, 1000
MOST = 100  # runs of a job, whose names stand in its command


def small_runs(paper: Paper, chains_per_job: int | None = None) -> dict[str, list[list[Run]]]:
    """Return the small runs of a study's experiments, by experiment, divided into jobs.

    Cells of the arena have jobs of their own. A run is on its own, too, if it reads data files or
    needs what may not be installed, since others must not wait for those, and if its chains are
    divided over jobs.
    """
    found: dict[str, list[list[Run]]] = defaultdict(list)
    for experiment, alike in _alike(paper):
        taken = math.inf
        for run in alike:
            if _small(run, chains_per_job):
                taken += cost(run.mapping)
                if taken > TOGETHER or len(found[experiment][-1]) == MOST:
                    found[experiment].append([])
                    taken = cost(run.mapping)
                found[experiment][-1].append(run)
    return found


def many_runs(paper: Paper, chains_per_job: int | None = None) -> dict[str, list[list[Run]]]:
    """Return the runs that are not small, by experiment, where more than MOST are shown together.

    They are divided, so that a figure has an input for each part: in Snakemake the time to plan
    grows with the square of a job's inputs.
    """
    found: dict[str, list[list[Run]]] = defaultdict(list)
    for experiment, alike in _alike(paper):
        runs = [run for run in alike if not _small(run, chains_per_job)]
        if len(runs) > MOST:
            found[experiment] += [runs[i : i + MOST] for i in range(0, len(runs), MOST)]
    return found


def _alike(paper: Paper) -> list[tuple[str, list[Run]]]:
    """Return experiments and runs of theirs that the same figures, tables and verdicts show."""
    shown: dict[str, list[str]] = defaultdict(list)
    for section in ("figures", "tables"):
        for name in paper.mapping.get(section, {}):
            for run in paper.output_runs(section, name):
                shown[run.folder].append(f"{section}/{name}")
    for run in paper.claim_runs():
        shown[run.folder].append("claims")
    alike: dict[tuple[str, ...], list[Run]] = defaultdict(list)
    for run in paper.runs.values():
        if "arena" not in run.mapping:
            alike[run.experiment, *shown[run.folder]].append(run)
    return [(experiment, runs) for (experiment, *_), runs in alike.items()]


def _small(run: Run, chains_per_job: int | None) -> bool:
    split = chains_per_job is not None and run.mapping["chains"] > chains_per_job
    return not split and cost(run.mapping) <= SMALL


def cost(run: Mapping[str, Any]) -> float:
    """Return what a run costs, in updates; infinity if it may have to wait for something."""
    needs = isinstance(plugin("problems", run["problem"]["kind"], "problem"), Extra)
    if needs or data_sets(run) or optional_data_sets(run):
        return math.inf
    return float(run["iterations"] * (run["chains"] * run["agents"] + STEP))
