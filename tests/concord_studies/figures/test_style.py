import os
import re
import sys
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib import image
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from concord.errors import ConcordError
from concord.options import build
from concord_studies import results, selection, words
from concord_studies.configuration.config import load_config
from concord_studies.configuration.study import Study
from concord_studies.figures import _axes, curves, style
from made_up_runs import run, w2
from processes import SOURCE, python

CONFIG = Path(__file__).parents[3] / "config"
PAPERS = sorted((CONFIG / "papers").iterdir())
FORMATS = ("pdf", "svg", "png")

# What a user may have set for figures of another kind; without LaTeX the first would be an error.
OTHER_TASTE = {
    "text.usetex": True,
    "axes.facecolor": "pink",
    "lines.dashed_pattern": "9, 9",
    "path.sketch": "(5, 100, 1)",
    "savefig.bbox": "tight",
    "figure.constrained_layout.h_pad": 0.5,
    "svg.fonttype": "path",
    "pdf.compression": 0,
    "axes.unicode_minus": False,
}


def figure(topologies=("ring", "complete"), **options):
    runs = [w2(run(topology=t), [0, "average"], iterations=30) for t in topologies]
    shown = {"metric": "w2", "columns": "topology", "agents": [0, "average"], **options}
    return curves.draw(build(curves.Params, shown, "x.yaml: figures.f"), runs)


def small():
    """One panel: for tests of files, which cost more than drawing."""
    return figure(topologies=("ring",))


def files(folder: Path) -> list[Path]:
    return [folder / f"f.{suffix}" for suffix in FORMATS]


def contents(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in files(folder)]


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> list[bytes]:
    folder = tmp_path_factory.mktemp("saved")
    style.save(small(), files(folder))
    return contents(folder)


def test_the_same_bytes_in_another_process(saved, tmp_path):
    code = (
        "import sys; from pathlib import Path; import test_style as t; "
        "t.style.save(t.small(), t.files(Path(sys.argv[1])))"
    )
    environment = {
        "PYTHONPATH": os.pathsep.join([SOURCE, *sys.path]),
        "PYTHONHASHSEED": "7",
        "TZ": "Asia/Tokyo",
        "SOURCE_DATE_EPOCH": "86400",
        "MPLBACKEND": "svg",
        "MPLCONFIGDIR": str(tmp_path),
    }
    settings = tmp_path / "matplotlibrc"
    settings.write_text("\n".join(f"{key}: {value}" for key, value in OTHER_TASTE.items()))
    python(code, tmp_path / "there", **environment)
    assert contents(tmp_path / "there") == saved


def test_files_carry_no_date_and_no_version(saved):
    for text in saved:
        assert matplotlib.__version__.encode() not in text
        assert b"Date" not in text
        assert b"<dc:date>" not in text


def test_svg_has_texts_as_they_are_short_numbers_and_bands_without_corners_nobody_sees(tmp_path):
    drawn = Figure(figsize=(4, 3))
    axes = drawn.add_axes((0, 0, 1, 1))
    x = np.linspace(0, 10, 3001)
    axes.fill_between(x, np.maximum(x - 5, 0), 7)
    axes.set(xlim=(0, 10), ylim=(0, 10), title="0.123456 < $x$ 0.98765")
    axes.text(1, 9, "0.123456 < x", clip_on=False)
    style.save(drawn, [tmp_path / "f.svg"])
    text = (tmp_path / "f.svg").read_text()
    assert ">0.123456 &lt; x</text>" in text
    assert not re.search(r"\d\.\d{3}", " ".join(re.findall(r"<[^>]+>", text)))
    band = max(re.findall(r' d="([^"]*)"', text), key=len)
    corners = np.array(re.findall(r"(-?[\d.]+) (-?[\d.]+)", band), float)
    assert 5 <= len(corners) < 30
    edge = corners[1:-1] * [1 / 28.8, -1 / 21.6] + [0, 10]  # 288 by 216 points, y downwards
    away = np.minimum(np.abs(edge[:, 1] - np.maximum(edge[:, 0] - 5, 0)), np.abs(edge[:, 1] - 7))
    assert away.max() < 0.01  # 0.2 of a point


def test_watermark_is_drawn_and_not_left_behind(tmp_path):
    drawn = small()
    style.save(drawn, files(tmp_path / "plain"))
    style.save(drawn, files(tmp_path / "smoke"), watermark=True)
    style.save(drawn, files(tmp_path / "after"))
    plain, smoke, after = (contents(tmp_path / name) for name in ("plain", "smoke", "after"))
    assert after == plain
    assert all(a != b for a, b in zip(plain, smoke, strict=True))
    a, b = (image.imread(tmp_path / name / "f.png") for name in ("plain", "smoke"))
    changed = (a != b).any(axis=2)
    assert 0.02 < changed.mean() < 0.4
    rows, columns = np.nonzero(changed)
    assert np.ptp(columns) > 0.5 * changed.shape[1]
    assert np.ptp(rows) > 0.3 * changed.shape[0]


