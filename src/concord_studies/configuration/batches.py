"""Batches: which runs of a study one job makes.

Runs that take less time than a command takes to start are made together, a long one by itself. The
runs of a batch are of one experiment, and the same figures, tables and verdicts show them: so a
figure makes no run that it does not show, and a run that changes redraws only what shows it.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from concord.contracts import offers
from concord_studies.configuration.study import Study
from concord_studies.contracts import Extra, Sharing
from concord_studies.make import Batch
from concord_studies.runs.run import Run

# Of a run and of a job, in updates of an agent in a chain: a second or two, and about ten. A step
# costs about as much as a thousand of them besides, whatever it updates.
SMALL, TOGETHER, STEP = 2e6, 1e7, 1000
# Of runs: the names of short ones stand in a job's command; of long ones each is an input of its
# job, and in Snakemake the time to plan grows with the square of their number.
MOST = 100
# Of cells of the arena by exact laws, most of which take half a second or less.
CELLS = 40


def batches(study: Study, chains_per_job: int | None = None) -> list[Batch]:
    """Return the batches of runs into which a study's work is divided.

    Cells of the arena are divided by task, whose data sets and posteriors all entries share; tasks
    whose cells are not sampled are together up to ``CELLS`` of them. Runs that read data files, or
    need what may not be installed, are with those that wait for the same; one whose chains are
    divided among jobs is by itself. Long runs are measured together only where more than ``MOST``
    of them are shown together, or where they have part of their metrics in common.
    """
    found: dict[str, tuple[Run, ...]] = {}
    count: dict[str, int] = defaultdict(int)

    def add(experiment: str, runs: Sequence[Run]) -> None:
        """Add runs as the next batch of an experiment."""
        found[f"{experiment}/batch_{count[experiment]}"] = tuple(runs)
        count[experiment] += 1

    for experiment, cells in _cells(study):
        add(experiment, cells)
    for experiment, runs in _alike(study):
        alone: list[Run] = []
        together: list[Run] = []
        taken = 0.0
        for run in runs:
            if long(run, chains_per_job):
                alone.append(run)
                continue
            taken += cost(run)
            if together and (taken > TOGETHER or len(together) == MOST):
                add(experiment, together)
                together, taken = [], cost(run)
            together.append(run)
        if together:
            add(experiment, together)
        if len(alone) > MOST or (len(alone) > 1 and all(map(_shares, alone))):
            for part in range(0, len(alone), MOST):
                add(experiment, alone[part : part + MOST])
        else:
            found |= {f"{experiment}/{run.name}": (run,) for run in alone}
    return [Batch(name, study.key, runs) for name, runs in found.items()]


def long(run: Run, chains_per_job: int | None = None) -> bool:
    """Return whether a run is sampled by a job of its own."""
    divided = chains_per_job is not None and run.chains > chains_per_job
    return run.arena is None and (divided or cost(run) > SMALL)


def _shares(run: Run) -> bool:
    """Return whether a run's problem shares part of its metrics with other runs."""
    kind = run.problem.module
    return offers(kind, Sharing) and kind.shares(run.problem.params)


def cost(run: Run) -> float:
    """Return the computing cost of a run, in updates of one agent."""
    return float(run.iterations * (run.chains * run.agents + STEP))


def _cells(study: Study) -> Iterator[tuple[str, list[Run]]]:
    """Yield an experiment and the arena cells that one job scores, task after task."""
    tasks: dict[str, dict[Any, list[Run]]] = defaultdict(lambda: defaultdict(list))
    for run in study.runs.values():
        if run.arena is not None:
            task = tuple(label for axis, label in run.labels.items() if axis != "entry")
            tasks[run.experiment][task].append(run)
    for experiment, of in tasks.items():
        together: list[Run] = []
        for cells in of.values():
            arena = cells[0].arena
            assert arena is not None
            if together and (arena.sampled or len(together) + len(cells) > CELLS):
                yield experiment, together
                together = []
            together = together + cells
        yield experiment, together


def _alike(study: Study) -> list[tuple[str, list[Run]]]:
    """Return experiments with the runs that the same figures, tables and verdicts show."""
    shown: dict[str, list[str]] = defaultdict(list)
    for section in ("figures", "tables"):
        for name in study.outputs(section):
            for run in study.output_runs(section, name):
                shown[run.folder].append(f"{section}/{name}")
    for run in study.claim_runs():
        shown[run.folder].append("claims")
    alike: dict[tuple[Any, ...], list[Run]] = defaultdict(list)
    for run in study.runs.values():
        if run.arena is None:
            waits = run.data_sets, run.optional_data_sets, offers(run.problem.module, Extra)
            alike[run.experiment, waits, *shown[run.folder]].append(run)
    return [(experiment, runs) for (experiment, *_), runs in alike.items()]
