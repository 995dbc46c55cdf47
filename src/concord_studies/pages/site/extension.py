"""What Sphinx and the theme lack: equations as MathML, links to pictures, cards on phones, roles.

Browsers draw MathML by themselves, and screen readers read it.
"""

import re
from typing import Any

from docutils import nodes
from docutils.nodes import SkipNode, Text, inline, literal, literal_block, math, paragraph
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml

# A name such as "DE-SGLD" stays on one line; tags, and what browsers do not show, stay as they are.
NAME = re.compile(r"<(script|style|title)\b.*?</\1>|<[^>]*>|\b[A-Z]\w{0,6}(?:-[A-Z]\w*\*?)+", re.S)
# What is printed in bold and begins with a verdict has the color of the worst that it names.
VERDICTS = {"does not hold": "fails", "inconclusive": "open", "not run": "open", "holds": "holds"}
BOLD = re.compile(rf"<strong>(?=({'|'.join(VERDICTS)}))([^<]*)")


def setup(app: Any) -> dict[str, Any]:
    """Register this module's changes to pages with Sphinx."""
    app.add_html_math_renderer("mathml", (_write_inline_math, None), (_write_display_math, None))
    app.connect("doctree-read", _link_pictures)
    app.connect("doctree-read", _write_roots)
    app.connect("doctree-read", _name_cells)
    app.connect("html-page-context", _edit_html, priority=900)  # after the theme's
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _link_pictures(app: Any, doctree: Any) -> None:
    """Give pictures a width, so that Sphinx links each to its file."""
    for picture in doctree.findall(nodes.image):
        picture.setdefault("width", "100%")  # which the style takes as the most


def _write_roots(app: Any, doctree: Any) -> None:
    """Write "sqrt(6)" in sentences with the sign of a root."""
    for text in list(doctree.findall(Text)):
        if "sqrt(" in text and not isinstance(text.parent, (literal, literal_block, math)):
            text.parent.replace(text, Text(re.sub(r"\bsqrt\(", "√(", text)))


def _name_cells(app: Any, doctree: Any) -> None:
    """Repeat the head of its column in each cell of a table of texts, for its cards on phones.

    One with a column of numbers, or of two columns, stays a table. Verdicts get a class.
    """
    for one in list(doctree.findall(nodes.table)):
        head, *rows = one.findall(nodes.row)
        names = [cell.astext() for cell in head]
        numbers = any("text-right" in cell["classes"] for cell in one.findall(nodes.entry))
        if numbers or len(names) < 3 or not isinstance(head.parent, nodes.thead):
            continue
        one["classes"].append("cards")
        for cells in rows:
            for name, cell in zip(names, cells, strict=False):
                text = cell.astext()
                cell["classes"] += [VERDICTS[w] for w in VERDICTS if text.startswith(w)]
                if text:
                    first = cell[0] if isinstance(cell[0], paragraph) else cell
                    first.insert(0, inline("", f"{name}: ", classes=["of-column"]))


def _edit_html(app: Any, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Edit the page's HTML in ``context``: for screen readers, keyboards, and narrow columns.

    Headings of the navigation get a level; tables that scroll get a name and the focus; names keep
    to one line, and verdicts get their color.
    """
    heading, focus = 'role="heading"', 'tabindex="0" role="group" aria-label="table"'
    for key in ("furo_navigation_tree", "toc", "body"):
        text = (context.get(key) or "").replace(heading, f'{heading} aria-level="2"')
        text = text.replace("<img ", '<img loading="lazy" ')
        # The theme repeats the table's id.
        text = re.sub(r'<div (class="table-wrapper[^"]*")[^>]*>', rf"<div \1 {focus}>", text)
        context[key] = NAME.sub(_keep_together, BOLD.sub(_color_verdicts, text))


def _color_verdicts(found: re.Match[str]) -> str:
    """Return what is printed in bold with the class of its worst verdict."""
    worst = next(part for verdict, part in VERDICTS.items() if verdict in found[2])
    return f'<strong class="{worst}">{found[2]}'


def _keep_together(found: re.Match[str]) -> str:
    """Return a tag as it is, and a name so that no line ends within."""
    return found[0] if found[0].startswith("<") else f'<span class="name">{found[0]}</span>'


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