def test_smoke_scale_is_seen_in_any_run():
    paper, smoke = run(topology="ring"), {**run(topology="star"), "scale": "smoke"}
    assert results.is_smoke([results.Measured(paper, None), results.Measured(smoke, None)])
    assert not results.is_smoke([results.Measured(paper, None)])


@pytest.mark.parametrize("width", ["column", "full"])
def test_nothing_is_cut_off_or_covered(width):
    drawn = figure(width=width)
    drawn.draw_without_rendering()
    frame = drawn.bbox
    legend = drawn.legends[0].get_window_extent()
    for axes in drawn.axes:
        box = axes.get_tightbbox()
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= frame.x1
        assert box.y1 <= frame.y1
        assert not legend.overlaps(box)
        assert axes.bbox.width > 0.25 * frame.width
    assert legend.x0 >= 0
    assert legend.y0 >= 0
    assert legend.x1 <= frame.x1


LONG = "a rather long description of what stands on this axis, with formulas $a + b$ (in units)"


@pytest.mark.parametrize("layout", ["constrained", None])
def test_long_labels_wrap_and_nothing_of_a_plug_ins_figure_is_cut_off(layout):
    drawn = Figure(figsize=(3.4, 2), layout=layout)
    axes = drawn.subplots(1, 2)
    axes[0].set(xlabel=LONG, ylabel=LONG)
    axes[1].set(xlabel="short", ylabel="short $a + b$")
    style.lay_out(drawn)
    drawn.draw_without_rendering()
    for label in (axes[0].xaxis.label, axes[0].yaxis.label):
        assert label.get_text().count("\n") > 1 and "$a + b$" in label.get_text()
    for ax in axes:
        box = ax.get_tightbbox()
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= drawn.bbox.x1 and box.y1 <= drawn.bbox.y1
    assert axes[1].get_xlabel() == "short" and axes[1].get_ylabel() == "short $a + b$"
    texts, size = [ax.get_xlabel() for ax in axes], drawn.get_size_inches().tolist()
    style.lay_out(drawn)
    assert (texts, size) == ([ax.get_xlabel() for ax in axes], drawn.get_size_inches().tolist())


@pytest.mark.parametrize("titled", [False, True])
def test_a_wrapped_label_stays_above_the_legend(titled):
    drawn = Figure(figsize=(3.4, 1.9), layout="constrained")
    axes = drawn.subplots()
    axes.plot([1, 2], label="a line")
    axes.set(xlabel="k", ylabel=LONG, title="(a)" if titled else "")
    style.legend_of(drawn, [style.entry(f"a long entry of the legend {n}") for n in range(6)])
    style.lay_out(drawn)
    drawn.draw_without_rendering()
    box = axes.yaxis.label.get_window_extent()
    assert drawn.legends[0].get_window_extent().y1 <= box.y0 and box.y1 <= drawn.bbox.y1


def test_an_unknown_format_is_told(tmp_path):
    with pytest.raises(ConcordError, match=r"written as \.pdf, \.svg or \.png"):
        style.save(small(), [tmp_path / "f.jpg"])


def test_settings_of_the_process_are_left_alone(tmp_path):
    before = dict(matplotlib.rcParams)
    style.save(small(), [tmp_path / "f.png"])
    assert dict(matplotlib.rcParams) == before


def test_numbers_run_from_dark_to_light_in_their_order():
    looks = style.looks("sampler.rho", [10, 1, 1000, 100])
    light = [sum(to_rgb(look.color)) for look in looks]
    assert light[1] < light[0] < light[3] < light[2]


def test_colors_can_be_seen_on_white():
    looks = [style.Look(*look) for of in (style.SAMPLERS, style.ENTRIES, style.TOPOLOGIES)
             for look in of.values()]  # fmt: skip
    looks += style.looks("agent", [*range(6), "average"])
    looks += style.looks("reading", ["published", "released", "corrected"])
    looks += style.looks("step", [1, 2, 3, 4, 5]) + style.looks("any", [*"abcdefghijklmno"])
    assert min(style.contrast(look.color) for look in looks) >= 3
    assert style.contrast("black") == pytest.approx(21) and style.contrast("white") == 1
    assert [style.choose_ink(color) for color in ("white", "#fff3c0", "#222222")] == [
        *(style.BLACK, style.BLACK, "white")
    ]


