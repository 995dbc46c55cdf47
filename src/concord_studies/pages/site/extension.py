"""What Sphinx and the theme lack: equations as MathML, links to pictures, and roles.

Browsers draw MathML by themselves, and screen readers read it.
"""

import re
from typing import Any

from docutils.nodes import SkipNode, image
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml


def setup(app: Any) -> dict[str, Any]:
    """Register this module's changes to pages with Sphinx."""
    app.add_html_math_renderer("mathml", (_write_inline_math, None), (_write_display_math, None))
    app.connect("doctree-read", _link_pictures)
    app.connect("html-page-context", _add_aria_attributes, priority=900)  # after the theme's
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _link_pictures(app: Any, doctree: Any) -> None:
    """Give pictures a width, so that Sphinx links each to its file."""
    for picture in doctree.findall(image):
        picture.setdefault("width", "100%")  # which the style takes as the most


def _add_aria_attributes(
    app: Any, page: str, template: str, context: dict[str, Any], tree: Any
) -> None:
    """Edit the page's HTML in ``context``, for screen readers and keyboards.

    Headings of the navigation get a level; tables that scroll get a name and the focus.
    """
    heading, focus = 'role="heading"', 'tabindex="0" role="group" aria-label="table"'
    for key in ("furo_navigation_tree", "body"):
        text = (context.get(key) or "").replace(heading, f'{heading} aria-level="2"')
        text = text.replace("<img ", '<img loading="lazy" ')
        # The theme repeats the table's id.
        context[key] = re.sub(
            r'<div (class="table-wrapper[^"]*")[^>]*>', rf"<div \1 {focus}>", text
        )


def _write_inline_math(visitor: Any, node: Any) -> None:
    """Write an equation within a line as MathML, into the HTML that ``visitor`` collects."""
    visitor.body.extend(_try_to_typeset(node, False))
    raise SkipNode


def _write_display_math(visitor: Any, node: Any) -> None:
    """Write equations on lines of their own as MathML that scrolls."""
    # One may be wider than a phone, and is then scrolled, by keyboard too.
    where = 'class="equation" tabindex="0" role="group" aria-label="equation"'
    for equation in _try_to_typeset(node, True):
        visitor.body.append(f"<div {where}>{equation}</div>\n")
    raise SkipNode


def _try_to_typeset(node: Any, block: bool) -> list[str]:
    """Return a node's equations as MathML, none with a warning where LaTeX cannot be read."""
    try:
        return typeset(node.astext(), block)
    except MathError as error:
        from sphinx.util import logging  # of an extra, and at work where this is called

        logger = logging.getLogger(__name__)
        logger.warning("%s in %s", error, node.astext(), location=node)
        return []


def typeset(latex: str, block: bool) -> list[str]:
    """Return equations as MathML; a MathError where their LaTeX cannot be read.

    block: on lines of their own, where a blank line parts equations, as in Sphinx's renderers.
    """
    if not block:
        return [_to_mathml(latex, False)]
    parts = re.split(r"\n\s*\n", latex)
    aligned = (
        rf"\begin{{aligned}}{p}\end{{aligned}}" if r"\\" in p or "&" in p else p for p in parts
    )
    return [_to_mathml(part, True) for part in aligned]


def _to_mathml(latex: str, block: bool) -> str:
    """Return one equation as MathML."""
    latex = re.sub(r"\\dots(?![A-Za-z])", r"\\ldots", latex)  # of which it knows the one
    # It knows \Bigl and \Bigr, which say whether they open or close.
    latex = re.sub(r"\\([bB]igg?)(?= *(?:[)\]]|\\}|\\r))(?![A-Za-z])", r"\\\1r", latex)
    latex = re.sub(r"\\([bB]igg?)(?![A-Za-z])", r"\\\1l", latex)
    # Of \frac12 it takes 12 for the numerator.
    latex = re.sub(r"(\\[dt]?frac) *(\d)", r"\1{\2}", latex)
    latex = re.sub(r"(\\[dt]?frac\{[^{}]*\}) *(\d)", r"\1{\2}", latex)
    return str(tex2mathml(latex, as_block=block))
