"""Parts of the site's pages as HTML, from templates that escape what they are given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2

TEMPLATES = Path(__file__).parent / "templates"


def render(template: str, **parts: Any) -> str:
    """Fill in a template."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["first_up"] = _first_up
    return environment.get_template(f"{template}.html").render(**parts)


def _first_up(text: str) -> str:
    return text[:1].upper() + text[1:]
