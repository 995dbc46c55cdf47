"""Layers are a room: chosen by name, a file each, and a study may add one."""

import json

import numpy as np
import pytest

from concord import kinds
from concord.errors import ConcordError
from concord.options import build, plain
from concord_arena import testing
from concord_studies import digests
from concord_studies.configuration.editor import study_schema
from concord_studies.figures import curves
from concord_studies.stages import draw
from made_up_runs import run, w2

THEORY = '''
"""What a theorem says, a dotted line."""
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any

from concord_studies.figures import style
from concord_studies.figures.layer import Layer
from concord_studies.results import Series

LOOK: Any = {"color": "k", "linestyle": ":"}

class Params(Layer):
    """A bound."""

    times: Annotated[float, "bound over the estimate"] = 2.0

    def reads(self, select, agents):
        return ["bound"]

    def show_line(self, line):
        bound = replace(line.estimate, value=self.times * line.estimate.value)
        return replace(line, companions={**line.companions, "theory": bound})

    def draw(self, panel, axes):
        for line in panel.lines:
            bound = line.companions["theory"]
            axes.plot(bound.iteration, bound.value, **LOOK, label="_theory")

    def legend(self, panels, labels):
        yield style.entry(f"{self.times:g} times", **LOOK)
'''


def options(*layers):
    return build(curves.Params, {"metric": "w2", "layers": list(layers)}, "x.yaml: options")


@pytest.fixture
def theory(tmp_path):
    path = tmp_path / "mine" / "plugins" / "layers" / "theory.py"
    path.parent.mkdir(parents=True)
    path.write_text(THEORY)
    kinds.use(path.parents[2])
    yield path
    kinds.use()


def test_a_layer_of_a_study_is_one_file(theory):
    """It is read, held by the limits, drawn, named in the legend, and counts in the digest."""
    params = options({"theory": 300.0})
    assert "bound" in curves.reads(params)
    figure = curves.draw(params, [w2(run(), [0])])
    (axes,) = figure.axes
    (line,) = [line for line in axes.lines if line.get_label() == "_theory"]
    assert axes.get_ylim()[1] > line.get_ydata().max() > 300
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["300 times"]
    assert theory in [*draw._locate_chosen(params)]
    before = digests.digest_code(*draw._locate_chosen(params))
    theory.write_text(THEORY.replace("times * ", "times + "))
    digests.forget_files()
    assert digests.digest_code(*draw._locate_chosen(params)) != before
    outcomes = list(testing.run("layers", "theory"))
    assert outcomes and {outcome.ended for outcome in outcomes} <= {"ok", "not applicable"}


def test_a_panel_may_have_layers_of_its_own():
    params = {"metric": "w2", "layers": ["floor"], "panels": [{"layers": ["exact"]}, {}]}
    both = build(curves.Params, params, "x")
    files = {path.stem for path in draw._locate_chosen(both)}
    assert files == {"floor", "exact"}
    one, other = curves.draw(both, [w2(run(), [0])]).axes
    assert [any(line.get_label() == "_floor" for line in ax.lines) for ax in (one, other)] == [
        *(False, True)
    ]


@pytest.mark.parametrize(
    "layer",
    ["exact", "floor", {"floor": "f"}, {"slopes": [-0.5]}, {"gray": {"others": ["1", "2"]}}],
)
def test_a_layer_is_planned_as_it_is_read(layer):
    params = options(layer)
    written = json.loads(json.dumps(plain(params)))
    assert build(curves.Params, written, "x") == params
    assert plain(params)["layers"] == [layer if layer != "floor" else {"floor": None}]


@pytest.mark.parametrize(
    ("layer", "sentence"),
    [
        ("exakt", "did you mean 'exact'"),
        ({"floors": "f"}, "did you mean 'floor'"),
        ({"sd": 3}, r"layers\[0\].metric"),
        ("sd", "metric"),
        ({"exact": 3}, "exact"),
        (3, "there is no layer 3"),
        ({"sd": "a", "floor": "b"}, "there is no layer"),
    ],
)
def test_a_mistake_in_a_layer_is_told(layer, sentence):
    with pytest.raises(ConcordError, match=sentence) as caught:
        options(layer)
    assert str(caught.value).startswith("x.yaml: options.layers[0]")


def test_editors_know_layers_and_their_options():
    layer = study_schema()["$defs"]["layer"]["anyOf"]
    assert set(layer[0]["enum"]) >= {"exact", "sd", "gray"}
    assert layer[1]["properties"]["sd"]["type"] == "string"
    assert "exact" not in layer[1]["properties"]


def test_every_layer_draws_lines_over_a_label(monkeypatch):
    """Where runs are points, a layer that has nothing to show leaves them as they are."""
    runs = [w2(run(penalty=p), [0], end=0.01 * p) for p in (1, 2, 4)]
    values = {"sd": "w2", "slopes": [-0.5], "gray": {"rest": ["x"]}}
    for kind in sorted({*kinds.built_in("layers")} - {"deviation"}):
        layer = {kind: values[kind]} if kind in values else kind
        params = {"metric": "w2", "lines": "experiment", "x": {"over": "penalty"}}
        figure = curves.draw(build(curves.Params, {**params, "layers": [layer]}, "x"), runs)
        (line,) = [of for of in figure.axes[0].lines if not of.get_label().startswith("_")]
        assert np.array_equal(line.get_xdata(), [1, 2, 4]), kind
