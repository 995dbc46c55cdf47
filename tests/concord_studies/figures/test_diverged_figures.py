"""Every kind of figure shows that a run diverged, and draws one of one chain without intervals."""

import warnings
from pathlib import Path
from typing import Any

import pandas
import pytest
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_hex
from matplotlib.text import Text

import made_up_runs
from concord import kinds
from concord.options import build
from concord_studies import results
from concord_studies.figures import style
from concord_studies.results import Measured
from diverged_runs import AGENTS, CHAINS, DIVERGED, FAMILIES, LAST, measured

# Those of the arena show divergence by their scores (tests/concord_arena/test_displays.py).
ARENA = {
    *("best_entries", "metric_pairs", "score_ratios"),
    *("predicted_measured", "solved_curves"),
}
# Of exact laws, or of numbers that no run here has.
LAWS = {"marks_by_agent", "hospitals", "shards"}
KINDS = [kind for kind in kinds.names("figures") if kind not in ARENA | LAWS]
CASES = {"sound": 0, "part": 1, "lost": CHAINS}
PANELS = [{"title": case, "select": {"case": case}} for case in CASES]
MAPS = [{**panel, "metric": "confusion_digits"} for panel in PANELS]
OPTIONS: dict[str, dict[str, Any]] = {
    "box_plots": {"beside": "case", "iterations": [0, 10, 30]},
    "curves": {"metric": "w2", "lines": "case", "agents": [0], "columns": "topology"},
    "density_scatter": {"rows": "case"},
    "dots": {
        **{"rows": "topology", "lines": "case", "shows": ["w2/0"], "xlim": [0.01, 10]},
        **{"titles": ["(a) W2"], "xlabels": ["W2"]},
    },
    "label_maps": {"panels": MAPS},
    "networks": {},
    "posterior": {"networks": "case", "agents": [0]},
    "prediction_densities": {"sets": {"digits": "A set"}, "panels": PANELS, "ylim": [0.1, 100]},
    "stationary_covariance": {"lines": "case"},
    "timeline": {"agents": [0, 1], "rows": "case"},
}


def measured_run(case: str, chains: int = CHAINS) -> Measured:
    """Return a run with the metrics of every family."""
    families = (measured(family, chains=chains, lost=CASES[case]) for family in FAMILIES)
    rows = [row for family in families for row in family]
    table = pandas.DataFrame(rows).astype({"value": float, "lo": float, "hi": float})
    lost = [(LAST, "network", "diverged", CASES[case] / chains)]
    lost += [(DIVERGED, "network", "diverged_first", DIVERGED)] if CASES[case] else []
    table = pandas.concat([table, pandas.DataFrame(lost, columns=list(table.columns[:4]))])
    table = table[(table["metric"] != "draw") | (table["iteration"] % 10 == 0)]  # a panel for each
    run = made_up_runs.run(agents=AGENTS, case=case)
    return Measured({**run, "chains": chains, "iterations": LAST}, table)


RUNS = {case: measured_run(case) for case in CASES}


def texts(figure: Any) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text)]


def draw(kind: str, runs: list[Measured], folder: Path | None = None) -> Any:
    """Draw the panels whose run is there, into a file if there is a folder, without a warning."""
    assert kind in OPTIONS, f"give {kind} options in OPTIONS, for which it draws RUNS"
    module, options = kinds.find("figures", kind, "figure"), dict(OPTIONS[kind])
    if "panels" in options:
        options["panels"] = options["panels"][: len(runs)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = module.draw(build(module.Params, options, "options"), runs)
        if folder:
            style.save(figure, [folder / f"{kind}.png"])
    return figure


@pytest.mark.parametrize("kind", KINDS)
def test_a_figure_shows_what_diverged(kind, tmp_path):
    runs = list(RUNS.values())
    figure = draw(kind, runs, tmp_path)
    said = " ".join(text for text in texts(figure) if "iverged" in text).lower()
    if kind == "networks":  # which shows no numbers
        assert not said
        return
    for run in runs:
        name = run.run["labels"]["case"]
        assert (name in said) == (name != "sound"), said
    assert str(DIVERGED) in said


PALE = ("_estimate", "_agent", "_to_zero", "_law")  # beneath or beside what is seen


@pytest.mark.parametrize("kind", KINDS)
def test_lines_and_texts_can_be_seen_and_read(kind):
    figure = draw(kind, list(RUNS.values()))
    shown = [text for text in figure.findobj(Text) if text.get_text() and text.get_visible()]
    assert min(text.get_fontsize() for text in shown) >= 6.5
    inside = {id(text) for axes in figure.axes if axes.images for text in axes.texts}  # of cells
    colors = {to_hex(text.get_color()) for text in shown if id(text) not in inside}
    for axes in figure.axes:
        lines = [line for line in axes.lines if not str(line.get_label()).startswith(PALE)]
        colors |= {to_hex(line.get_color()) for line in lines if line.get_linestyle() != "None"}
    assert {color for color in colors if style.contrast(color) < 3} <= {"#ffffff"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_figure_of_one_chain_has_no_band(kind, tmp_path):
    figure = draw(kind, [measured_run("sound", chains=1)], tmp_path)
    if kind == "curves":
        assert not figure.findobj(lambda artist: type(artist) is PolyCollection)
        assert not [bars for bars in figure.findobj(LineCollection) if len(bars.get_segments())]
        assert not [text for text in texts(figure) if "95 % interval" in text]


def test_the_note_names_runs_and_their_chains_and_ends_somewhere():
    options = OPTIONS["stationary_covariance"]
    params = build(kinds.find("figures", "stationary_covariance", "").Params, options, "x")
    said = results.divergence_note(params, list(RUNS.values()))
    assert said == (
        f"Diverged: part (1 of {CHAINS} chains, first at iteration {DIVERGED}); "
        f"lost ({CHAINS} of {CHAINS} chains, first at iteration {DIVERGED})"
    )
    many = [Measured({**RUNS["lost"].run, "labels": {"case": f"{i}"}}, RUNS["lost"].metrics)
            for i in range(50)]  # fmt: skip
    assert results.divergence_note(params, many).endswith("; and 44 more runs")
    assert results.divergence_note(params, [RUNS["sound"]]) is None
    alone = [Measured({**RUNS["lost"].run, "chains": 1}, RUNS["lost"].metrics)]
    assert results.divergence_note(params, alone).endswith(f" (first at iteration {DIVERGED})")
    chosen = build(type(params), {**options, "select": {"case": "sound"}}, "x")
    assert results.divergence_note(chosen, list(RUNS.values())) is None
