"""Texts of a study as text and nothing else, in each format that carries them.

What a study states ends up in captions, pages, tables and ledgers. There it must neither act (a
directive that includes a file, a script, a spreadsheet's formula) nor vanish (``x_``, ``|a|``).
"""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from concord_studies.formulas import split_at_formulas


def line(text: str) -> str:
    """Return a text on one line, spaces joined, what cannot be printed replaced."""
    joined = " ".join(text.split())
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in joined)


def sentence(text: str) -> str:
    """Return a title with a full stop, unless it ends with a mark of its own."""
    return text if text.endswith((".", "?", "!")) else f"{text}."


def sentences(text: str) -> list[str]:
    """Return the sentences of a text on one line; "Fig. 3" ends none."""
    return re.split(r"(?<=[.?!]) (?=[A-Z({])", text) if text else []


def rst(text: str) -> str:
    """Return a text for a paragraph of reStructuredText.

    A backslash before every mark of ASCII leaves no markup. It also parts the marks of a tag and of
    a comment, so that the text is safe within a script of an HTML page, where Snakemake's report
    has the parameters of jobs.
    """
    return _escape_rst(line(text))


def rst_with_formulas(text: str) -> str:
    """Return a text as ``rst`` does, with its formulas as mathematics: not for what is bold."""
    return "".join(
        rf"\ :math:`{formula}`\ " if formula else _escape_rst(words)
        for words, formula in split_at_formulas(line(text))
    )


def _escape_rst(text: str) -> str:
    """Return words of a line with a backslash before every mark of ASCII."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", text)


def markdown(text: str) -> str:
    """Return a text for a paragraph or an item of Markdown; in a table's cell ``|`` is markup too.

    Only what would be markup is escaped, so that the file can be read as it is, too. Formulas are
    between dollars.
    """
    parts = split_at_formulas(line(text))
    text = "".join(
        f"${formula}$" if formula else _escape_markdown(words) for words, formula in parts
    )
    # What begins a heading, a quotation, a list, a rule, a comment, a target or a directive.
    text = re.sub(r"^(?=[#>%]|[-+=:][-+=:\s]|\([^)]*\)=)", r"\\", text)
    return re.sub(r"^(\d+)(?=[.)]\s)", r"\1\\", text)


def _escape_markdown(text: str) -> str:
    """Return words of a line with a backslash before what Markdown would take for markup."""
    return re.sub(r"([\\`*~$\[\]<&]|(?<![^\W_])_|_(?![^\W_]))", r"\\\1", text)


def markdown_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], labels: int | None = None
) -> list[str]:
    """Return a table of cells that are Markdown; after ``labels`` columns they are numbers."""
    texts = len(columns) if labels is None else labels
    rule = ["---"] * texts + ["---:"] * (len(columns) - texts)
    lines = [columns, rule, *rows]
    return ["| " + " | ".join(c.replace("|", r"\|") for c in line) + " |" for line in lines]


def fold(summary: str, lines: Sequence[str]) -> list[str]:
    """Return lines of Markdown folded under a summary; no lines if there are none."""
    head = f"<details><summary>{escape(line(summary), quote=False)}</summary>"
    return [head, "", *lines, "", "</details>", ""] if lines else []


def fence(kind: str, text: str) -> list[str]:
    """Return lines that fence a text, whatever marks it has: a directive of MyST, or code.

    kind: what stands beside the fence, "text" or "{table} Title".
    """
    longest = max(map(len, re.findall("~+", text)), default=0)
    marks = "~" * max(3, longest + 1)
    return [f"{marks}{kind}", *text.splitlines(), marks, ""]


def index_entries(names: Iterable[str]) -> list[str]:
    """Return Markdown by which a site's search finds a page or section first by these names."""
    named = dict.fromkeys(filter(None, map(line, names)))
    return [entry for name in named for entry in fence(f"{{index}} ! single: {name}", "")]


_LATEX = {
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    **{"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"},
    **{"\N{INFINITY}": r"$\infty$", "\N{EN DASH}": "--", '"': "''"},
}


def latex(text: str) -> str:
    """Return a text for LaTeX; the sign of a number is a minus."""
    written = "".join(_LATEX.get(c, c) for c in line(text).replace("--", "-\0-"))
    return re.sub(r"(?<![\w.])-(?=\d)", "$-$", written).replace("\0", "{}")


def table(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return a table as CSV: None is empty, numbers are in full, texts are cells (``cell``)."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in (columns, *rows):
        writer.writerow([cell(c) if isinstance(c, str) else c for c in row])
    return text.getvalue()


def format_csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as CSV text with given columns, in their order."""
    return table(columns, ([row[column] for column in columns] for row in rows))


# What makes a spreadsheet take a cell for a formula, or follows the apostrophe that keeps it text.
_FORMULA = re.compile(r"['=+\-@]")
_NUMBERS = re.compile(r"[-+0-9.eE, \[\]infa]*")  # "-1 [-2, 0]" stays as it is


def cell(text: str) -> str:
    """Return a text, on one line, for a cell of CSV that no spreadsheet takes for a formula.

    An apostrophe goes before it, as one would type it; ``uncell`` takes it away.
    """
    text = line(text)
    return f"'{text}" if _FORMULA.match(text) and not _NUMBERS.fullmatch(text) else text


def uncell(text: str) -> str:
    """Return the value from which ``cell`` made a text."""
    return text.removeprefix("'")
