"""Tables: one module per kind, each with ``Params`` and ``tabulate(params, runs) -> Table``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from concord import text
from concord.pages import Section


@dataclass(frozen=True)
class Table:
    """Columns and rows, as text or numbers; None is an empty cell."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]

    def csv(self) -> str:
        """Return the table as CSV, numbers in full."""
        return text.table(self.columns, self.rows)

    def markdown(self) -> str:
        """Return the table as Markdown, numbers to four digits."""
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        cells = [
            [text.markdown(_text(cell)).replace("|", r"\|") for cell in line] for line in lines
        ]
        return "".join("| " + " | ".join(line) + " |\n" for line in cells)

    def section(self) -> Section:
        """Return the table for an HTML page, numbers to four digits; labels become filters."""
        rows = [[_text(cell) for cell in row] for row in self.rows]
        labels = [
            name
            for place, name in enumerate(self.columns)
            if 1 < len({row[place] for row in rows}) < min(len(rows), 20)
            and not any(isinstance(row[place], float) for row in self.rows)
        ]
        return Section("", "", self.columns, rows, labels)


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return format(cell, ".4g") if isinstance(cell, float) else str(cell)
