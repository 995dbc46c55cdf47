"""Pages: tables as one self-contained HTML file, to be sorted, filtered and searched in a browser.

The template is templates/page.html. A page needs no network and opens from disk.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from concord.provenance import sha256
from concord.report.markup import markdown

TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class Folded:
    """A cell with lines that are folded under a summary."""

    text: str
    summary: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Section:
    """A table of a page.

    Attributes
    ----------
    heading, text
        What is above it.
    columns, rows
        Names of the columns; cells as text, some with folded lines.
    filters
        Columns with a menu that keeps one value.
    labels
        So many columns name the row, the others are numbers; none: all are texts.
    equation
        Formulas in LaTeX, above the table.
    """

    heading: str
    text: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str | Folded]]
    filters: Sequence[str] = ()
    labels: int | None = None
    equation: str = ""


def template_digest(template: str) -> str:
    """Return the SHA-256 of a template."""
    return sha256(TEMPLATES / template)


def page(title: str, text: str, sections: Sequence[Section]) -> str:
    """Return a page."""
    return render("page.html", title=title, text=text, sections=sections)


def render(template: str, **parts: Any) -> str:
    """Fill in a template."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["first_up"] = _first_up
    return environment.get_template(template).render(**parts)


def _first_up(text: str) -> str:
    return text[:1].upper() + text[1:]


def markdown_page(
    title: str,
    text: str,
    parts: Iterable[Section],
    figure: Callable[[str], str] = markdown,
) -> str:
    """Return a page as Markdown; ``figure`` is how cells of that column are written."""
    lines = [f"# {markdown(title)}", "", *([markdown(text), ""] if text else [])]
    for section in parts:
        lines += [f"## {markdown(section.heading)}", ""] if section.heading else []
        lines += [markdown(section.text), ""] if section.text else []
        for formula in filter(None, re.split(r"\n\s*\n", section.equation)):
            lines += ["$$", formula, "$$", ""]
        writers = [figure if column == "figure" else markdown for column in section.columns]
        rows = [
            [_written(cell, write) for write, cell in zip(writers, row, strict=True)]
            for row in section.rows
        ]
        lines += [*markdown_table(section.columns, rows), ""] if section.columns else []
    return "\n".join(lines)


def _written(cell: str | Folded, write: Callable[[str], str]) -> str:
    if isinstance(cell, str):
        return write(cell)
    lines = "<br>".join(map(markdown, cell.lines))
    summary = f"<summary>{markdown(cell.summary)}</summary>"
    return f"{write(cell.text)} <details>{summary}{lines}</details>"


def markdown_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], labels: int | None = None
) -> list[str]:
    """Return a table of cells that are Markdown; after ``labels`` columns they are numbers."""
    texts = len(columns) if labels is None else labels
    rule = ["---"] * texts + ["---:"] * (len(columns) - texts)
    lines = [columns, rule, *rows]
    return ["| " + " | ".join(c.replace("|", r"\|") for c in line) + " |" for line in lines]
