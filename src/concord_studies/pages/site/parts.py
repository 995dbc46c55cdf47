"""Parts of the site's pages: HTML from templates that escape what they are given, and headings."""

from pathlib import Path
from textwrap import indent
from typing import Any

import jinja2

from concord_studies.home import HOME
from concord_studies.markup import rst, sentence

TEMPLATES = Path(__file__).parent / "templates"
# Where the rules are told: documents are not in the wheel.
RULES = "docs/ledger.html" if (HOME / "docs" / "ledger.md").exists() else None


def render(template: str, **parts: Any) -> str:
    """Fill in a template; ``root`` leads from the page to the site."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["first_up"] = lambda text: text[:1].upper() + text[1:]
    environment.filters["sentence"] = sentence
    return environment.get_template(f"{template}.html").render({"rules": RULES, **parts})


def raw(template: str, **parts: Any) -> str:
    """Return a part of a page as HTML for Sphinx, which no markup of a study's texts can leave.

    All of its lines are indented, and so is what a text may take for the end of a line.
    """
    return ".. raw:: html\n\n" + indent(render(template, **parts), "   ", lambda line: True)


def title(text: str, mark: str) -> str:
    """Return a heading of reStructuredText: "#" marks that of a page, "*" one of a part."""
    text = rst(text)
    return f"{text}\n{mark * len(text)}"
