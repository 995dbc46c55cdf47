"""Parts of the site that need neither Sphinx nor a browser: curves, lines of figures, reference."""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas
import pytest

from concord import kinds
from concord.errors import ConcordError
from concord.rooms import ROOMS
from concord_studies import provenance, results
from concord_studies.catalog import described
from concord_studies.io import load_yaml
from concord_studies.pages.site import extension, papers, reference
from concord_studies.pages.site.curves import MOST, _curve, _run, _thinned, agent_name
from concord_studies.pages.site.papers import Files, _arena, _universes
from concord_studies.pages.site.parts import render

ROOT = Path(__file__).parents[4]


def test_thinned_iterations_have_both_ends_and_no_more_than_are_shown():
    for number in (3, 10, 150, 100_000):
        k = _thinned(np.arange(number))
        assert (k[0], k[-1]) == (0, number - 1) and len(k) <= 2 * MOST
        assert len(k) == number or 1 in k  # what happens first is kept


def test_a_run_becomes_curves_with_their_exact_law_and_prices():
    rows = ["iteration,agent,metric,value,lo,hi,trials"]
    for k in range(4):
        rows += [f"{k},0,w2,{1 / (1 + k)},0.1,2,10", f"{k},0,w2_exact,0.5,,,0"]
        rows += [f"{k},network,unicast_bytes,{16 * k},,,0", f"{k},1,other,1,,,0"]
    rows += ["3,network,w2_point,0.07,,,0"]
    table = results.of_text({}, "\n".join(rows) + "\n").metrics
    run = SimpleNamespace(
        folder="p/e/r",
        experiment="e",
        document={},
        labels={"topology": "ring"},
        reading="published",
    )
    found = _run(run, table, ["w2"], {"0"})
    assert found["k"] == [0, 1, 2, 3] and found["x"] == {"unicast_bytes": [0, 16, 32, 48]}
    curves = {curve["beside"]: curve for curve in found["curves"]}
    assert curves[""]["v"] == [1, 0.5, 0.3333, 0.25] and curves[""]["lo"] == [0.1] * 4
    assert curves["_exact"]["lo"] is None and curves["_point"]["v"] == [0.07]
    assert found["labels"] == {"experiment": "e", "topology": "ring", "reading": "published"}
    assert _run(run, table, ["absent"], set()) is None
    assert [agent_name("0"), agent_name("average")] == ["1", "average"]


def test_a_rounded_interval_contains_its_number():
    rng = np.random.default_rng(0)
    value = rng.standard_normal(200)
    table = pandas.DataFrame({"iteration": range(200), "value": value})
    table = table.assign(lo=value - 1e-4 * rng.random(200), hi=value + 1e-4 * rng.random(200))
    found = {name: np.array(numbers) for name, numbers in _curve(table, np.arange(200)).items()}
    assert ((found["lo"] <= found["v"]) & (found["v"] <= found["hi"])).all()


