"""Schedules: their values, their YAML forms and what is refused."""

import pytest

from concord.errors import ConcordError
from concord.options import Options, build
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
    assert schedule.constant == (len(set(expected)) == 1)
    assert str(schedule) == text


def test_schedules_of_equal_forms_are_equal():
    form = {"kind": "power", "a": 0.48, "b": 230, "exponent": 0.05}
    assert Schedule.parse(form, WHERE) == Schedule.parse(dict(form), WHERE)
    assert Schedule.parse(0.1, WHERE) == Schedule.parse({"kind": "constant", "value": 0.1}, WHERE)


def test_parsing_does_not_change_its_input():
    form = {"kind": "harmonic", "a": 1.0, "c": 2.0}
    Schedule.parse(form, WHERE)
    assert form == {"kind": "harmonic", "a": 1.0, "c": 2.0}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (-0.1, ": -0.1 is not positive; give a positive number"),
        (0, ": 0 is not positive; give a positive number"),
        (float("inf"), ": inf is not a finite number; give one"),
        (float("nan"), ": nan is not a finite number; give one"),
        (
            True,
            ": True is not a finite number or a mapping with a kind: constant, harmonic, power",
        ),
        (
            "fast",
            ": 'fast' is not a finite number or a mapping with a kind: constant, harmonic, power",
        ),
        ({"a": 1.0}, ": the key 'kind' is missing; add one of constant, harmonic, power"),
        (
            {"kind": "harmonics", "a": 1.0},
            ".kind: there is no schedule 'harmonics'; did you mean 'har",
        ),
        ({"kind": ["power"]}, ".kind: there is no schedule ['power']; "),
        ({"kind": "harmonic", "a": 1.0}, ": the key 'c' is missing"),
        ({"kind": "harmonic", "a": 1.0, "d": 1.0}, ".d: unknown key"),
        ({"kind": "harmonic", "a": 0.0, "c": 1.0}, ".a: 0.0 is "),
        ({"kind": "harmonic", "a": 1.0, "c": -1.0}, ".c: -1.0 is "),
        ({"kind": "power", "a": 1.0, "b": 0, "exponent": 0.5}, ".b: 0"),
        ({"kind": "power", "a": 1.0, "b": 1, "exponent": -0.5}, ".exponent: -0.5 is "),
        ({"kind": "constant", "value": "a"}, ".value: 'a' is "),
        (None, ": None is not a finite number or a mapping with a kind: constant, "),
    ],
)
def test_what_is_no_schedule_is_refused(value, message):
    with pytest.raises(ConcordError) as error:
        Schedule.parse(value, WHERE)
    assert str(error.value).startswith(WHERE + message)


def test_schedule_as_a_parameter():
    class Params(Options):
        step_size: Schedule
        weight: Schedule = Schedule(0.5)
        other: Schedule | None = None

    given = build(Params, {"step_size": {"kind": "harmonic", "a": 1, "c": 1}}, "x")
    assert given.step_size(1) == 0.5
    assert given.weight(7) == 0.5
    assert given.other is None
    with pytest.raises(ConcordError, match=r"^x\.other: -1 is not positive"):
        build(Params, {"step_size": 1, "other": -1}, "x")
