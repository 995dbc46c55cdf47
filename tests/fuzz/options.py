"""Papers with other parts and options: whatever the kinds declare, within what they allow."""

import copy
import typing
from collections.abc import Callable
from typing import Any

import msgspec
from hypothesis import strategies as st
from pieces import tokens

from concord import kinds
from concord.hints import choices, members
from concord.options import Options
from concord.record import Record
from concord.rooms import options_of as options_class
from concord.sampling.schedules import Schedule

FLOATS = (0.0, 0.1, 0.5, 1.0, 3.0, -1.0, 1e-99, 1e-9, 1e9, 1e99)
INTS = (0, 1, 2, 3, 4, 5, 7, 30, 200, -1, 2**40)
NAMES = ("reading", "topology", "agent", "average", "network", "w2", "x", "iteration", "last", "")


def value(draw: Any, hint: Any) -> Any:
    """Return a value of the type that a field declares, mostly one within its bounds."""
    option, rules = draw(st.sampled_from(members(hint)))
    if option is type(None):
        return None
    if typing.get_origin(option) is tuple:
        item = typing.get_args(option)[0]
        return [value(draw, item) for _ in range(draw(st.integers(0, 3)))]
    if choices(option):
        return draw(st.sampled_from(choices(option)))
    if option is Schedule:
        number = draw(st.sampled_from(FLOATS))
        harmonic = {"kind": "harmonic", "a": number, "c": draw(st.sampled_from(FLOATS))}
        return draw(st.sampled_from((number, number, harmonic)))
    if isinstance(option, type) and issubclass(option, Options):
        return options_of(draw, option)
    if option is bool:
        return draw(st.booleans())
    if option in (int, float):
        allowed = [n for n in (INTS if option is int else FLOATS) if _within(n, rules)]
        return draw(st.sampled_from(allowed or INTS))
    words = st.sampled_from(NAMES) | st.sampled_from([t for t in tokens() if isinstance(t, str)])
    if option is str:
        return draw(words)
    return {draw(words): draw(words) for _ in range(draw(st.integers(0, 2)))}


def _within(number: float, rules: typing.Mapping[str, Any]) -> bool:
    above, least, most, below = (rules.get(name) for name in ("gt", "ge", "le", "lt"))
    return not (
        (above is not None and number <= above)
        or (least is not None and number < least)
        or (most is not None and number > most)
        or (below is not None and number >= below)
    )


def options_of(draw: Any, cls: Any) -> dict[str, Any]:
    """Return options for a class: those it needs, and some more."""
    return {
        field.name: value(draw, field.type)
        for field in msgspec.structs.fields(cls)
        if field.required or not draw(st.integers(0, 3))
    }


def part(draw: Any, package: str) -> dict[str, Any]:
    """Return a kind of a package of plug-ins, with options."""
    kind = draw(st.sampled_from(kinds.names(package)))
    return {"kind": kind, **options_of(draw, options_class(kinds.find(package, kind, "test")))}


@st.composite
def configured(draw: Any, source: Callable[[], dict[str, Any]]) -> Any:
    """Return a paper in which some parts are others, or have other options."""
    documents = source()
    document = copy.deepcopy(documents[draw(st.sampled_from(sorted(documents)))])
    (experiment,) = document["experiments"].values()
    if draw(st.booleans()):
        experiment.pop("sweep", None)
        experiment.pop("overrides", None)
    for _ in range(draw(st.integers(1, 3))):
        what = draw(st.sampled_from(WHAT))
        if what in ("agents", "chains", "iterations"):
            experiment[what] = draw(st.integers(1, 7))
        elif what == "sampler":
            experiment["sampler"] = part(draw, "samplers")
        elif what == "problem":
            new = part(draw, "problems")
            if new["kind"] not in ("lenet", "sparse_logistic"):
                small = {"grid": 10} if new["kind"] == "tied_mixture" else {}
                experiment["problem"] = {**new, **small}
        elif what == "topology":
            experiment["topology"] = part(draw, "topologies")
        elif what == "partition":
            experiment["partition"] = part(draw, "partitions")
        elif what == "initial":
            experiment["initial"] = part(draw, "initial")
        elif what == "record":
            experiment["record"] = options_of(draw, Record)
        elif what == "metrics":
            experiment["metrics"] = draw(
                st.lists(st.sampled_from(kinds.names("metrics")), max_size=4, unique=True)
            )
        else:
            new = part(draw, what)
            entry = {"kind": new.pop("kind"), "title": "t", "options": new}
            document[what] = {"other": {**entry, "runs": list(document["experiments"])}}
    return document


WHAT = (
    *("agents", "chains", "iterations", "sampler", "problem", "topology", "partition", "initial"),
    *("record", "metrics", "metrics", "figures", "tables"),
)
