"""The job of an arena: cells of an experiment, task after task, each scored."""

import json
import time
from pathlib import Path

from concord.errors import ConcordError
from concord.progress import each
from concord_arena import cells
from concord_studies.experiment import ArenaExperiment, read_runs
from concord_studies.io import write_whole


def score(path: Path, output: Path, resources: Path, part: int = 1, parts: int = 1) -> None:
    """Score the cells of a runs.yaml, or one of several parts of them.

    path: the runs.yaml. output: a JSON file with the rows of metrics, the choice of settings and
    the CPU seconds of each cell, by name. A ConcordError if the runs are no cells.
    """
    experiment = read_runs(path)
    if not isinstance(experiment, ArenaExperiment):
        raise ConcordError(f"{path}: its runs are sampled; use `concord sample` or `measure`")
    guard = experiment.guard(path, output, resources)
    cells_by_name = {}
    for name in each(list(experiment.select_part(part, parts)), "cells"):
        run, begun = experiment.runs[name], time.process_time()
        scored = cells.score(run, cells.build_task(run, resources))
        rows = [row._replace(iteration=int(row.iteration)) for row in scored.rows]
        seconds = round(time.process_time() - begun, 3)
        cells_by_name[name] = {"rows": rows, "choice": scored.choice, "cpu_seconds": seconds}
    guard.check_again()
    write_whole(output, json.dumps(cells_by_name, default=lambda number: number.item()))
