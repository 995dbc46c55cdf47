"""Panels: which runs each shows, where it is, which axes it shares, and what x counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from concord import metrics, results
from concord.contracts import Read
from concord.errors import ConcordError
from concord.figures import style
from concord.results import Measured


@dataclass(frozen=True)
class Cell:
    """One panel: its title, its runs (none: the panel stays empty) and its place."""

    title: str
    runs: list[Measured]
    row: int
    column: int


def cross(
    runs: Sequence[Measured],
    rows: str | None,
    columns: str | None,
    names: Mapping[str, Any] | None,
    kind: str,
) -> list[Cell]:
    """Return a panel per value of ``columns`` in a row per value of ``rows``."""
    across = results.split(runs, columns, kind) if columns else [(None, list(runs))]
    down = results.split(runs, rows, kind) if rows else [(None, list(runs))]
    cells = []
    for r, (row_value, in_row) in enumerate(down):
        for c, (column_value, in_column) in enumerate(across):
            parts = []
            if columns:
                parts.append(style.name(columns, column_value, names))
            if rows:
                parts.append(style.name(rows, row_value, names))
            here = [m for m in in_column if any(m is other for other in in_row)]
            cells.append(Cell(", ".join(parts), here, r, c))
    return cells


def lines(
    runs: Sequence[Measured],
    scope: Sequence[Measured],
    key: str,
    names: Mapping[str, Any] | None,
) -> Iterator[tuple[Any, style.Look, str, list[Measured]]]:
    """Yield each value of ``key`` in ``scope``, with look, text, and those of ``runs`` with it."""
    values = results.distinct(scope, key)
    for value, look in zip(values, style.looks(key, values), strict=True):
        yield value, look, style.name(key, value, names), results.having(runs, key, value)


def wrap(count: int, across: int | None = None) -> list[tuple[int, int]]:
    """Return row and column of each of ``count`` panels listed one by one.

    A row that is not full is the first, so that labels stand below the last row only.
    """
    if across is None:
        across = max(count, 1) if count <= 3 else 2 if count == 4 else 4 if count in (7, 8) else 3
    spare = -count % across
    first = across - spare
    places = ((0, i) if i < first else divmod(i + spare, across) for i in range(count))
    return [(int(row), int(column)) for row, column in places]


def by_metric(
    metrics: Sequence[str], titles: Mapping[str, str] | None, runs: list[Measured]
) -> list[Cell]:
    """Return a panel per metric, each of all runs."""
    texts = [(titles or {}).get(metric, metric) for metric in metrics]
    return [Cell(t, runs, *place) for t, place in zip(texts, wrap(len(texts)), strict=True)]


def axes_of(
    cells: Sequence[Cell], share: str, width: str, height: float
) -> tuple[Figure, list[Axes]]:
    """Make the figure and one axes per panel, titled (a), (b), ...

    Parameters
    ----------
    cells
        The panels.
    share
        Panels with one y axis: "all", "row" or "none".
    width
        "column" (3.4 in), "full" (7 in) or "auto": a column for panels in one column.
    height
        Height of one row in inches.
    """
    rows = 1 + max(cell.row for cell in cells)
    columns = 1 + max(cell.column for cell in cells)
    if width == "auto":
        width = "column" if columns == 1 else "full"
    inches = style.COLUMN if width == "column" else style.FULL
    figure = Figure(figsize=(inches, height * rows), layout="constrained")
    sharing: Any = {"all": True, "row": "row", "none": False}[share]
    table = figure.subplots(rows, columns, squeeze=False, sharex=False, sharey=sharing)
    for spare in table.ravel():
        spare.set_visible(False)
    chosen = []
    for index, cell in enumerate(cells):
        axes = table[cell.row, cell.column]
        axes.set_visible(bool(cell.runs))
        axes.set_title(style.panel_title(index, cell.title, len(cells)))
        chosen.append(axes)
    return figure, chosen


def label(cells: Sequence[Cell], panels: Sequence[Axes], share: str, x: str, y: str) -> None:
    """Label the x axis of the lowest panel of each column and the y axis where it is not shared."""
    for cell, axes in zip(cells, panels, strict=True):
        below = [c for c in cells if c.column == cell.column and c.row > cell.row and c.runs]
        left = [c for c in cells if c.row == cell.row and c.column < cell.column and c.runs]
        if not below:
            axes.set_xlabel(x)
        if not left:
            axes.set_ylabel(y)
        axes.tick_params(labelleft=share == "none" or not left)


def price_reads(price: str, select: Mapping[str, Any] | None) -> list[Read]:
    """Return what runs must have for an x axis of ``_options.Price``."""
    return [Read(price, dict(select or {}), ("network",))] if price in metrics.prices() else []


def priced(run: Measured, iterations: np.ndarray, price: str, kind: str) -> np.ndarray:
    """Return where iterations are on the x axis."""
    if price not in metrics.prices():
        return iterations
    paid = results.series(run, price, "network", kind, metrics.families(price)[0])
    return np.interp(iterations, paid.iteration, paid.value)


def price_axis(panels: Sequence[Axes], price: str, scale: str) -> str:
    """Scale and number the x axes, whose limits are set, and return their label."""
    paid = metrics.prices().get(price)
    for axes in panels:
        axes.set_xscale(scale)
        if paid is not None:
            axes.xaxis.set_major_formatter(EngFormatter(unit=paid.unit, sep=" "))
        if scale == "log":
            style.sparse_log_axis(axes.xaxis)
    return "iteration $k$" if paid is None else paid.axis


def limits(values: Sequence[float | None] | None, where: str) -> tuple[float | None, float | None]:
    """Check ``[low, high]`` of a y axis; ``null`` on a side leaves it to the data."""
    if values is None:
        return None, None
    low, high = values
    if low is not None and high is not None and not low < high:
        raise ConcordError(f"{where}: {list(values)!r} is not in order; write it as [low, high]")
    return low, high
