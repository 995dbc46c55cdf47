"""Whatever a study says stays text in reStructuredText, Markdown and CSV."""

import csv
import io
import re

import pytest
from docutils.core import publish_doctree, publish_parts
from hypothesis import example, given
from hypothesis import strategies as st

from concord_studies import markup

MARKS = st.text(st.sampled_from("ab1 \n\t*_`|:.\\<>[](){}#=-+/@'\"!&$^~,;%?\0\x85“é"), max_size=30)


@given(MARKS | st.text(max_size=30))
@example("|w_i - average| of x_, `a <javascript:1>`_ http://x.y [1]_ a@b.c")
@example(
    "\n\n.. include:: /etc/passwd\n\n.. raw:: html\n\n   <script></script>\n\nT\n=\n\n::\n\n  x"
)
@example("</script><!--")
def test_rst_shows_a_text_as_typed(typed):
    """Between words, as an item, and in bold: as the captions' template has them."""
    escaped = markup.rst(typed)
    assert "\n" not in escaped and "</" not in escaped and "<!" not in escaped
    settings = {"report_level": 2, "halt_level": 2, "file_insertion_enabled": False}
    around = f"**{escaped}.** {escaped} end\n\n- a {escaped}\n"
    document = publish_doctree(around, settings_overrides=settings)
    strong, rest = document.children[0].children
    shown = markup.line(typed)
    assert strong.astext() == f"{shown}."
    assert rest.astext() == f" {shown} end"
    assert document.children[1].astext() == f"a {shown}".rstrip()
    body = publish_parts(around, writer="html", settings_overrides=settings)["body"]
    assert set(re.findall("<[^>]*", body)) <= {
        *("<p", "</p", "<strong", "</strong", '<ul class="simple"', "</ul", "<li", "</li")
    }


@pytest.mark.parametrize(
    ("typed", "written"),
    [
        ("<script>", r"\<script>"),
        ("|a|b|", "|a|b|"),
        ("[x](javascript:1)", r"\[x\](javascript:1)"),
        ("`x` *y* &lt; \\", r"\`x\` \*y\* \&lt; \\"),
        ("lemma12_beta", "lemma12_beta"),
        ("_x_ __init__", r"\_x\_ \_\_init\_\_"),
        ("two\n\n# lines", "two # lines"),
    ],
)
def test_markdown_escapes_what_would_be_markup(typed, written):
    assert markup.markdown(typed) == written


FORMULAS = ["=1+1", "+cmd|'/C calc'!A0", "-2+3+cmd|'x'!A0", "@SUM(1)", "\t=1", "\r=1", "\n=1"]


@pytest.mark.parametrize("typed", FORMULAS)
def test_no_cell_of_csv_is_a_formula(typed):
    ((head,), (cell,)) = csv.reader(io.StringIO(markup.table([typed], [[typed]]), newline=""))
    assert head == cell == f"'{typed.strip()}"


@pytest.mark.parametrize("typed", ["-0.45 [-0.5, -1e-3]", "-inf", "1 +- 0.1", "a=b", "", "nan"])
def test_other_cells_stay_as_they_are(typed):
    assert markup.cell(typed) == typed


def test_numbers_are_no_texts():
    assert markup.table(["a"], [[-1.5], [None], [-3]]) == 'a\n-1.5\n""\n-3\n'


@given(MARKS)
@example("'=1")
@example("''")
def test_a_cell_reads_back(typed):
    assert markup.uncell(markup.cell(typed)) == markup.line(typed)
