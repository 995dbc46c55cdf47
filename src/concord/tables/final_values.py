"""Metrics at the last recorded iteration, or at others, of every run and agent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal

from concord.errors import ConcordError, nearest
from concord.options import Index, Options, Some
from concord.results import Measured
from concord.tables import Table, marks_divergence


class Params(Options):
    """Options of a table of final values."""

    metrics: Annotated[
        Some[str],
        "names of the metrics shown; patterns such as theorem2.* too",
    ]
    agents: Annotated[
        Some[int | str] | None,
        "agents shown: indices, average or network; none: all",
    ] = None
    iterations: Annotated[
        Some[Index] | None,
        "iterations shown; none: the last of each metric",
    ] = None
    layout: Annotated[
        Literal["long", "wide"],
        "long: one row per value, with its interval; wide: one column per metric, without",
    ] = "long"


def reads(params: Params) -> list[str]:
    """Return the metrics that some of the runs must have."""
    return list(params.metrics)


@marks_divergence
def tabulate(params: Params, runs: Sequence[Measured]) -> Table:
    """Return the table; the columns before agent are the runs' labels.

    A metric is shown where a run has it: the runs of a sweep may differ in what is measured.

    Raises
    ------
    ConcordError
        If none of the runs has a metric.
    """
    available = list(dict.fromkeys(name for run in runs for name in run.metrics["metric"]))
    for pattern in params.metrics:
        if not _matching(pattern, available):
            raise ConcordError(
                f"table final_values: none of the runs has a metric {pattern!r}; "
                f"{nearest(pattern, available)}"
            )
    labels = list(dict.fromkeys(label for run in runs for label in run.run["labels"]))
    keys = ["experiment", *labels, "agent", "iteration"]
    entries = [
        (_key(run, labels, row), row["metric"], row) for run in runs for row in _rows(run, params)
    ]
    if params.layout == "wide":
        metrics = list(dict.fromkeys(metric for _, metric, _ in entries))
        wide: dict[tuple[Any, ...], dict[str, float]] = {}
        for key, metric, row in entries:
            wide.setdefault(key, {})[metric] = row["value"]
        rows = [[*key, *(values.get(name) for name in metrics)] for key, values in wide.items()]
        return Table([*keys, *metrics], rows)
    rows = [
        [*key, metric, row["value"], _end(row["lo"]), _end(row["hi"])]
        for key, metric, row in entries
    ]
    return Table([*keys, "metric", "value", "lo", "hi"], rows)


def _key(run: Measured, labels: Sequence[str], row: dict[str, Any]) -> tuple[Any, ...]:
    values = [run.run["labels"].get(label) for label in labels]
    return run.run["experiment"], *values, row["agent"], int(row["iteration"])


def _rows(run: Measured, params: Params) -> list[dict[str, Any]]:
    """Return the rows of a run that the table shows, metric by metric."""
    wanted = None if params.agents is None else {str(agent) for agent in params.agents}
    available = list(dict.fromkeys(run.metrics["metric"]))
    chosen: list[dict[Any, Any]] = []
    for pattern in params.metrics:
        for name in _matching(pattern, available):
            rows = run.metrics[run.metrics["metric"] == name]
            shown = params.iterations or [rows["iteration"].max()]
            rows = rows[rows["iteration"].isin(shown)]
            chosen += [
                row for row in rows.to_dict("records") if wanted is None or row["agent"] in wanted
            ]
    return chosen


def _matching(pattern: str, names: Sequence[str]) -> list[str]:
    return [name for name in names if name == pattern or fnmatchcase(name, pattern)]


def _end(value: float) -> float | None:
    return None if math.isnan(value) else value
