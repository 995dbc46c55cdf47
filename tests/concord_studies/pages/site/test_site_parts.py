"""Parts of the site that need neither Sphinx nor a browser: reference, equations, documents."""

import functools
import inspect
import json
import re
from pathlib import Path

import hostile
import pytest

import concord
from concord import kinds
from concord.errors import ConcordError
from concord.kinds import ROOMS
from concord_studies import provenance
from concord_studies.catalog import describe_kind
from concord_studies.io import load_yaml
from concord_studies.markup import markdown
from concord_studies.pages import markdown as pages
from concord_studies.pages.markdown import Section
from concord_studies.pages.site import build, extension, papers, reference

ROOT = Path(__file__).parents[4]


@pytest.mark.parametrize("package", ROOMS)
def test_the_reference_has_every_kind_and_option(package):
    text = dict(reference.pages({}))[package]
    for kind in kinds.names(package):
        assert f"({kind})\n" in text or f"## {markdown(kind)}\n" in text
        for option in describe_kind(package, kind, execute=False).get("options", []):
            assert f"`{option['name']}`" in text


def test_the_reference_has_each_public_name_once_with_its_example():
    pages = {name: text for name, text in reference.pages({}) if name.startswith("python-")}
    heads = re.findall(r"^## (\S+)$", "\n".join(pages.values()), re.M)
    assert sorted(heads) == sorted(set(heads))
    assert {*concord.__all__} - {"__version__", "problems"} <= {*heads}
    assert heads[:4] == ["Trace", "Law", "Answer", "BiasMap"] and heads[4] == "sample"
    for name in heads:
        assert ">>> " in inspect.getdoc(reference._locate(name)[1]), name
    assert "Related: [`Trace`](python-results.md#trace)" in pages["python-runs"]
    assert "(/docs/recommend.md)" in pages["python-answers"]


@pytest.mark.parametrize(
    ("text", "typeset"),
    [
        ("Mine: :math:`x_i` and ``code``.\n\n.. math::\n    x' = x - \\eta g(x)", True),
        ("- one\n- two\n\n>>> 1 + 1\n2", True),
        *(
            (text, False)
            for text in ("`code`", ".. math:: \\nosuch{1}", "*open", "A\n=\n\n|x|", "")
        ),
        *((text, False) for text in (hostile.HOSTILE, ".. image:: x.png", "see x_", "http://x.y")),
    ],
)
def test_a_plug_in_is_typeset_if_it_is_prose_and_equations(text, typeset):
    assert reference._is_prose(text) == typeset


def test_the_reference_has_every_key_of_a_study():
    text = dict(reference.pages({}))["study"]
    for key in ("experiments", "claims", "rests", "sweep", "chains", "record", "burn_in"):
        assert f"`{key}`" in text, key


def test_equations_are_mathml():
    first, second = extension.typeset("a &= \\Big( b \\Big) \\\\ c &= d\n\n \\alpha_k", True)
    assert first.count("<mtr>") == 2 and 'display="block"' in first
    assert "<mi>" in second and "<mtr>" not in second
    assert "…" in extension.typeset(r"x_1, \dots, x_N", False)[0]
    for short, long in ((r"\tfrac12 x", r"\tfrac{1}{2} x"), (r"\frac1{N}2", r"\frac{1}{N} 2")):
        assert extension.typeset(short, False) == extension.typeset(long, False)


def test_every_equation_of_the_samplers_can_be_written():
    for kind in kinds.names("samplers"):
        latex = describe_kind("samplers", kind)["equation"]
        assert not latex or all(extension.typeset(latex, True)), (kind, latex)


def test_kinds_of_figures_that_no_paper_draws_have_a_picture_in_the_docs():
    """So the reference shows one of each where only the papers have been reproduced."""
    drawn = set()
    for path in (ROOT / "config" / "papers").glob("*/figures.yaml"):
        drawn |= {entry["kind"] for entry in load_yaml(path)["figures"].values()}
    kept = {path.stem for path in (ROOT / "docs" / "figures").glob("*.png")}
    assert {*kinds.built_in("figures")} <= drawn | kept <= {*kinds.names("figures")}


def test_cards_are_those_that_were_made_and_as_they_were(tmp_path):
    assert papers.find_cards(tmp_path) == []
    names = ("scores.csv", "cost.csv", "cards/two.md", "cards/one.md")
    (tmp_path / "cards").mkdir()
    for name in (*names, "cards/old.md"):
        (tmp_path / name).write_text(name)
    provenance.write_provenance([tmp_path / name for name in names])
    assert papers.find_cards(tmp_path) == [tmp_path / "cards" / f"{n}.md" for n in ("one", "two")]
    (tmp_path / "cost.csv").write_text("edited")
    with pytest.raises(ConcordError, match=r"cost\.csv: it is not as it was written; delete"):
        papers.find_cards(tmp_path)