@pytest.mark.parametrize(
    ("limits", "texts"),
    [
        ((0.001, 10), ["0.001", "0.01", "0.1", "1", "10"]),
        ((231, 800), ["300", "400", "500", "600", "700", "800"]),
        ((0.2, 2), ["0.3", "1"]),
        ((0.04, 3), ["0.1", "1"]),
        ((1.1, 1.9), ["1.2", "1.4", "1.6", "1.8"]),
        ((1e-7, 1e-4), [rf"$10^{{{p}}}$" for p in (-7, -6, -5, -4)]),
    ],
)
def test_a_log_axis_has_labels_at_round_numbers(limits, texts):
    axes = Figure().subplots()
    axes.set_yscale("log")
    axes.set_ylim(*limits)
    _axes.label_log_axis(axes.yaxis)
    low, high = axes.get_ylim()
    ticks = zip(axes.get_yticks(), axes.get_yticklabels(), strict=True)
    assert [label.get_text() for tick, label in ticks if low <= tick <= high] == texts


def test_no_network_has_the_color_of_a_sampler():
    of_samplers = {color for color, _ in style.ENTRIES.values()}
    of_networks = [color for color, _ in style.TOPOLOGIES.values()]
    assert not of_samplers & {*of_networks} and len({*of_networks}) == len(of_networks)
    (other,) = style.looks("sampler", ["another"])
    assert other.color not in of_samplers


@style.styled
def test_few_entries_of_a_legend_are_one_row():
    for count, rows in ((3, 1), (9, 3)):
        drawn = Figure(figsize=(7, 2), layout="constrained")
        drawn.subplots()
        entries = [style.entry(f"an entry {n}") for n in range(count)]
        style.legend_of(drawn, entries, [style.entry("a reference")])
        drawn.draw_without_rendering()
        heights = {round(text.get_window_extent().y0) for text in drawn.legends[0].texts}
        assert len(heights) == rows


def test_samplers_beside_each_other_have_colors_of_their_own():
    fixed = ["de_sgld", "de_sghmc", "d_ula", "admm", "extra_sgld", "diging_sgld", "local_sgld"]
    others = ["graph_gibbs", "gossip_ula", "push_sum_sgld", "d_mala", "dg_lmc", "dsgld"]
    colors = [look.color for look in style.looks("entry", [*fixed, *others])]
    assert len(set(colors)) == len(colors)


def test_a_papers_own_setting_has_the_color_of_its_sampler_and_hollow_markers():
    tuned, papers, other = style.looks("entry", ["de_sgld", "de_sgld_paper", "push_sum_sgld"])
    assert (tuned.color, tuned.marker) == (papers.color, papers.marker) and tuned != papers
    assert papers.line["markerfacecolor"] == "white" and other.color != tuned.color
    arena = {*style.ENTRIES} - {"d_admms", "c_admm", "c_ula", "sgd"}  # no entries there
    assert len({style.ENTRIES[name][0] for name in arena}) == len(arena)


def test_other_labels_have_no_colors_of_samplers():
    of_samplers = {color for looks in style.LOOKS.values() for color, _ in looks.values()}
    values = style.looks("option", [*"abcdefg"])
    assert not of_samplers & {look.color for look in values}
    assert len({look.color for look in values}) == len(values)
    (other,) = style.looks("topology", ["inverse_laplacian"])
    assert other.color not in {color for color, _ in style.SAMPLERS.values()}


@pytest.mark.parametrize("study", PAPERS, ids=lambda path: path.name)
def test_samplers_of_a_paper_have_colors_of_their_own(study):
    config = load_config(CONFIG / "config.yaml")
    paper, named = Study(study, config), {}
    for name in paper.outputs("figures"):
        _, params = paper.kind_of("figures", name)
        lines = getattr(params, "lines", "")
        if lines in ("sampler", "method", "chain"):
            shown = paper.output_runs("figures", name)
            runs = [results.Measured(run.document, None) for run in shown]
            values = selection.distinct(runs, lines)
            for value, look in zip(
                values, style.looks(lines, values, paper.sections.colors), strict=True
            ):
                sampler = words.kind_in_sentence("sampler", str(value))  # one for two readings
                assert named.setdefault(sampler, look.color) == look.color
    assert len(set(named.values())) == len(named)
    assert all(style.contrast(color) >= 3 for color in paper.sections.colors.values())


def test_what_is_dashed_is_named_even_if_all_is():
    texts = [
        text.get_text() for text in figure(lines="reading", agents=["average"]).legends[0].texts
    ]
    assert "average" in texts
