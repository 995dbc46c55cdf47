"""Panels of a figure: the runs, place, shared axes, titles and labels of each."""

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from concord_studies import selection
from concord_studies.figures import style
from concord_studies.option_notes import NamesLabel, NamesRuns
from concord_studies.results import Measured

# Options that several kinds of figures share.
Rows = Annotated[str | None, NamesLabel("label with one row of panels per value")]
Columns = Annotated[str | None, NamesLabel("label with one column of panels per value")]
Select = Annotated[
    dict | None, NamesRuns("runs drawn: {label: value or [values]}; a list sets the order")
]
Names = Annotated[dict | None, "other texts for values, or symbols for labels"]
Colors = Annotated[dict[str, str] | None, "colors of values, by value: {fald: '#B41E1E'}"]
Width = Annotated[
    Literal["auto", "column", "full"],
    "column (3.4 in), full (7 in), or auto: full for panels side by side",
]


@dataclass(frozen=True)
class Cell:
    """One panel: its title, its runs (empty if it has none) and its row and column."""

    title: str
    runs: list[Measured]
    row: int
    column: int


def cross_panels(
    runs: Sequence[Measured],
    names: Mapping[str, Any] | None,
    columns: str | None = None,
    rows: str | None = None,
) -> list[Cell]:
    """Return a panel per value of the label ``columns``, in a row per value of ``rows``.

    names: the study's texts, which title the panels.
    """
    cells = []
    for r, (row_value, in_row) in enumerate(selection.split(runs, rows)):
        for c, (column_value, _) in enumerate(selection.split(runs, columns)):
            labels = ((columns, column_value), (rows, row_value))
            title = ", ".join(style.name(key, value, names) for key, value in labels if key)
            shown = selection.with_value(in_row, columns, column_value) if columns else in_row
            cells.append(Cell(title, shown, r, c))
    return cells


def arrange_panels(
    panels: Iterable[tuple[str, Sequence[Measured]]], across: int | None = None
) -> list[Cell]:
    """Arrange panels, each a title and its runs, in reading order, ``across`` of them a row.

    Rows are filled from the top, so that a free cell is the last one and may hold the legend.
    """
    shown = [(title, list(runs)) for title, runs in panels]
    count = len(shown)
    if across is None:
        across = max(count, 1) if count <= 3 else 2 if count == 4 else 4 if count in (7, 8) else 3
    return [Cell(*panel, *divmod(place, across)) for place, panel in enumerate(shown)]


def split_lines(
    runs: Sequence[Measured],
    scope: Sequence[Measured],
    key: str,
    names: Mapping[str, Any] | None,
    colors: Mapping[str, str] | None = None,
) -> Iterator[tuple[Any, style.Look, str, list[Measured]]]:
    """Yield, for each value of a label, the value, its look, its text, and its runs.

    scope: the runs whose values get different looks, such as all runs of the figure.
    key, names, colors: the label, and the study's texts and colors for its values.
    """
    values = selection.distinct(scope, key)
    for value, look in zip(values, style.looks(key, values, colors), strict=True):
        yield value, look, style.name(key, value, names), selection.with_value(runs, key, value)


SMALL_PER_INCH = 18  # characters of the name of a tick


class Panels:
    """A figure with an axes for each cell, titled (a), (b), ...; iteration yields both.

    cells: the panels.
    height: height of one row in inches.
    share: panels with one y axis: "all", "row" or "none".
    width: "column" (3.4 in), "full" (7 in) or "auto": a column for panels in one column.
    """

    def __init__(
        self, cells: Sequence[Cell], height: float, share: str = "all", width: str = "auto"
    ) -> None:
        self.cells, self.share = cells, share
        self.rows = 1 + max(cell.row for cell in cells)
        self.columns = 1 + max(cell.column for cell in cells)
        column = width == "column" or (width == "auto" and self.columns == 1)
        size = (style.COLUMN if column else style.FULL, height * self.rows)
        self.figure: Figure = style.Picture(figsize=size, layout="constrained")
        shared: Any = share
        table = self.figure.subplots(self.rows, self.columns, squeeze=False, sharey=shared)
        for axes in table.ravel():
            axes.set_visible(False)
        self.axes: list[Axes] = [table[cell.row, cell.column] for cell in cells]
        self.free: Axes | None = next((ax for ax in table[-1] if ax not in self.axes), None)
        for index, (cell, axes) in enumerate(self):
            axes.set_label(chr(ord("a") + index))
            letter = f"({axes.get_label()}) " if len(cells) > 1 else ""
            axes.set_title(f"{letter}{cell.title}".rstrip())
            axes.set_visible(bool(cell.runs))

    def __iter__(self) -> Iterator[tuple[Cell, Axes]]:
        """Yield each cell with its axes."""
        return zip(self.cells, self.axes, strict=True)

    def label(self, x: str, y: str) -> None:
        """Label x below the lowest panel of each column, and y where the axis is not shared.

        Where panels of a column have other x axes each of their rows is labelled.
        """
        others = [cell for cell in self.cells if cell.runs]
        shown = [(cell, axes.get_xlim()) for cell, axes in self if cell.runs]
        alone = {
            cell.row
            for cell, limits in shown
            for c, below in shown
            if c.column == cell.column and c.row > cell.row and below != limits
        }
        for cell, axes in self:
            left = any(c.row == cell.row and c.column < cell.column for c in others)
            below = any(c.column == cell.column and c.row > cell.row for c in others)
            if not below or cell.row in alone:
                axes.set_xlabel(x)
            if not left:
                axes.set_ylabel(y)
            axes.tick_params(labelleft=self.share == "none" or not left)

    def with_legend(self, handles: Sequence[Artist], references: Sequence[Artist] = ()) -> Figure:
        """Return the figure with a legend, in a free cell of the grid or below all panels.

        references: entries of references, such as floors, which begin a new row.
        """
        entries = [*handles, *references]
        if self.free is None or len(entries) > 9:
            style.legend_of(self.figure, handles, references)
            return self.figure
        room = int(11 * self.figure.get_figwidth() / self.columns)
        for entry in entries:
            entry.set_label(textwrap.fill(str(entry.get_label()), room))
        self.free.set_visible(True)
        self.free.set_axis_off()
        self.free.legend(handles=entries, loc="upper left", borderaxespad=0)
        return self.figure
