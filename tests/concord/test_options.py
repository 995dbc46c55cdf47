"""Options: what fits is built, what does not is told in one sentence."""

from typing import Annotated, Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from concord.arguments import ChosenSampler
from concord.errors import ConcordError, nearest
from concord.minibatches import Batches
from concord.options import Count, Kind, Options, Positive, Share, Some, build, plain
from concord.samplers.de_sgld import DESGLD
from concord.sampling.schedules import Schedule

WHERE = "config/papers/x.yaml: experiments.linear.sampler"


class Inner(Options):
    high: Annotated[Positive, "upper end"]
    low: Annotated[float, "lower end"] = 0.0


class Plain(Kind):
    pass


class WithSize(Kind):
    size: Annotated[Count, "size"]


class Several(Options):
    step_size: Annotated[Schedule, "step size"]
    count: Annotated[Count, "number"] = 1
    share: Annotated[Share, "share"] = 0.5
    order: Annotated[Literal["old", "new"], "order"] = "old"
    flag: Annotated[bool, "flag"] = False
    batch_size: Annotated[Count | None, "batch"] = None
    sizes: Annotated[Some[Annotated[int, Meta(ge=2)]] | None, "sizes"] = None
    limits: Annotated[tuple[float, float] | None, "[low, high]"] = None
    either: Annotated[int | str, "either"] = 1
    inner: Annotated[Inner | None, "inner"] = None
    free: Annotated[Any, "anything"] = None
    table: Annotated[dict[str, Any] | None, "table"] = None
    inners: Annotated[dict[str, Inner] | None, "inners"] = None
    way: Annotated[Plain | WithSize, "way"] = Plain()


def parse(**mapping):
    return build(Several, {"step_size": 0.1, **mapping}, WHERE)


def test_defaults_fill_what_is_absent():
    assert parse() == Several(step_size=Schedule(0.1))


def test_values_are_converted_to_what_is_declared():
    options = parse(
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
    assert options.step_size == Schedule(1.0, c=2.0)
    assert (options.share, type(options.share)) == (1.0, float)
    assert options.sizes == (2, 3)
    assert options.inner == Inner(2.0, 0.0)
    assert options.either == "two" and options.table == {"a": 1}


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"cuont": 3}, ".cuont: unknown key; did you mean 'count'?"),
        ({"xyz": 3}, ".xyz: unknown key; choose one of batch_size, count, either"),
        ({3: 3}, ": the key 3 does not fit; give text"),
        ({"count": 0}, ".count: 0 does not fit; give integer >= 1"),
        ({"count": "3"}, ".count: '3' is a text; give the number 3 (integer >= 1)"),
        ({"count": 2**63}, ".count: 9223372036854775808 cannot be computed with; give 0, a"),
        ({"share": float("nan")}, ".share: nan does not fit; give number >= 0"),
        ({"share": 10**400}, f".share: 1{'0' * 56}... does not fit; give number"),
        ({"share": 1e-200}, ".share: 1e-200 cannot be computed with; give 0, a number from 1e-100"),
        ({"order": "nwe"}, ".order: 'nwe' is not allowed; did you mean 'new'?"),
        ({"order": 1}, ".order: 1 does not fit; give old | new"),
        ({"order": "x" * 999}, f".order: '{'x' * 56}... is not allowed; choose one of"),
        ({"flag": 1}, ".flag: 1 does not fit; give true or false"),
        ({"sizes": [2, 1]}, ".sizes[1]: 1 does not fit; give integer >= 2"),
        ({"sizes": []}, ".sizes: [] does not fit; give list of integer >= 2 (at least 1) or none"),
        ({"limits": [1, "a"]}, ".limits[1]: 'a' does not fit; give number"),
        ({"either": 1.5}, ".either: 1.5 does not fit; give integer or text"),
        ({"inner": {}}, ".inner: the key 'high' is missing; add it (upper end)"),
        ({"inner": {"hihg": 1}}, ".inner.hihg: unknown key; did you mean 'high'?"),
        ({"inner": [1]}, ".inner: [1] does not fit; give mapping of high, low or none"),
        ({"inners": {"a": {"high": 1}, "b": {"high": -1}}}, ".inners.b.high: -1 does not fit"),
        ({"inners": {3: {"high": 1}}}, ".inners: the key 3 does not fit; give text"),
        ({"step_size": -1}, ".step_size: -1 does not fit; give number > 0"),
        ({"step_size": {"kind": "harmonics"}}, ".step_size.kind: there is no schedule 'harmonics'"),
        ({"step_size": {"kind": "harmonic", "b": 1}}, ".step_size.b: unknown key; choose"),
        ({"way": {"kind": "plian"}}, ".way.kind: 'plian' is not allowed; did you mean 'plain'?"),
        ({"way": {}}, ".way: the key 'kind' is missing; add it (plain | with_size)"),
        ({"way": 3}, ".way: 3 does not fit; give a mapping with a kind: plain, with_size"),
        ({"way": {"kind": "with_size", "size": 0}}, ".way.size: 0 does not fit; give integer"),
        ({"free": [1, {"a": float("nan")}]}, ".free[1].a: nan cannot be computed with; give 0"),
    ],
)
def test_what_does_not_fit_is_refused_with_file_key_value_and_remedy(mapping, message):
    with pytest.raises(ConcordError) as caught:
        build(Several, {"step_size": 0.1, **mapping}, WHERE)
    assert str(caught.value).startswith(WHERE + message)
    assert "\n" not in str(caught.value)


