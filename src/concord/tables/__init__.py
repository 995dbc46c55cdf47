"""Tables: one module per kind, each with ``Params`` and ``tabulate(params, runs) -> Table``.

``marks_divergence`` decorates each ``tabulate``, so that a table names the runs that diverged.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from concord import results
from concord.report import markup
from concord.report.pages import Section, markdown_table


@dataclass(frozen=True)
class Table:
    """Columns and rows, as text or numbers; None is an empty cell. A note is shown below."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    note: str = ""

    def csv(self) -> str:
        """Return the table as CSV, numbers in full."""
        return markup.table(self.columns, self.rows)

    def markdown(self) -> str:
        """Return the table as Markdown, numbers to four digits."""
        lines = ([markup.markdown(_text(cell)) for cell in line] for line in self.rows)
        table = markdown_table([markup.markdown(column) for column in self.columns], lines)
        return "\n".join([*table, *(["", markup.markdown(self.note)] if self.note else []), ""])

    def section(self) -> Section:
        """Return the table for an HTML page, numbers to four digits; labels become filters."""
        rows = [[_text(cell) for cell in row] for row in self.rows]
        labels = [
            name
            for place, name in enumerate(self.columns)
            if 1 < len({row[place] for row in rows}) < min(len(rows), 20)
            and not any(isinstance(row[place], float) for row in self.rows)
        ]
        return Section("", self.note, self.columns, rows, labels)


def marks_divergence(tabulate: Callable[..., Table]) -> Callable[..., Table]:
    """Decorate a kind's ``tabulate``: the table has a note that names the runs that diverged."""

    @functools.wraps(tabulate)
    def tabulated(params: Any, runs: Sequence[results.Measured]) -> Table:
        return replace(tabulate(params, runs), note=results.diverged(params, runs) or "")

    return tabulated


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return format(cell, ".4g") if isinstance(cell, float) else str(cell)
