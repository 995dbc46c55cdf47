"""Pages of tables as Markdown, whose cells may have lines that are folded."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from concord_studies.markup import markdown, markdown_table


@dataclass(frozen=True)
class Folded:
    """A cell with lines that are folded under a summary, to which an anchor may lead."""

    text: str
    summary: str
    lines: tuple[str, ...]
    anchor: str = ""


@dataclass(frozen=True)
class Section:
    """A section of a page, with a table.

    heading, text: those of the section, above the table.
    columns, rows: names of the columns; cells as text, some with folded lines.
    equation: formulas in LaTeX, above the table.
    lines: Markdown, above the table.
    """

    heading: str
    text: str
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str | Folded]] = ()
    equation: str = ""
    lines: Sequence[str] = ()


def page(
    title: str,
    text: str,
    parts: Iterable[Section],
    figure: Callable[[str], str] = markdown,
) -> str:
    """Return a page as Markdown; ``figure`` writes the cells of the column "figure", as links."""
    lines = [f"# {markdown(title)}", "", *([markdown(text), ""] if text else [])]
    for section in parts:
        lines += [f"## {markdown(section.heading)}", ""] if section.heading else []
        lines += [markdown(section.text), ""] if section.text else []
        for formula in filter(None, re.split(r"\n\s*\n", section.equation)):
            lines += ["$$", formula, "$$", ""]
        lines += section.lines
        writers = [figure if column == "figure" else markdown for column in section.columns]
        rows = [
            [_render_cell(cell, write) for write, cell in zip(writers, row, strict=True)]
            for row in section.rows
        ]
        lines += [*markdown_table(section.columns, rows), ""] if section.columns else []
    return "\n".join(lines)


def _render_cell(cell: str | Folded, write: Callable[[str], str]) -> str:
    """Return a cell of a table as Markdown, with further lines folded under a summary."""
    if isinstance(cell, str):
        return write(cell)
    lines = "<br>".join(map(markdown, cell.lines))
    summary = f"<summary>{markdown(cell.summary)}</summary>"
    place = f' id="{cell.anchor}"' * bool(cell.anchor)
    return f"{write(cell.text)} <details{place}>{summary}{lines}</details>"
