"""Parts of the site that need neither Sphinx nor a browser: curves, lines of figures, reference."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from concord.catalog import described
from concord.plugins import PACKAGES, built_in
from concord.report.pages import render
from concord.site import extension, reference
from concord.site.curves import MOST, _run, _thinned, agent_name
from concord.site.papers import Files, _arena, _universes
from concord.site.slim import SVG, _path, slim


def ends(path: str) -> np.ndarray:
    """Return the corners of a path of absolute starts and relative lines."""
    at, found = np.zeros(2), []
    for kind, text in re.findall(r"([Mlhv])([^Mlhvz]*)", path):
        numbers = [float(n) for n in re.findall(r"-?(?:\d+(?:\.\d+)?|\.\d+)", text)]
        pair = {"h": lambda n: (n, 0.0), "v": lambda n: (0.0, n)}.get(kind)
        steps = [pair(n) for n in numbers] if pair else np.reshape(numbers, (-1, 2))
        for step in steps:
            at = np.asarray(step, float) + (0 if kind == "M" else at)
            found.append(at)
    return np.array(found)


def test_lines_stay_where_they_are_to_a_tenth_of_a_point():
    rng = np.random.default_rng(1)
    corners = 100 * rng.random((500, 2))
    text = "\n".join(f"{'L' if k else 'M'} {x:.6f} {y:.6f} " for k, (x, y) in enumerate(corners))
    short = _path(f"{text}\nz\n")
    assert short.endswith("z") and len(short) < 0.55 * len(text)
    assert np.abs(ends(short) - corners).max() <= 0.05 + 1e-9  # rounding does not add up


def test_corners_that_a_line_passes_closely_are_left_out():
    x = np.linspace(0, 100, 401)
    y = 30 + np.where(x < 50, 0.02 * np.sin(x), x - 50)  # flat but for 0.02, then rising
    text = " ".join(
        f"{'L' if k else 'M'} {a:.6f} {b:.6f}" for k, (a, b) in enumerate(zip(x, y, strict=True))
    )
    kept = ends(_path(text))
    assert len(kept) < 8
    assert np.abs(np.interp(x, *kept.T) - y).max() < 0.1 * np.sqrt(2)


def test_a_path_that_returns_and_two_parts_of_one_keep_their_places():
    assert _path("M 1 2 L 3 2 L 3 4.5 L 1 2 z M 0.5 10 L 0.25 -9.75") == (
        "M1 2h2v2.5l-2-2.5zM.5 10l-.3-19.8"
    )


def test_curved_paths_keep_their_commands():
    assert _path("M 0 1.5555 \nC 0.26521 1.5 0.5 1.3 -0.6 1.1 ") == "M0 1.56C.27 1.5 .5 1.3-.6 1.1"


def figure(inner: str) -> str:
    """Return a picture as matplotlib writes it."""
    return (
        f'<svg xmlns="{SVG[1:-1]}" xmlns:xlink="http://www.w3.org/1999/xlink">'
        f"<metadata>when</metadata><defs><style>*{{a: b}}</style></defs>{inner}</svg>"
    )


def test_a_style_is_written_once_and_what_says_nothing_goes():
    found = slim(figure('<g id="x"><!-- 0 --><g><path style="fill: red"/></g></g>' * 2))
    sheet = "<defs><style>*{a: b}.s0{fill: red}</style></defs>"
    assert found.endswith(f'{sheet}<path class="s0"/><path class="s0"/></svg>')
    assert "when" not in found


def test_equal_ticks_become_one_path_and_filled_marks_stay():
    marks = (
        '<path id="tick" d="M 0 2.8 L 0 -2.8" style="s"/><path id="dot" d="M 0 0 L 1 1 L 1 0 z"/>'
    )
    uses = "".join(
        f'<use xlink:href="#{m}" x="{x}.04" y="5"/>' for m in ("tick", "dot") for x in (1, 2)
    )
    found = slim(figure(f'<defs>{marks}</defs><g clip-path="url(#far)">{uses}</g>'))
    assert '<path class="s0" d="M1 7.8v-5.6M2 7.8v-5.6"/>' in found
    assert re.findall(r'<use x="(\d)" y="5" href="#(\w+)"/>', found) == [("1", "a2"), ("2", "a2")]
    assert 'id="a2"' in found and 'clip-path="url(#a0)"' in found


def test_thinned_iterations_have_both_ends_and_no_more_than_are_shown():
    for number in (3, 10, 150, 100_000):
        k = _thinned(np.arange(number))
        assert (k[0], k[-1]) == (0, number - 1) and len(k) <= 2 * MOST
        assert len(k) == number or 1 in k  # what happens first is kept


def test_a_run_becomes_curves_with_their_exact_law_and_prices(tmp_path):
    rows = ["iteration,agent,metric,value,lo,hi,trials"]
    for k in range(4):
        rows += [f"{k},0,w2,{1 / (1 + k)},0.1,2,10", f"{k},0,w2_exact,0.5,,,0"]
        rows += [f"{k},network,unicast_bytes,{16 * k},,,0", f"{k},1,other,1,,,0"]
    rows += ["3,network,w2_point,0.07,,,0"]
    path = tmp_path / "metrics.csv"
    path.write_text("\n".join(rows) + "\n")
    run = SimpleNamespace(
        folder="p/e/r",
        experiment="e",
        mapping={"labels": {"topology": "ring"}, "reading": "published"},
    )
    found = _run(run, path, ["w2"], {"0"})
    assert found["k"] == [0, 1, 2, 3] and found["x"] == {"unicast_bytes": [0, 16, 32, 48]}
    curves = {curve["beside"]: curve for curve in found["curves"]}
    assert curves[""]["v"] == [1, 0.5, 0.3333, 0.25] and curves[""]["lo"] == [0.1] * 4
    assert curves["_exact"]["lo"] is None and curves["_point"]["v"] == [0.07]
    assert found["labels"] == {"experiment": "e", "topology": "ring", "reading": "published"}
    assert _run(run, path, ["absent"], set()) is None
    assert [agent_name("0"), agent_name("average")] == ["1", "average"]


def test_a_multiverse_and_an_arena_are_shown_where_they_have_been_made(tmp_path):
    files = Files(tmp_path / "results", tmp_path / "site", tmp_path / "raw")
    paper, claim = SimpleNamespace(key="p"), {"name": "near", "says": "So", "universes": None}
    assert _universes(paper, [claim], files) is None and _arena(paper, files) is None
    assert claim["universes"] is None
    made = tmp_path / "results" / "p"
    for path, text in {
        "multiverse.csv": "claim\n",
        "multiverse/figures/overview.svg": figure("<g/>"),
        "multiverse/figures/claim_near.svg": figure("<g/>").replace(
            "<svg", '<svg width="72pt" height="36pt"'
        ),
        "scores.csv": "task\n",
        "cards/d_ula.md": "# D-ULA",
    }.items():
        (made / path).parent.mkdir(parents=True, exist_ok=True)
        (made / path).write_text(text)
    found = _universes(paper, [claim], files)
    assert [picture["name"] for picture in found["pictures"]] == ["overview", "claim_near"]
    assert (found["pictures"][1]["width"], found["pictures"][1]["claim"]) == (96, claim)
    assert claim["universes"] == "universes-claim_near"
    assert _arena(paper, files)["cards"] == [("d_ula", "cards/p/d_ula.html")]
    for path in (
        "multiverse/claim_near.svg",
        "multiverse.csv",
        "scores.csv.gz",
    ):
        assert (tmp_path / "site" / "results" / "p" / path).exists(), path
    for template, parts in (("universes", found), ("arena", _arena(paper, files))):
        text = render(f"site/{template}.html", root="../", rules=None, **{**parts, "about": None})
        links = re.findall(r'href="\.\./([^"]+)"', text)
        files_linked = [link for link in links if not link.startswith("cards/")]  # pages by Sphinx
        assert files_linked and all((tmp_path / "site" / link).exists() for link in files_linked)


@pytest.mark.parametrize("package", PACKAGES)
def test_the_reference_has_every_kind_and_option(package):
    text = dict(reference.pages({}))[package]
    for kind in built_in(package):
        assert f".. _{package}-{kind}:" in text
        for option in described(package, kind).get("options", []):
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
    for kind in built_in("samplers"):
        for latex in re.split(r"\n\s*\n", described("samplers", kind)["equation"] or ""):
            if r"\\" in latex or "&" in latex:
                latex = rf"\begin{{aligned}}{latex}\end{{aligned}}"
            assert not latex or extension._mathml(None, latex, True), (kind, latex)


def test_the_documents_that_the_index_names_are_there():
    index = Path(__file__).parents[1] / "docs" / "index.md"
    links = re.findall(r"\]\(([^)]+)\)", index.read_text())
    assert len(links) > 8
    assert all((index.parent / link).is_file() for link in links)
