"""Runs of one chain are drawn and tabulated without any interval, since they have none."""

from __future__ import annotations

import warnings

import made_up_runs
import pandas
import pytest
from matplotlib.collections import LineCollection, PolyCollection
from test_diverged_figures import KINDS, OPTIONS, texts

from concord.figures import style
from concord.options import build
from concord.plugins import plugin
from concord.results import Measured
from diverged_runs import AGENTS, FAMILIES, LAST, measured


def one_chain() -> Measured:
    """Return a run with what every family says of one chain."""
    rows = [row for family in FAMILIES for row in measured(family, chains=1)]
    rows.append(type(rows[0])(LAST, "network", "diverged", 0.0))
    table = pandas.DataFrame(rows).astype({"value": float, "lo": float, "hi": float})
    run = made_up_runs.run(agents=AGENTS, case="sound")
    return Measured({**run, "chains": 1, "iterations": LAST}, table)


RUN = one_chain()


@pytest.mark.parametrize("kind", KINDS)
def test_a_figure_of_one_chain_has_no_band(kind, tmp_path):
    options = dict(OPTIONS[kind])
    if "panels" in options:
        options["panels"] = options["panels"][:1]
    module = plugin("figures", kind, "figure")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = module.draw(build(module.Params, options, "options"), [RUN])
        style.save(figure, [tmp_path / f"{kind}.png"])
    if kind == "curves":
        assert not figure.findobj(lambda artist: type(artist) is PolyCollection)
        assert not [bars for bars in figure.findobj(LineCollection) if len(bars.get_segments())]
        assert not [text for text in texts(figure) if "95 % interval" in text]
