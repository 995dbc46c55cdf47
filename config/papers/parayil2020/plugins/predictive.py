"""Panels of one run and agent each, and metrics whose names end in labels or bins."""

import re
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from concord.errors import ConcordError
from concord.options import Index, Options
from concord_studies import selection
from concord_studies.option_notes import NamesRuns
from concord_studies.results import Measured


class Panel(Options):
    """One panel of a figure of predictions, with the run that it selects."""

    title: Annotated[str, "title of the panel"]
    select: Annotated[dict[str, Any] | None, NamesRuns("labels of its run, {label: value}")] = None
    agent: Annotated[Index, "agent whose predictions are shown"] = 0
    metric: Annotated[str | None, "metric of a map; none: the figure's"] = None


def run_of(panel: Panel, runs: Sequence[Measured]) -> Measured:
    """Return the only run that a panel selects."""
    return selection.only(selection.select(runs, panel.select), f"panel {panel.title!r}")


def numbers(run: Measured, prefix: str, agent: int, may_lack: bool) -> np.ndarray | None:
    """Return the values of the metrics ``<prefix><i>`` or ``<prefix><i>_<j>`` as an array.

    None where the run has none of them and ``may_lack`` allows that.
    """
    table = run.metrics[run.metrics["agent"] == str(agent)]
    found = {}
    for metric, value in zip(table["metric"], table["value"], strict=True):
        index = re.fullmatch(re.escape(prefix) + r"(\d+)(?:_(\d+))?", metric)
        if index:
            found[tuple(int(part) for part in index.groups() if part is not None)] = float(value)
    if not found:
        if may_lack:
            return None
        raise ConcordError(
            f"run {run.name} has no metrics {prefix}* of agent {agent}; add "
            "'predictions' to the metrics of its experiment, or choose another set or agent"
        )
    values = np.full([1 + max(axis) for axis in zip(*found, strict=True)], np.nan)
    for place, value in found.items():
        values[place] = value
    return values
