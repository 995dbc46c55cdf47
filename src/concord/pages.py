"""Pages: tables as one self-contained HTML file, to be sorted, filtered and searched in a browser.

The template is workflow/report/page.html. A page needs no network and opens from disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from concord.provenance import sha256

TEMPLATES = Path(__file__).parents[2] / "workflow" / "report"


@dataclass(frozen=True)
class Section:
    """A table of a page.

    Attributes
    ----------
    heading, text
        What stands above it.
    columns, rows
        Names of the columns; cells as text.
    filters
        Columns with a menu that keeps one value.
    """

    heading: str
    text: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    filters: Sequence[str] = ()


def template_digest(template: str) -> str:
    """Return the SHA-256 of a template of workflow/report."""
    return sha256(TEMPLATES / template)


def page(title: str, text: str, sections: Sequence[Section]) -> str:
    """Return a page."""
    return render("page.html", title=title, text=text, sections=sections)


def render(template: str, **parts: Any) -> str:
    """Fill in a template of workflow/report."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(template).render(**parts)