def test_a_missing_key_says_what_it_means():
    for nothing in ({}, None):
        with pytest.raises(ConcordError, match=r"sampler: the key 'step_size' is missing; .*step"):
            build(Several, nothing, WHERE)


yaml_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-3, 9), st.floats(), st.text(max_size=4)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=5,
)
keys = st.one_of(st.sampled_from(list(Several.__struct_fields__)), st.text(max_size=4))


@given(st.dictionaries(keys, yaml_values, max_size=4))
def test_any_yaml_is_built_or_told_in_one_sentence(mapping):
    """Nothing else is ever raised, and what is built fits its declaration."""
    try:
        options = build(Several, mapping, WHERE)
    except ConcordError as error:
        assert str(error).startswith(WHERE) and "\n" not in str(error)
        return
    assert isinstance(options.count, int) and options.count >= 1
    assert isinstance(options.share, float) and 0 <= options.share <= 1
    assert options.order in ("old", "new") and isinstance(options.flag, bool)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": -3}, "batch_size: -3 does not fit; give integer >= 1"),
        ({"batchsize": 3}, "batchsize: unknown key; did you mean 'batch_size'?"),
        (
            {"step_size": {"kind": "power", "a": 1}},
            "step_size: the key 'b' is missing; add it (off",
        ),
    ],
)
def test_python_is_refused_with_the_sentence_of_a_file(options, message):
    mapping = {"step_size": 0.1, **options}
    with pytest.raises(ConcordError) as from_python:
        DESGLD(**mapping)
    with pytest.raises(ConcordError) as from_file:
        build(DESGLD, mapping, WHERE)
    assert str(from_python.value).startswith(message)
    assert str(from_file.value) == f"{WHERE}.{from_python.value}"


def test_python_is_read_as_a_file_is():
    sampler = DESGLD(step_size=0.01)
    assert sampler.step_size == Schedule(0.01) and sampler == DESGLD(Schedule(0.01))
    assert Several(0.1, inner={"high": 2}).inner == Inner(high=2.0) == Inner(2.0)
    assert DESGLD(np.float64(0.5)) == DESGLD(0.5)
    assert Batches(batch_size=np.int64(3)) == Batches(batch_size=3)
    with pytest.raises(ConcordError, match="DESGLD: it takes step_size, weights in order"):
        DESGLD(0.1, "metropolis", 5)  # a batch_size without its name
    for wrong in ({"a": 1}, {"a": 1, "step_size": 2}):
        with pytest.raises(ConcordError):
            DESGLD(0.1, **wrong)
    with pytest.raises(ConcordError, match=r"^the key 'step_size' is missing; add it \(step size"):
        DESGLD()


def test_a_type_says_in_its_own_words_what_its_texts_are():
    letters = Annotated[str, Meta(pattern="^[a-z]+$", title="small letters")]
    for value, place in (({"a": "X"}, "here.a: 'X'"), ({"A": "x"}, "here: the key 'A'")):
        with pytest.raises(ConcordError) as caught:
            build(dict[letters, letters], value, "here")
        assert str(caught.value) == f"{place} does not fit; give small letters"


def test_options_are_written_out_as_plain_data_that_is_read_again():
    options = parse(step_size={"kind": "harmonic", "a": 1, "c": 2}, limits=(1, 2), way=WithSize(3))
    written = plain(options)
    assert written["step_size"] == {"kind": "harmonic", "a": 1.0, "c": 2.0}
    assert written["limits"] == [1.0, 2.0] and written["way"] == {"kind": "with_size", "size": 3}
    assert list(written) == list(Several.__struct_fields__) and build(Several, written) == options


def test_nearest_suggests_or_lists():
    assert nearest("rnig", ["ring", "star"]) == "did you mean 'ring'?"
    assert nearest("w3", ["bias2", "w2"]) == "did you mean 'w2'?"
    assert nearest("zzz", ["star", "ring"]) == "choose one of ring, star"
    assert nearest("zzz", []) == "there are none to choose from"
    many = nearest("zzz", [f"run{i:02}" for i in range(40)])
    assert many.startswith("choose one of run00, run01,") and many.endswith("... (40 in all)")


def test_a_mapping_without_a_kind_is_told_which_there_are():
    with pytest.raises(ConcordError, match=r"study: .* does not fit; give a mapping with a kind: "):
        ChosenSampler.parse({"step_size": 0.1}, "study")
