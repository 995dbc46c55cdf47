"""Numbers that a paper prints, beside ours, laid out as the paper's own table.

What a researcher writes in a paper's YAML::

    heads: [data, ""]                    # what is above the columns that name a row
    columns:                             # those of the printed table
      - { name: SGD, select: { sampler: sgd } }
      - { name: agent 1, select: { sampler: d_ula }, agent: 0 }
    rows:                                # those of the printed table; group names it further
      - { group: [MNIST], name: Mean, metric: confidence_mean_mnist, printed: [0.974, 0.973] }
      - { group: [SVHN], name: Mean, metric: confidence_mean_svhn, printed: [0.849, 0.659],
          missing: "not run: its file is missing" }
    by: reading

A row's printed numbers are above ours, with their intervals, for each value of ``by`` that its
columns were run with; in a table of one column they are beside ours. Ours is the metric at the
run's last iteration. A row without ``printed`` is ours alone. Where a run lacks a row's metric
print stands alone and the text ``missing`` is below the table; without that text it is an error.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from msgspec import Meta

from concord.errors import ConcordError
from concord.options import Options, Some
from concord_studies import results, selection, words
from concord_studies.contracts import Read
from concord_studies.option_notes import NamesLabel, NamesRuns
from concord_studies.results import Measured
from concord_studies.tables import Layout, Table, marks_divergence

Number = Annotated[
    str, Meta(pattern=r"^-?[0-9]+(\.[0-9]+)?$(?!\n)", title="a number as printed, in quotes")
]


class Column(Options):
    """One column of the printed table."""

    name: Annotated[str, "what the column is about"]
    select: Annotated[dict[str, Any] | None, NamesRuns("labels of its runs, {label: value}")] = None
    agent: Annotated[int | str, "agent: an index, average or network"] = 0


class Row(Options):
    """One row of the printed table."""

    name: Annotated[str, "what the row is about"]
    metric: Annotated[str, "name of the metric"]
    group: Annotated[tuple[str, ...], "what stands left of the name, from the left"] = ()
    printed: Annotated[
        tuple[float | Number | None, ...] | None,
        "printed number of each column, in quotes if it ends in 0; null where there is none; "
        "none: all ours",
    ] = None
    scale: Annotated[float, "our number is multiplied by this, 100 for percent"] = 1.0
    missing: Annotated[str | None, "note where a run lacks the metric; none: an error"] = None
    agent: Annotated[int | str | None, "agent of the row, in place of the columns'"] = None
    select: Annotated[
        dict[str, Any] | None, NamesRuns("labels of its runs, besides the columns'")
    ] = None

    def agent_in(self, column: Column) -> int | str:
        """Return the agent whose number stands in a column of the row."""
        return column.agent if self.agent is None else self.agent


class Params(Options):
    """Options of a table of printed values."""

    columns: Annotated[Some[Column], "columns of the printed table"]
    rows: Annotated[Some[Row], "rows of the printed table"]
    by: Annotated[
        str | None, NamesLabel("label of which the table shows every value, such as reading")
    ] = None
    heads: Annotated[tuple[str, ...], "heads of the columns that name a row"] = ()
    names: Annotated[dict[str, str] | None, "other texts for values of by, and for print"] = None


def reads(params: Params) -> list[Read]:
    """Return the metrics that the runs must have.

    A ConcordError if a row's printed numbers are not one per column.
    """
    for row in params.rows:
        if row.printed is not None and len(row.printed) != len(params.columns):
            raise ConcordError(
                f"row {row.name!r} has {len(row.printed)} printed numbers for "
                f"{len(params.columns)} columns; give one for each, or null"
            )
    return [
        Read(row.metric, {**(column.select or {}), **(row.select or {})}, (row.agent_in(column),))
        for row in params.rows
        if row.missing is None
        for column in params.columns
    ]


@marks_divergence
def tabulate(params: Params, runs: Sequence[Measured]) -> Table:
    """Return the table of printed and own values; one line per row, column and ``by``.

    A ConcordError if a column and value of ``by`` do not name one run, or a run lacks a metric.
    """
    values = selection.distinct(runs, params.by) if params.by else [None]
    lines, notes = [], []
    cells: dict[tuple[int, int], dict[int, str]] = {}  # (row, 0 of print or 1 and so on), column
    found: dict[int, list[tuple[int, int, list[Any]]]] = {}  # row: (1 and so on, column, numbers)
    for r, row in enumerate(params.rows):
        for number, column in enumerate(params.columns):
            for value, run in _choose_runs(column, row, params.by, values, runs):
                printed = row.printed[number] if row.printed else None
                ours = _read_number(row, row.agent_in(column), run, printed)
                head = ["; ".join((*row.group, row.name)), column.name, *[value] * bool(params.by)]
                lines.append([*head, None if printed is None else float(printed), *ours])
                if printed is not None:
                    text = printed if isinstance(printed, str) else format(printed, ".10g")
                    cells.setdefault((r, 0), {})[number] = text
                if ours[0] is not None or (printed is not None and not row.missing):
                    found.setdefault(r, []).append((1 + values.index(value), number, ours))
                elif row.missing:
                    notes.append(f"{[*row.group, row.name][0]}: {row.missing}.")
    for r, in_row in found.items():
        exact = [
            ours[0] for *_, ours in in_row if ours[0] is not None and ours[1] is ours[2] is None
        ]
        digits = words.count_digits(exact)
        for kind, number, ours in in_row:
            cell = "diverged" if ours[4] else words.format_cell(ours[0], ours[1], ours[2], digits)
            cells.setdefault((r, kind), {})[number] = cell
    by = [params.by] if params.by else []
    return Table(
        ["quantity", "of", *by, "printed", "value", "lo", "hi", "difference", "note"],
        lines,
        _lay_out(params, values, cells),
        " ".join(dict.fromkeys(notes)),
    )


def _lay_out(
    params: Params, values: Sequence[Any], cells: Mapping[tuple[int, int], Mapping[int, str]]
) -> Layout:
    """Lay out numbers as the paper's table, with print above ours, or left of it in one column.

    values: of the label ``by``. cells: numbers by row of the table and kind, 0 for print, and by
    column.
    """
    kinds = [
        (params.names or {}).get("print", "print"),
        *(words.name(params.by, v, params.names) if params.by else "ours" for v in values),
    ]
    spare = *("",) * len(params.rows[0].group), "quantity"
    heads = [*params.heads, *spare[len(params.heads) :]][: len(spare)]
    names = [(*row.group, row.name) for row in params.rows]
    if len(params.columns) == 1:
        shown = sorted({kind for _, kind in cells})
        rows = [
            [*name, *(cells.get((r, kind), {}).get(0, "") for kind in shown)]
            for r, name in enumerate(names)
        ]
        return Layout([*heads, *(kinds[kind] for kind in shown)], rows, len(heads))
    told = params.by is not None or len({kind for _, kind in cells}) > 1
    rows = [
        [*names[r], *[kinds[kind]] * told]
        + [cells[r, kind].get(n, "") for n in range(len(params.columns))]
        for r, kind in sorted(cells)
    ]
    heads = [*heads, *[params.by.replace("_", " ") if params.by else "source"] * told]
    return Layout([*heads, *(c.name for c in params.columns)], rows, len(heads))


def _choose_runs(
    column: Column, row: Row, by: str | None, values: Sequence[Any], runs: Sequence[Measured]
) -> Iterator[tuple[Any, Measured]]:
    """Yield each value of the label ``by`` with the run of a cell of the printed table."""
    selected = selection.select(runs, {**(column.select or {}), **(row.select or {})})
    for value in values:
        chosen = selected if by is None else selection.with_value(selected, by, value)
        if chosen:
            yield value, selection.take_single(chosen, f"column {column.name!r}, row {row.name!r}")


def _read_number(row: Row, agent: int | str, run: Measured, printed: Any) -> list[Any]:
    """Return an agent's value in a run, its interval, its difference from print, and a note.

    printed: the printed value; None: none.
    """
    table = run.metrics
    rows = table[(table["metric"] == row.metric) & (table["agent"] == str(agent))]
    if rows.empty:
        if row.missing is None:
            raise ConcordError(
                f"{run.name} has no metric {row.metric!r} of agent {agent}; "
                "choose one of its metrics.csv, or give the row a text for missing"
            )
        return [None, None, None, None, row.missing]
    last = rows.sort_values("iteration").iloc[-1]
    value, lo, hi = (
        None if math.isnan(last[name]) else row.scale * float(last[name])
        for name in ("value", "lo", "hi")
    )
    difference = None if printed is None or value is None else value - float(printed)
    lost = value is None and results.divergence(run) is not None
    return [value, lo, hi, difference, "diverged" if lost else None]
