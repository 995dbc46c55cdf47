"""What the arena says of all its cells: one long table of scores."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from concord_studies import words
from concord_studies.contracts import PRICES
from concord_studies.results import Measured
from concord_studies.scores import missing

COLUMNS = (
    *("experiment", "task", "entry", "price", "spent", "level", "score", "value", "lo", "hi"),
    "state",
)
_SCORES = re.compile(
    rf"(?!steps_|end_|sigma_)((?:floor\.)?\w+)_by_({'|'.join(PRICES)})|(stationary_b2)"
)


def task_of(run: Mapping[str, Any]) -> str:
    """Return a task's key: its labels of problem and network, joined by "+"."""
    return "+".join(f"{k}={v}" for k, v in run["labels"].items() if k != "entry") or "task"


def short_name(run: Mapping[str, Any]) -> str:
    """Return a task's name as it is printed and typed, such as "apart, ring"."""
    return ", ".join(str(v) for k, v in run["labels"].items() if k != "entry") or "task"


def called(run: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """Return a task's name for readers, such as "apart, ring"; ``names`` are the study's texts."""
    told = (words.label(k, v, names) for k, v in run["labels"].items() if k != "entry")
    return ", ".join(told) or run["experiment"].replace("_", " ")


def scores(cells: Sequence[Measured]) -> Iterator[list[Any]]:
    """Yield the rows of the long table of scores; a cell without scores has one with the reason.

    state: scored, diverged (the score is infinite), not applicable, or not run.
    """
    for cell in cells:
        run = cell.run
        head = [run["experiment"], task_of(run), run["labels"]["entry"]]
        if (lacking := missing(cell)) is not None:
            yield [*head, *[None] * 7, lacking]
            continue
        for row in cell.metrics.to_dict("records"):
            found = _SCORES.fullmatch(row["metric"])
            if found is None:
                continue
            score, price, limit = found.groups()
            spent = run["arena"]["budget"].get(price) if price else None
            ends = [None if np.isnan(row[end]) else row[end] for end in ("lo", "hi")]
            state = "scored" if np.isfinite(row["value"]) else "diverged"
            yield [*head, price, spent, row["agent"], score or limit, row["value"], *ends, state]
