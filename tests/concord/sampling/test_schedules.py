"""Schedules: their values, their YAML forms and what is refused."""

import pytest

from concord.errors import ConcordError
from concord.sampling.schedules import Schedule

WHERE = "config/papers/x.yaml: experiments.linear.sampler.step_size"
FORMS = [
    (0.005, lambda k: 0.005, "0.005"),
    (3, lambda k: 3.0, "3"),
    ({"kind": "constant", "value": 1.0e-4}, lambda k: 1e-4, "0.0001"),
    ({"kind": "harmonic", "a": 0.01, "c": 0.1}, lambda k: 0.01 / (1 + 0.1 * k), "0.01/(1+0.1k)"),
    ({"kind": "harmonic", "a": 2, "c": 1}, lambda k: 2 / (1 + k), "2/(1+k)"),
    ({"kind": "harmonic", "a": 2, "c": 0}, lambda k: 2.0, "2"),
    (
        {"kind": "power", "a": 0.00082, "b": 230, "exponent": 0.55},
        lambda k: 0.00082 / (230 + k) ** 0.55,
        "0.00082/(230+k)^0.55",
    ),
    ({"kind": "power", "a": 5, "b": 2, "exponent": 1}, lambda k: 5 / (2 + k), "5/(2+k)"),
    ({"kind": "power", "a": 5, "b": 2, "exponent": 0}, lambda k: 5.0, "5"),
]


@pytest.mark.parametrize(("value", "formula", "text"), FORMS)
def test_values(value, formula, text):
    schedule = Schedule.parse(value, WHERE)
    expected = [formula(k) for k in range(300)]
    assert [schedule(k) for k in range(300)] == expected  # exact: the same operations
    assert schedule.initial == expected[0]
    assert schedule.constant == (schedule.decay == 0) == (len(set(expected)) == 1)
    assert str(schedule) == text


def test_a_power_may_state_the_value_of_its_first_step():
    schedule = Schedule.parse({"kind": "power", "start": 0.36, "b": 230, "exponent": 0.05}, WHERE)
    assert schedule.initial == pytest.approx(0.36, rel=1e-11)  # a has twelve digits
    assert schedule(770) == pytest.approx(0.36 * 0.23**0.05, rel=1e-11)
    assert Schedule.parse(schedule.plain(), WHERE) == schedule


def test_schedules_of_equal_forms_are_equal():
    form = {"kind": "power", "a": 0.48, "b": 230, "exponent": 0.05}
    assert Schedule.parse(form, WHERE) == Schedule.parse(dict(form), WHERE)
    assert Schedule.parse(0.1, WHERE) == Schedule.parse({"kind": "constant", "value": 0.1}, WHERE)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (-0.1, ": -0.1 does not fit; give number > 0"),
        (float("inf"), ": inf cannot be computed with; give 0, a number from"),
        (True, ": True does not fit; give a number, or a mapping with a kind: constant, harmonic"),
        ({"a": 1.0}, ": {'a': 1.0} does not fit; give a mapping with a kind: constant, harmonic"),
        (
            {"kind": "harmonics", "a": 1.0},
            ".kind: there is no schedule 'harmonics'; did you mean 'har",
        ),
        ({"kind": "harmonic", "a": 1.0}, ": the key 'c' is missing"),
        ({"kind": "harmonic", "a": 1.0, "c": -1.0}, ".c: -1.0 does not fit; give"),
        ({"kind": "power", "b": 2, "exponent": 1}, ": it has neither a nor start; add one"),
        ({"kind": "power", "b": 2, "exponent": 1, "a": 1, "start": 1}, ": it has both start and a"),
    ],
)
def test_what_is_no_schedule_is_refused(value, message):
    with pytest.raises(ConcordError) as error:
        Schedule.parse(value, WHERE)
    assert str(error.value).startswith(WHERE + message)
