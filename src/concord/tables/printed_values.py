"""Numbers that a paper prints, beside ours.

What a researcher writes in a paper's YAML::

    columns:                             # what the printed table compares
      - { name: SGD, select: { sampler: sgd } }
      - { name: agent 1, select: { sampler: d_ula }, agent: 0 }
    rows:
      - { name: "MNIST, mean", metric: confidence_mean_mnist, printed: [0.974, 0.973] }
      - { name: "SVHN, mean", metric: confidence_mean_svhn, printed: [0.849, 0.659],
          missing: "not run: its file is missing" }
    by: reading

The table has a line for each row, column and value of ``by``; ours is the metric at the run's last
iteration. Values of ``by`` that a column was not run with are left out. A row without ``printed``
is ours alone. Where a run lacks a row's metric, the text ``missing`` is in the column note, and
without that text it is an error.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from concord import results
from concord.contracts import Read
from concord.errors import ConcordError
from concord.options import Options, Some
from concord.results import Measured
from concord.tables import Table, marks_divergence

KIND = "printed_values"


class Column(Options):
    """One column of the printed table."""

    name: Annotated[str, "what the column is about"]
    select: Annotated[dict[str, Any] | None, "labels of its runs, {label: value}"] = None
    agent: Annotated[int | str, "agent: an index, average or network"] = 0


class Row(Options):
    """One row of the printed table."""

    name: Annotated[str, "what the row is about"]
    metric: Annotated[str, "name of the metric"]
    printed: Annotated[
        tuple[float | None, ...] | None,
        "printed number of each column, null where there is none; none: all ours",
    ] = None
    scale: Annotated[float, "our number is multiplied by this, 100 for percent"] = 1.0
    missing: Annotated[str | None, "note where a run lacks the metric; none: an error"] = None


class Params(Options):
    """Options of a table of printed values."""

    columns: Annotated[Some[Column], "columns of the printed table"]
    rows: Annotated[Some[Row], "rows of the printed table"]
    by: Annotated[str | None, "label of which the table shows every value, such as reading"] = None


def reads(params: Params) -> list[Read]:
    """Return the metrics that the runs must have."""
    return [
        Read(row.metric, column.select, (column.agent,))
        for row in params.rows
        if row.missing is None
        for column in params.columns
    ]


@marks_divergence
def tabulate(params: Params, runs: Sequence[Measured]) -> Table:
    """Return the table, one line per row, column and value of ``by``.

    Raises
    ------
    ConcordError
        If a row's printed numbers are not one per column, a column and value of ``by`` do not name
        one run, or a run lacks a metric.
    """
    for row in params.rows:
        if row.printed is not None and len(row.printed) != len(params.columns):
            raise ConcordError(
                f"table {KIND}: row {row.name!r} has {len(row.printed)} printed numbers for "
                f"{len(params.columns)} columns; give one for each, or null"
            )
    values = results.distinct(runs, params.by) if params.by else [None]
    lines = []
    for row in params.rows:
        for number, column in enumerate(params.columns):
            for value, run in _runs(column, params.by, values, runs):
                printed = row.printed[number] if row.printed else None
                head = [row.name, column.name, *([value] if params.by else []), printed]
                lines.append([*head, *_ours(row, column.agent, run, printed)])
    by = [params.by] if params.by else []
    return Table(
        ["quantity", "of", *by, "printed", "value", "lo", "hi", "difference", "note"], lines
    )


def _runs(
    column: Column, by: str | None, values: Sequence[Any], runs: Sequence[Measured]
) -> Iterator[tuple[Any, Measured]]:
    """Yield the column's run for every value of ``by`` that it was run with."""
    mine = results.select(runs, column.select, KIND)
    for value in values:
        chosen = [
            run for run in mine if by is None or results.same(results.lookup(run.run, by), value)
        ]
        if chosen:
            yield value, results.only(chosen, f"column {column.name!r}", KIND)


def _ours(row: Row, agent: int | str, run: Measured, printed: float | None) -> list[Any]:
    """Return value, lo, hi, difference from print and note."""
    table = run.metrics
    found = table[(table["metric"] == row.metric) & (table["agent"] == str(agent))]
    if found.empty:
        if row.missing is None:
            raise ConcordError(
                f"table {KIND}: {run.name} has no metric {row.metric!r} of agent {agent}; "
                "choose one of its metrics.csv, or give the row a text for missing"
            )
        return [None, None, None, None, row.missing]
    last = found.sort_values("iteration").iloc[-1]
    value, lo, hi = (
        None if math.isnan(last[name]) else row.scale * float(last[name])
        for name in ("value", "lo", "hi")
    )
    difference = None if printed is None or value is None else value - printed
    lost = value is None and results.divergence(run) is not None
    return [value, lo, hi, difference, "diverged" if lost else None]
