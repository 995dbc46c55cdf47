"""Texts of users and plug-ins are text on every page of the site; no unused plug-in is executed."""

import json
import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from hostile import HOSTILE, SECRET

from concord_arena.cards import card
from concord_studies import provenance
from concord_studies.pages import markdown, multiverse
from concord_studies.pages.markdown import Section
from concord_studies.provenance import SOURCE
from concord_studies.results import Measured

pytest.importorskip("furo", reason="pip install -e '.[docs]'")
sys.path.append(str(Path(__file__).parents[3]))
from installed import install

pytestmark = pytest.mark.thorough

SHOWN = "a link <javascript:top.pwned=1>"
DOC = '''r"""Mine.
{hostile}
        oddly indented
  and *unbalanced

.. math:: \\frac{{1
   $$
   <script>top.pwned = 1</script>

```{{include}} secret.txt
```
"""
{more}
from typing import Annotated
from concord.options import Options, Positive


class Params(Options):
    """Its mean."""

    mean: Annotated[Positive, {hostile!r}] = 1.0


def schedule(params):
    return lambda k: params.mean
'''
STUDY = {
    "paper": {"title": HOSTILE, "authors": HOSTILE, "year": 2026, "reference": HOSTILE},
    "readings": {"published": HOSTILE},
    "problems": {"gaussian": {"kind": "gaussian", "dim": 2}},
    "experiments": {
        "compare": {
            **{"title": HOSTILE, "problem": "gaussian", "agents": 4, "chains": 4, "iterations": 5},
            **{"topology": "ring", "metrics": ["w2"]},
            "sampler": {"kind": "de_sgld", "step_size": {"kind": "used"}},
        }
    },
}


SHOWING = {
    *("papers/mine.html", "cards/mine/a.html", "multiverse/mine.html"),
    "reference/schedules.html",
}


def universes() -> Any:
    """Return a multiverse in hostile words."""
    other = SimpleNamespace(label="b", says=HOSTILE, reason=HOSTILE)
    paper = SimpleNamespace(
        about=SimpleNamespace(title=HOSTILE),
        config={"scale": "smoke"},
        assumptions={"a": SimpleNamespace(alternatives=[other])},
    )
    named = {"a.b": SimpleNamespace(seed=None)}
    return SimpleNamespace(study=paper, universes=named, runs={"a.b": {}})


class Page(HTMLParser):
    """What a page executes or leads to, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.bad, self.text, self.script = [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.script = tag == "script"
        for name, value in attrs:
            if name.startswith("on") and "pwned" in (value or ""):
                self.bad.append(value)
            if name in ("href", "src") and (value or "").startswith("javascript:"):
                self.bad.append(value)

    def handle_data(self, data):
        if self.script and "pwned" in data:
            self.bad.append(data)
        self.text.append(data)


@pytest.mark.workflow
def test_texts_are_text_and_nothing_unused_is_executed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study = Path("config", "papers", "mine")
    schedules = study / "plugins" / "schedules"
    schedules.mkdir(parents=True)
    for folder in ("figures", "cards"):
        Path("results", "mine", folder).mkdir(parents=True)
    Path("config/config.yaml").write_text("{}")
    Path("secret.txt").write_text(SECRET)
    (study / "study.yaml").write_text(yaml.safe_dump(STUDY))
    trap = f"open({str(tmp_path / 'executed')!r}, 'a').write(__name__)"
    hostile = HOSTILE.replace('"""', "")
    (schedules / "used.py").write_text(DOC.format(hostile=hostile, more=""))
    (schedules / "unused.py").write_text(DOC.format(hostile=hostile, more=trap))
    files = {"of_mine/__init__.py": trap, "of_mine/odd.py": DOC.format(hostile=hostile, more=trap)}
    site = tmp_path / "site-packages"
    install(site, "of-mine", files)
    info = site / "of_mine-1.0.dist-info"
    (info / "entry_points.txt").write_text(
        "[concord.schedules]\nodd = of_mine.odd\n<script>top.pwned<script> = of_mine.odd\n"
        "[concord.samplers]\ngone = of_mine.gone\n"
    )
    about = {"is": HOSTILE, "source": HOSTILE, "price": None, "needs": None, "from": "x"}
    about["equation"] = "\\frac{1\n$$\n<script>top.pwned</script>"
    arena = {"tune": None, "share": None, "second": {}}
    run = {"sampler": {"kind": "a", "option": HOSTILE}, "arena": arena, "experiment": "e"}
    cell = Measured({**run, "labels": {"entry": "a"}}, None)
    monkeypatch.setattr("concord_arena.cards.missing", lambda cell: f"# not run: {HOSTILE}")
    for table, pages in {
        "scores": {"cards/a": card("a", [cell], about)},
        "multiverse": {"multiverse": multiverse.page(universes(), [])},
    }.items():
        made = [Path("results/mine", f"{name}.md") for name in pages]
        for path, text in zip(made, pages.values(), strict=True):
            path.write_text(text)
        Path("results/mine", f"{table}.csv").write_text("a\n")
        provenance.write_provenance([Path("results/mine", f"{table}.csv"), *made])
    done = subprocess.run(
        [sys.executable, "-m", "concord_cli", "site"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCE), str(site)])},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert not (tmp_path / "executed").exists()
    pages = {str(path.relative_to("site")): path for path in Path("site").rglob("*.html")}
    assert len(pages) > 20
    for name, path in pages.items():
        text = path.read_text()
        page = Page(text)
        assert not page.bad, name
        assert SECRET not in text, name
        shown = " ".join("".join(page.text).split())
        if name in SHOWING:
            assert SHOWN in shown, name
    assert pages.keys() >= SHOWING
    assert "gone" in pages["reference/samplers.html"].read_text()
    assert "No study uses it" in pages["reference/schedules.html"].read_text()
    for path in Path("site").rglob("*.js"):
        assert SECRET not in path.read_text()


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
    page = markdown.page("T", text, [Section("", "", ["c"], [[text]])])
    tokens = parser.create_md_parser(settings, RendererHTML).parse(page)
    kinds = [token.type for token in tokens if not token.type.startswith(("th", "tr", "td", "tb"))]
    assert kinds[:3] == ["heading_open", "inline", "heading_close"], json.dumps(kinds)
    assert kinds[3:6] == ["paragraph_open", "inline", "paragraph_close"]
    assert kinds[6:] == ["table_open", "inline", "inline", "table_close"]
    for token in (tokens[4], [token for token in tokens if token.type == "inline"][-1]):
        assert {child.type for child in token.children} <= {"text", "text_special"}
        assert "".join(child.content for child in token.children) == text
