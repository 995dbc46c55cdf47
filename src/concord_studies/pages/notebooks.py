"""Notebooks: files of Markdown in ``docs/notebooks``, whose blocks of Python are cells.

The site shows each with what its cells print and draw, and offers it as a file for Jupyter.
"""

import ast
import io
import json
import linecache
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

from concord_studies.io import read_text
from concord_studies.markup import fence, line, sentences

CELL = re.compile(r"^```python\n(.*?)^```\n", re.M | re.S)


class Cell(NamedTuple):
    """A cell after its execution: what it printed, and the value of its last line, if it has one.

    before: the Markdown above it.
    """

    before: str
    source: str
    printed: str
    value: Any


def execute(text: str, names: dict[str, Any]) -> Iterator[Cell]:
    """Execute the cells of a notebook as Jupyter does, and yield each.

    text: the notebook's. names: the variables that cells share, which they change.
    """
    parts = CELL.split(text)
    for number, (before, source) in enumerate(zip(parts[::2], parts[1::2], strict=False)):
        file, printed, value = f"<cell {number}>", io.StringIO(), None
        lines = source.splitlines(keepends=True)
        linecache.cache[file] = len(source), None, lines, file  # for ``inspect.getsource``
        *body, last = ast.parse(source).body
        with redirect_stdout(printed):
            whole = body if isinstance(last, ast.Expr) else [*body, last]
            exec(compile(ast.Module(whole, []), file, "exec", dont_inherit=True), names)  # noqa: S102
            if isinstance(last, ast.Expr):
                shown = compile(ast.Expression(last.value), file, "eval", dont_inherit=True)
                value = eval(shown, names)  # noqa: S307
        yield Cell(before, source, printed.getvalue(), value)


def write_executed(path: Path) -> None:
    """Replace a notebook's file by a page that shows what its cells print and draw.

    The pictures, and the notebook for Jupyter, are written beside it.
    """
    text, lines, pictures = read_text(path), [], 0
    path.with_suffix(".ipynb").write_text(to_jupyter(text), "utf-8")
    for cell in execute(text, {"__name__": "__main__"}):
        lines += [cell.before, *fence("python", cell.source)]
        if cell.printed:
            lines += fence("text", cell.printed)
        if draw := getattr(cell.value, "_repr_png_", None):
            pictures += 1
            picture = path.with_name(f"{path.stem}-{pictures}.png")
            picture.write_bytes(draw())
            lines += fence(f"{{image}} {picture.name}", f":alt: {json.dumps(describe(cell))}")
        elif show := getattr(cell.value, "_repr_html_", None):
            lines += fence("{raw} html", f'<div class="table-wrapper">{show()}</div>')
        elif cell.value is not None:
            lines += fence("text", repr(cell.value))
    title, _, rest = "\n".join([*lines, CELL.split(text)[-1]]).partition("\n\n")
    link = f"{{download}}`The same for Jupyter <{path.stem}.ipynb>`"
    path.write_text(f"{title}\n\n{link}\n\n{rest}", "utf-8")


def describe(cell: Cell) -> str:
    """Return a text in the place of a cell's picture: the last sentence above the cell."""
    return sentences(line(cell.before.split("\n\n")[-2]))[-1].rstrip(":")


def to_jupyter(text: str) -> str:
    """Return a notebook as the JSON of Jupyter's format 4.5, without outputs."""
    cells: list[dict[str, Any]] = []
    for number, part in enumerate(CELL.split(text)):
        about: dict[str, Any] = {"cell_type": "markdown", "id": f"cell-{number}", "metadata": {}}
        if number % 2:
            about |= {"cell_type": "code", "execution_count": None, "outputs": []}
        if source := part.strip("\n").splitlines(keepends=True):
            cells.append({**about, "source": source})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    book = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}, "cells": cells}
    return json.dumps(book, indent=1, ensure_ascii=False)