def test_a_table_that_was_not_made_is_the_one_of_the_documents(tmp_path):
    read = functools.partial(papers.read_committed, "arena", results=tmp_path)
    origin, lines = read("tables", "leaderboard")
    assert origin.startswith("Committed, and not made here") and lines[0].startswith("| price |")
    assert read("tables", "another") == ("", [])
    assert read("figures", "phase")[1][0].endswith("](/docs/arena.png)")
    (tmp_path / "arena" / "tables").mkdir(parents=True)
    (tmp_path / "arena" / "tables" / "leaderboard.md").write_text("| a |\n| --- |\n\nNote.\n")
    made = read("tables", "leaderboard")
    assert made == ("Made here.", ["| a |", "| --- |"])


def test_a_heavy_picture_is_shown_as_a_png(tmp_path):
    (tmp_path / "a.svg").write_text("<svg/>" + " " * papers.HEAVY)
    assert "a.svg" in papers._picture(tmp_path / "a.svg", tmp_path, "a")[0]
    (tmp_path / "a.png").touch()
    assert "a.png" in papers._picture(tmp_path / "a.svg", tmp_path, "a")[0]


def test_a_page_of_many_pictures_is_light(tmp_path):
    """Twenty figures of nine panels, as papers have them, weigh less than the most of a page."""
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "_images").mkdir()
    with image.open(ROOT / "docs" / "figures" / "score_ratios.png") as picture:
        for name in range(20):
            picture.convert("RGBA").save(tmp_path / "_images" / f"{name} .png")
    tags = "".join(f'<img alt="" src="_images/{name}%20.png" />' for name in range(20))
    (tmp_path / "page.html").write_text(f'{tags}<img src="data:x">' + "ü")
    before = build.weigh(tmp_path / "page.html")
    assert before > 2 * build.HEAVIEST
    build._lighten_pictures(tmp_path)
    files = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert build.weigh(tmp_path / "page.html") == files < build.HEAVIEST


def test_a_page_is_one_entry_of_the_navigation_whatever_its_title():
    title = 'a\nb\u2028c\x85d # "e" *f* <g> \u202eh :i: ' + "x" * 10_000
    entries = build._list_pages(["papers/a", "papers/b"], {"papers/a": title, "papers/b": " \n"})
    first, second = entries.splitlines()[2:-1]
    assert first.startswith("a b c d # ") and first.endswith("x </papers/a>")
    assert second == "/papers/b"


def test_a_picture_has_one_line_of_text(tmp_path):
    (tmp_path / "a.svg").write_text("<svg/>")
    lines = papers._picture(tmp_path / "a.svg", tmp_path, "a\u2028b\nc")
    assert lines == ["~~~{image} /results/a.svg", ':alt: "a b c"', "~~~", ""]


def test_the_reference_executes_no_plug_in_that_nothing_uses(tmp_path):
    trap = tmp_path / "mine" / "plugins" / "schedules" / "trap.py"
    trap.parent.mkdir(parents=True)
    trap.write_text('"""Mine, `code` and <script>."""\nraise SystemExit("executed")\n')
    kinds.use(tmp_path / "mine")
    text = dict(reference.pages({}))["schedules"]
    assert "~~~text\nMine, `code` and <script>.\n~~~" in text and "No study uses it" in text


@pytest.mark.parametrize(
    "text",
    [
        *("# heading", "> quoted", "- item", "+ item", "1. item", "2) item", "---", "===", "+++"),
        *(":::{note}", "% comment", "(target)=", "```{include} secret.txt", "$\\frac{1$", "$$x$$"),
        *("![x](y)", "<script>", "[a](javascript:b)", "~~~", "* item", "a | b", "-0.5", "1.5 of 2"),
    ],
)
def test_markdown_shows_a_text_as_it_is_typed(text):
    """As Sphinx's reader of Markdown sees it, at the beginning of a paragraph and in a cell."""
    parser = pytest.importorskip("myst_parser.parsers.mdit")
    config = pytest.importorskip("myst_parser.config.main")
    from markdown_it.renderer import RendererHTML

    settings = config.MdParserConfig(enable_extensions={"dollarmath"})
    page = pages.page("T", text, [Section("", "", ["c"], [[text]])])
    tokens = parser.create_md_parser(settings, RendererHTML).parse(page)
    kinds = [token.type for token in tokens if not token.type.startswith(("th", "tr", "td", "tb"))]
    assert kinds[:3] == ["heading_open", "inline", "heading_close"], json.dumps(kinds)
    assert kinds[3:6] == ["paragraph_open", "inline", "paragraph_close"]
    assert kinds[6:] == ["table_open", "inline", "inline", "table_close"]
    for token in (tokens[4], [token for token in tokens if token.type == "inline"][-1]):
        assert {child.type for child in token.children} <= {"text", "text_special"}
        assert "".join(child.content for child in token.children) == text
