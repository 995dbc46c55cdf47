"""Whatever a study says stays text in reStructuredText, Markdown and CSV."""

import csv
import io
import re

import pytest
from docutils.core import publish_doctree, publish_parts
from docutils.utils.math.latex2mathml import tex2mathml
from hypothesis import example, given
from hypothesis import strategies as st

from concord_studies import markup
from concord_studies.formulas import split_at_formulas

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


@pytest.mark.parametrize(
    ("typed", "written"),
    [
        ("n alpha/(2 p_i)", "n $α$/(2 $p_i$)"),
        ("at least (k + 1)^-(delta_2 - 2 delta_1)", "at least $(k + 1)^{-(δ_2 - 2 δ_1)}$"),
        ("|x|^2, exp(-x^T y), 1/tau_f^2", "|x|${}^{2}$, exp(-$x^{T}$ y), 1/$τ_f^{2}$"),
        ("gamma_bar and sigma_max, C_W2", r"$\bar{γ}$ and $σ_{\max}$, $C_{W2}$"),
        ("x* is no *x*", r"$x^*$ is no \*x\*"),
        (r"$b^2$ in $\rho$, not $5 or $6", r"$b^{2}$ in $ρ$, not \$5 or \$6"),
        ("gamma-ray, runs/eta.csv, d_ula, VR-FALD*", r"gamma-ray, runs/eta.csv, d_ula, VR-FALD\*"),
    ],
)
def test_formulas_of_a_sentence_are_mathematics(typed, written):
    assert markup.markdown(typed) == written


@given(MARKS | st.text(alphabet="xk_^*()-2 +|$\\{alphbet", max_size=30))
def test_formulas_can_be_shown_whatever_is_typed(typed):
    text = markup.line(typed)
    parts = split_at_formulas(text)
    assert all(bool(words) != bool(formula) for words, formula in parts)
    for _, formula in parts:
        tex2mathml(formula) if formula else None
    report = f"a {markup.rst_with_formulas(typed)} end"
    settings = {"report_level": 2, "halt_level": 2, "file_insertion_enabled": False}
    nodes = publish_doctree(report, settings_overrides=settings).children[0].children
    words = "".join(node.astext() for node in nodes if node.tagname == "#text")
    assert words == f"a {''.join(words for words, _ in parts)} end"
