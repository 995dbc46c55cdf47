"""Texts say the numbers of the runs that they are of, or leave the sentence out."""

import math

import pytest
from test_claims import run

from concord.options import build
from concord_studies.claims import texts
from concord_studies.claims.texts import Number, fill_in, find_setting

NAN = math.nan


def curve(*values, agent=0, experiment="one", **labels):
    rows = [(k, agent, "w2_exact", value) for k, value in enumerate(values)]
    return run(experiment, *rows, **labels)


def say(*runs, of=None, **number):
    """Return what a number of runs says; ``of``: the runs of what it is divided by."""
    built = build(Number, {"metric": "w2_exact", **number})
    return built.describe([list(runs), list(of or runs)][: len(built.list_quantities())])


def test_a_number_alone_is_itself_and_several_are_a_range():
    low, high = curve(9, 0.0912, topology="ring"), curve(9, 0.1134, topology="complete")
    assert say(low) == "0.091"
    assert say(low, high) == "0.09 to 0.11"
    assert say(low, high, at=0) == "9"
    assert say(low, high, reduce="max", at="all") == "9"
    assert say(curve(0.0023), curve(0.86)) == "0.0023 to 0.86"
    assert say(curve(231), curve(513.4)) == "231 to 513"


def test_a_number_has_the_digits_that_its_interval_leaves():
    assert say(run("one", (9, 0, "w2", 0.06312, 0.0601, 0.0661)), metric="w2") == "0.063"
    assert say(run("one", (9, 0, "w2", 3.14159, 2.1, 4.2)), metric="w2") == "3"


def test_a_ratio_is_of_like_numbers():
    sides = [(curve(0.2, topology="ring"), curve(0.9, topology="complete"))]
    others = (curve(0.1, topology="ring"), curve(0.3, topology="complete"))
    assert say(*sides[0], of=others, ratio_to={"experiment": "two"}) == "2 to 3"


def test_the_first_iteration_is_that_after_which_values_stay():
    settles = curve(9, 1.05, 2, 1.05, 1.0)
    assert say(settles, show="first") == "3"
    assert say(settles, show="first", within=1.01) == "4"
    assert say(settles, show="first", within=3.0) == "1"
    assert say(curve(1, 1, 1, topology="ring"), settles, show="first") == "0 to 3"
    assert say(curve(1, math.inf), show="first") is None


def test_values_within_the_bounds_are_counted():
    runs = [curve(value, agents=n) for n, value in enumerate((1.0, 2.0, 3.0))]
    assert say(*runs, show="count", at_least=2) == "2"
    assert say(*runs, show="count", at_most=0.5) == "0"


@pytest.mark.parametrize(
    ("runs", "bounds"),
    [
        ([curve(9.0)], {"at_least": 10}),
        ([curve(9.0), curve(12.0)], {"at_least": 10}),
        ([curve(9.0)], {"at_most": 8}),
        ([curve(math.inf)], {}),
        ([], {}),
        ([run("one", (9, 0, "w2", 11.0, 9.5, 12.5))], {"metric": "w2", "at_least": 10}),
        ([curve(1.0)], {"at": 7}),
        ([curve(1.0)], {"metric": "gone"}),
    ],
    ids=str,
)
def test_what_is_not_measured_or_out_of_bounds_is_not_said(runs, bounds):
    assert say(*runs, **bounds) is None
    assert say(curve(11.0), at_least=10) == "11"


def test_a_diverged_number_is_not_said():
    lost = run("one", (9, 0, "w2_exact", NAN), (9, "network", "diverged_first", 3.0))
    assert say(lost) is None


def test_a_sentence_without_its_number_is_left_out():
    words = {"far": None, "near": "0.1", "agents": "6"}
    text = "It ends at {near}\n for {agents} agents. It is {far} times as far. {agents} move."
    assert fill_in(text, words.get) == "It ends at 0.1 for 6 agents. 6 move."
    assert fill_in("It is {far}.", words.get) == ""


def test_settings_are_those_of_the_runs_shown():
    harmonic = {"kind": "harmonic", "a": 1.0, "c": 2.0}
    runs = [
        {"experiment": "one", "agents": 6, "sampler": {"step_size": 0.005, "batch_size": None}},
        {
            "experiment": "two",
            "agents": 6,
            "sampler": {"step_size": harmonic},
        },
        {"options": {"points": 569}},
    ]
    assert find_setting(runs, "agents") == "6"
    assert find_setting(runs, "sampler.step_size") == "0.005 or 1/(1 + 2 k)"
    assert find_setting(runs, "one.sampler.step_size") == "0.005"
    assert find_setting(runs, "one.sampler.batch_size") == "none"
    assert find_setting(runs, "options.points") == "569"
    assert find_setting(runs, "sampler.steps") is None


def test_a_number_and_its_runs_are_plain_data():
    number = build(Number, {"metric": "w2", "ratio_to": {"agents": [1]}})
    stated = texts.state_number(texts.NumberWithRuns(number, [[], []]))
    assert build(Number, stated["number"]) == number and stated["runs"] == [[], []]
