"""Strict parameters: what fits is built, what does not is told in one sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concord.errors import ConcordError, nearest, short
from concord.options import build, param
from concord.sampling.schedules import Schedule

WHERE = "config/papers/x.yaml: experiments.linear.sampler"


@dataclass(frozen=True)
class Inner:
    high: float = param("upper end", above=0)
    low: float = param("lower end", default=0.0)


@dataclass(frozen=True)
class Options:
    step_size: Schedule = param("step size")
    count: int = param("number", default=1, minimum=1)
    share: float = param("share", default=0.5, minimum=0, maximum=1)
    order: str = param("order", default="old", choices=("old", "new"))
    flag: bool = param("flag", default=False)
    batch_size: int | None = param("batch", default=None, minimum=1)
    sizes: tuple[int, ...] = param("sizes", default=(), minimum=2, shortest=1)
    limits: tuple[float, ...] | None = param("[low, high]", default=None, length=2)
    either: int | str = param("either", default=1)
    inner: Inner | None = param("inner", default=None)
    free: Any = param("anything", default=None)
    table: dict[str, Any] | None = param("table", default=None)


def parse(**mapping):
    return build(Options, {"step_size": 0.1, **mapping}, WHERE)


def test_defaults_fill_what_is_absent():
    assert parse() == Options(step_size=Schedule(0.1))


def test_values_are_converted_to_what_is_declared():
    found = parse(
        step_size={"kind": "harmonic", "a": 1, "c": 2},
        count=3,
        share=1,
        order="new",
        flag=True,
        batch_size=5,
        sizes=[2, 3],
        either="two",
        inner={"high": 2},
        free=[1, {"a": None}],
        table={"a": 1},
    )
    assert found.step_size == Schedule(1.0, c=2.0)
    assert (found.share, type(found.share)) == (1.0, float)
    assert found.sizes == (2, 3)
    assert found.inner == Inner(2.0, 0.0)
    assert found.either == "two" and found.table == {"a": 1}


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"cuont": 3}, ".cuont: unknown key; did you mean 'count'?"),
        ({"xyz": 3}, ".xyz: unknown key; choose one of batch_size, count, either"),
        ({3: 3}, ".3: unknown key; choose one of"),
        ({"a\nb": 3}, ".'a\\nb': unknown key; choose one of"),
        ({"count": 0}, ".count: 0 is not a positive integer; give 1 or more"),
        ({"count": -2}, ".count: -2 is not a positive integer; give 1 or more"),
        ({"count": 2.0}, ".count: 2.0 is not an integer"),
        ({"count": "3"}, ".count: '3' is not an integer"),
        ({"count": True}, ".count: True is not an integer"),
        ({"count": None}, ".count: None is not an integer"),
        ({"share": 1.5}, ".share: 1.5 is above 1; give 1 or less"),
        ({"share": -0.1}, ".share: -0.1 is below 0; give 0 or more"),
        ({"share": float("nan")}, ".share: nan is not a finite number"),
        ({"share": float("inf")}, ".share: inf is not a finite number"),
        ({"share": "1e-4"}, ".share: '1e-4' is not a finite number (YAML reads 1e-4 as text: "),
        ({"share": "half"}, ".share: 'half' is not a finite number"),
        ({"share": False}, ".share: False is not a finite number"),
        ({"order": "nwe"}, ".order: 'nwe' is not allowed; did you mean 'new'?"),
        ({"order": 1}, ".order: 1 is not a text"),
        ({"flag": 1}, ".flag: 1 is not true or false"),
        ({"flag": "yes"}, ".flag: 'yes' is not true or false"),
        ({"batch_size": 0}, ".batch_size: 0 is not a positive integer"),
        ({"sizes": [2, 1]}, ".sizes[1]: 1 is below 2; give 2 or more"),
        ({"sizes": []}, ".sizes: [] has 0 entries; give 1 or more"),
        ({"limits": [1]}, ".limits: [1] has 1 entries; give 2"),
        ({"count": 2**63}, ".count: 9223372036854775808 is too large; give a number below 2^63"),
        ({"share": 10**400}, f".share: 1{'0' * 56}... is not a finite number"),
        ({"order": True}, ".order: True is not a text (YAML reads yes, no, on and off as true"),
        ({"count": "010"}, ".count: '010' is not an integer (write it without quotes, "),
        ({"order": "x" * 999}, f".order: '{'x' * 56}... is not allowed; choose one of"),
        ({"sizes": 2}, ".sizes: 2 is not a list; write it as [a, b, ...]"),
        ({"sizes": [2, "a"]}, ".sizes[1]: 'a' is not an integer"),
        ({"either": 1.5}, ".either: 1.5 is not an integer"),
        ({"inner": {}}, ".inner: the key 'high' is missing; add it (upper end)"),
        ({"inner": {"high": 0}}, ".inner.high: 0.0 is not positive; give a positive number"),
        ({"inner": {"hihg": 1}}, ".inner.hihg: unknown key; did you mean 'high'?"),
        ({"inner": [1]}, ".inner: [1] is not a mapping of option names to values"),
        ({"step_size": -1}, ".step_size: -1 is not positive; give a positive number"),
        ({"step_size": {"kind": "harmonics"}}, ".step_size.kind: 'harmonics' is not a schedule; "),
        ({"table": [1]}, ".table: [1] is not a mapping"),
    ],
)
def test_what_does_not_fit_is_told_with_file_key_value_and_remedy(mapping, message):
    with pytest.raises(ConcordError) as caught:
        build(Options, {"step_size": 0.1, **mapping}, WHERE)
    assert str(caught.value).startswith(WHERE + message)
    assert "\n" not in str(caught.value)


def test_a_missing_key_says_what_it_means():
    with pytest.raises(ConcordError, match=r"sampler: the key 'step_size' is missing; .*step size"):
        build(Options, {}, WHERE)
    with pytest.raises(ConcordError, match=r"'step_size' is missing"):
        build(Options, None, WHERE)


@pytest.mark.parametrize("mapping", [[1, 2], "text", 3])
def test_what_is_no_mapping_is_refused(mapping):
    with pytest.raises(ConcordError, match=r"is not a mapping of option names to values"):
        build(Options, mapping, WHERE)


yaml_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-3, 9), st.floats(), st.text(max_size=4)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=5,
)
keys = st.one_of(st.sampled_from(list(Options.__dataclass_fields__)), st.text(max_size=4))


@given(st.dictionaries(keys, yaml_values, max_size=4))
def test_any_yaml_is_built_or_told_in_one_sentence(mapping):
    """Nothing else is ever raised, and what is built fits its declaration."""
    try:
        found = build(Options, mapping, WHERE)
    except ConcordError as error:
        assert str(error).startswith(WHERE) and "\n" not in str(error)
        return
    assert isinstance(found.count, int) and found.count >= 1
    assert isinstance(found.share, float) and 0 <= found.share <= 1
    assert found.order in ("old", "new") and isinstance(found.flag, bool)


def test_mutable_defaults_are_refused():
    with pytest.raises(TypeError):
        param("list", default=[])


def test_nearest_suggests_or_lists():
    assert nearest("rnig", ["ring", "star"]) == "did you mean 'ring'?"
    assert nearest("zzz", ["star", "ring"]) == "choose one of ring, star"
    assert nearest("zzz", []) == "there are none to choose from"
    many = nearest("zzz", [f"run{i:02}" for i in range(40)])
    assert many.startswith("choose one of run00, run01,") and many.endswith("... (40 in all)")


def test_short_cuts_long_values():
    assert short("a" * 100) == "'" + "a" * 56 + "..."
    assert short(3) == "3"
