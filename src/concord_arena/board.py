"""The board of the arena: one long table of the scores of all cells, and the names of tasks."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from concord.errors import ConcordError, nearest
from concord_studies.contracts import PRICES
from concord_studies.results import Measured
from concord_studies.runs.run import Run
from concord_studies.scores import why_no_scores

COLUMNS = (
    *("experiment", "task", "entry", "price", "spent", "level", "score", "value", "lo", "hi"),
    "state",
)
_SCORES = re.compile(rf"(?!steps_|end_)((?:floor\.)?\w+)_by_({'|'.join(PRICES)})|(stationary_b2)")


def name_task(labels: Mapping[str, Any]) -> str:
    """Return a task's name, such as "apart, ring": the values of its run's labels but the entry."""
    return ", ".join(str(v) for k, v in labels.items() if k != "entry") or "task"


def choose_tasks(runs: Sequence[Run], typed: Sequence[str]) -> list[Run]:
    """Return the runs whose task, or one of its labels, is among the typed words.

    Without words all runs. A ConcordError if no task has any of the words.
    """
    names = [
        {name_task(run.labels), *(str(v) for k, v in run.labels.items() if k != "entry")}
        for run in runs
    ]
    chosen = [
        run for run, labels in zip(runs, names, strict=True) if not typed or labels & {*typed}
    ]
    if not chosen:
        all_labels = {name for labels in names for name in labels}
        raise ConcordError(f"--tasks: no task has {typed[0]!r}; {nearest(typed[0], all_labels)}")
    return chosen


def iterate_scores(cells: Sequence[Measured]) -> Iterator[list[Any]]:
    """Yield the rows of the table of scores, whose columns are ``COLUMNS``.

    The state is scored, diverged (the score is infinite), not applicable, or not run. A cell
    without scores has one row.
    """
    for cell in cells:
        run = cell.run
        head = [run["experiment"], name_task(run["labels"]), run["labels"]["entry"]]
        if (lacking := why_no_scores(cell)) is not None:
            yield [*head, *[None] * 7, lacking]
            continue
        for row in cell.metrics.to_dict("records"):
            match = _SCORES.fullmatch(row["metric"])
            if match is None:
                continue
            score, price, limit = match.groups()
            spent = run["arena"]["budget"].get(price) if price else None
            ends = [None if np.isnan(row[end]) else row[end] for end in ("lo", "hi")]
            state = "scored" if np.isfinite(row["value"]) else "diverged"
            yield [*head, price, spent, row["agent"], score or limit, row["value"], *ends, state]