@pytest.mark.thorough
def test_a_multiverse_and_an_arena_are_shown_where_they_have_been_made(tmp_path):
    pytest.importorskip("scour", reason="pip install -e '.[docs]'")
    files = Files(tmp_path / "results", tmp_path / "site")
    rows = [{"claim": "near"}]
    sections = SimpleNamespace(names={})
    paper = SimpleNamespace(key="p", claims={"near": SimpleNamespace(says="So")}, sections=sections)
    assert _universes(paper, rows, files) is None and _arena(paper, files) is None
    made = tmp_path / "results" / "p"
    for path, text in {
        "multiverse.csv": "claim\n",
        "multiverse.md": "# Multiverse",
        "multiverse/figures/overview.svg": "<svg></svg>",
        "multiverse/figures/claim_near.svg": '<svg width="72pt" height="36pt"></svg>',
        "scores.csv": "task\n",
        "cards/d_ula.md": "# D-ULA",
    }.items():
        (made / path).parent.mkdir(parents=True, exist_ok=True)
        (made / path).write_text(text)
    pictures = sorted((made / "multiverse" / "figures").iterdir())
    provenance.write_provenance([made / "multiverse.csv", made / "multiverse.md", *pictures])
    provenance.write_provenance([made / "scores.csv", made / "cards" / "d_ula.md"])
    found = _universes(paper, rows, files)
    assert [picture["name"] for picture in found["pictures"]] == ["overview", "claim_near"]
    assert (found["pictures"][1]["width"], found["pictures"][1]["claim"]) == (96, "near")
    assert found["page"] == "multiverse/p.html"
    assert _universes(paper, [], files)["pictures"][1]["claim"] is None
    assert _arena(paper, files)["cards"] == [("D-ULA", "cards/p/d_ula.html")]
    for path in (
        "multiverse/claim_near.svg",
        "multiverse.csv",
        "scores.csv.gz",
    ):
        assert (tmp_path / "site" / "results" / "p" / path).exists(), path
    for template, parts in (("universes", found), ("arena", _arena(paper, files))):
        text = render(template, root="../", **{**parts, "about": None, "rules": None})
        links = re.findall(r'href="\.\./([^"]+)"', text)
        files_linked = [link for link in links if not link.endswith(".html")]  # pages by Sphinx
        assert files_linked and all((tmp_path / "site" / link).exists() for link in files_linked)


@pytest.mark.parametrize("package", ROOMS)
def test_the_reference_has_every_kind_and_option(package):
    text = dict(reference.pages({}))[package]
    for kind in kinds.names(package):
        assert f".. _{package}-{kind}:" in text
        for option in described(package, kind, execute=False).get("options", []):
            assert f"``{option['name']}``" in text


def test_the_reference_has_every_key_of_a_study():
    text = dict(reference.pages({}))["study"]
    for key in ("experiments", "claims", "rests", "sweep", "chains", "record", "burn_in"):
        assert f"``{key}``" in text, key


def test_equations_are_mathml():
    block = extension._mathml(
        None, r"\begin{aligned} a &= \Big( b \Big) \\ c &= d \end{aligned}", True
    )
    assert block.count("<mtr>") == 2 and 'display="block"' in block
    assert "<mi>" in extension._mathml(None, r"\alpha_k", False)
    assert "…" in extension._mathml(None, r"x_1, \dots, x_N", False)


def test_every_equation_of_the_samplers_can_be_written():
    for kind in kinds.names("samplers"):
        for latex in re.split(r"\n\s*\n", described("samplers", kind)["equation"] or ""):
            if r"\\" in latex or "&" in latex:
                latex = rf"\begin{{aligned}}{latex}\end{{aligned}}"
            assert not latex or extension._mathml(None, latex, True), (kind, latex)


def test_the_documents_that_the_index_names_are_there():
    index = ROOT / "docs" / "index.md"
    links = re.findall(r"\]\(([^)]+)\)", index.read_text())
    assert len(links) > 8
    assert all((index.parent / link).is_file() for link in links)


def test_kinds_of_figures_that_no_paper_draws_have_a_picture_in_the_docs():
    """So the reference shows one of each where only the papers have been reproduced."""
    drawn = set()
    for path in (ROOT / "config" / "papers").glob("*/figures.yaml"):
        drawn |= {entry["kind"] for entry in load_yaml(path)["figures"].values()}
    kept = {path.stem for path in (ROOT / "docs" / "figures").glob("*.png")}
    assert {*kinds.built_in("figures")} <= drawn | kept <= {*kinds.names("figures")}


def test_cards_are_those_that_were_made_and_as_they_were(tmp_path):
    assert papers.cards(tmp_path) == []
    names = ("scores.csv", "cost.csv", "cards/two.md", "cards/one.md")
    (tmp_path / "cards").mkdir()
    for name in (*names, "cards/old.md"):
        (tmp_path / name).write_text(name)
    provenance.write_provenance([tmp_path / name for name in names])
    assert papers.cards(tmp_path) == [tmp_path / "cards" / f"{n}.md" for n in ("one", "two")]
    (tmp_path / "cost.csv").write_text("edited")
    with pytest.raises(ConcordError, match=r"cost\.csv: it is not as it was written; delete"):
        papers.cards(tmp_path)
