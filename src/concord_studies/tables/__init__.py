"""Tables: one module per kind, each with ``Params`` and ``tabulate(params, runs) -> Table``.

``marks_divergence`` decorates each ``tabulate``, so that a table names the runs that diverged.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from concord_studies import markup, results

LIMIT = 40  # rows: what a page holds


@dataclass(frozen=True)
class Layout:
    """A table for readers: texts in rows, of which they see the first ``LIMIT``.

    labels: the number of leading columns that name the row. more: the number of rows, besides
    these, that only the long form has.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    labels: int
    more: int = 0


@dataclass(frozen=True)
class Table:
    """Numbers in long form, for programs, with their layout for readers.

    columns, rows: the long form, texts or numbers; None is an empty cell.
    layout: the table for readers.
    note: the text below it.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    layout: Layout
    note: str = ""

    def csv(self) -> str:
        """Return the long form as CSV text, numbers in full precision."""
        return markup.table(self.columns, self.rows)

    def markdown(self) -> str:
        """Return the layout as Markdown."""
        labels, rows = self.layout.labels, self._list_rows()
        cells = ([markup.markdown(cell) for cell in row] for row in rows)
        heads = [markup.markdown(column) for column in self.layout.columns]
        lines = markup.markdown_table(heads, cells, labels)
        return "\n".join([*lines, *(["", markup.markdown(self._below)] if self._below else []), ""])

    def _list_rows(self) -> list[list[str]]:
        """Return the rows that readers see, without names that repeat."""
        return _blank_repeats(self.layout.rows[:LIMIT], self.layout.labels)

    @property
    def _below(self) -> str:
        """Return the number of rows that the long form alone has, and the note."""
        more = self.layout.more + max(0, len(self.layout.rows) - LIMIT)
        rest = f"The CSV file of this table has {more} more such rows." if more else ""
        return " ".join(filter(None, [rest, self.note]))

    def latex(self, title: str) -> str:
        """Return the layout as LaTeX, for the packages booktabs and longtable."""
        layout = self.layout
        sides = "l" * layout.labels + "r" * (len(layout.columns) - layout.labels)
        head, *rows = (
            " & ".join(map(markup.latex, row)) + r" \\"
            for row in [layout.columns, *self._list_rows()]
        )
        lines = [
            r"% \usepackage{booktabs,longtable}",
            rf"\begin{{longtable}}{{@{{}}{sides}@{{}}}}",
            rf"\caption{{{markup.latex(title)}}}\\",
            rf"\toprule {head} \midrule \endhead",
            r"\bottomrule \endfoot",
            *rows,
            r"\end{longtable}",
        ]
        return "\n".join([*lines, *([markup.latex(self._below)] if self._below else []), ""])


def _blank_repeats(rows: Sequence[Sequence[str]], labels: int) -> list[list[str]]:
    """Return rows with "" for names that repeat those of the row above.

    labels: the number of leading columns with names.
    """
    blanked, above = [], [""] * labels
    for row in rows:
        names = list(row[:labels])
        same = 0
        while same < labels - 1 and names[: same + 1] == above[: same + 1]:
            same += 1
        blanked.append([*([""] * same), *row[same:]])
        above = names
    return blanked


def marks_divergence(tabulate: Callable[..., Table]) -> Callable[..., Table]:
    """Decorate a kind's ``tabulate`` so that a note names the runs that diverged."""

    @functools.wraps(tabulate)
    def tabulate_with_note(params: Any, runs: Sequence[results.Measured]) -> Table:
        """Build the table, with a note on the runs that diverged."""
        with results.name_in_errors("table", tabulate):
            table = tabulate(params, runs)
        notes = [table.note, results.divergence_note(params, runs) or ""]
        return replace(table, note=" ".join(filter(None, notes)))

    return tabulate_with_note
