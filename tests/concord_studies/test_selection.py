"""The one language in which runs are selected."""

from types import SimpleNamespace

import pytest

from concord.errors import ConcordError
from concord_studies import selection


def run(**labels):
    return {
        "labels": labels,
        "topology": {"kind": "ring", "every": 2},
        "problem": {"name": "linear", "kind": "linear_regression"},
        "sampler": {"kind": "de_sgld", "step_size": 0.005, "batch_size": None},
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("agents", 20),
        ("batch", 0.001),  # labels are numbers again
        ("start", "wide"),
        ("topology", "ring"),
        ("problem", "linear"),  # a part is its name, or its kind
        ("sampler", "mine"),  # a label comes before a key
        ("sampler.kind", "de_sgld"),
        ("sampler.step_size", 0.005),
        ("sampler.batch_size", None),
        ("sampler.nothing", None),
    ],
)
def test_a_name_is_a_label_or_else_a_key(name, value):
    one = run(agents="20", batch="1e-3", start="wide", sampler="mine")
    assert selection.lookup(one, name) == value
    assert selection.has(one, name) == (name != "sampler.nothing")


@pytest.mark.parametrize(
    ("wanted", "matched"),
    [
        ({}, True),
        ({"agents": 5}, True),
        ({"agents": "5"}, True),
        ({"agents": [4, 5], "topology": "ring"}, True),
        ({"agents": [4, 5], "topology": "star"}, False),
        ({"sampler.step_size": "0.005"}, True),
        ({"sampler.batch_size": None}, True),
    ],
)
def test_a_run_matches_if_it_has_one_of_the_values_of_every_name(wanted, matched):
    assert selection.matches(run(agents="5"), wanted) == matched


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"agent": 5}, "no run has 'agent' as a label or parameter; did you mean 'agents'?"),
        ({"topology": "rnig"}, "no run has topology 'rnig'; did you mean 'ring'?"),
        ({"agents": [5, 7]}, "no run has agents 7; choose one of 5, 6"),
        (
            {"agents": 5, "start": "b"},
            "no run has all of {'agents': 5, 'start': 'b'}; leave some out",
        ),
        ({"agents": [5, 6], "start": "b"}, None),
    ],
)
def test_what_no_run_has_is_said_with_the_nearest(wanted, said):
    runs = [run(agents="5", start="a"), run(agents="6", start="b")]
    assert selection.describe_mistake(runs, wanted) == said


def test_a_list_sets_the_order_and_an_empty_selection_is_refused():
    made = [SimpleNamespace(run=run(agents=n), name=n) for n in ("5", "6", "7")]
    chosen = selection.select(made, {"agents": [7, 5]})
    assert [one.name for one in chosen] == ["7", "5"]
    assert selection.distinct(chosen, "agents") == [7, 5]
    assert [value for value, _ in selection.split(made, "agents")] == [5, 6, 7]
    with pytest.raises(ConcordError, match="no run has agents 8"):
        selection.select(made, {"agents": 8})
    with pytest.raises(ConcordError, match="runs 5 and 6 would both be the panel"):
        selection.take_single(made, "the panel")
