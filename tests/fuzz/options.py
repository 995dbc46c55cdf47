"""Papers with other parts and options: whatever the kinds declare, within what they allow."""

from __future__ import annotations

import copy
import dataclasses
import types
import typing
from collections.abc import Callable
from typing import Any, Union

from hypothesis import strategies as st
from pieces import tokens

from concord.networks import topology
from concord.plugins import NOT_KINDS, kinds, plugin
from concord.sampling import initial, partition
from concord.sampling.recorder import Record
from concord.sampling.schedules import Schedule

FLOATS = (0.0, 0.1, 0.5, 1.0, 3.0, -1.0, 1e-99, 1e-9, 1e9, 1e99)
INTS = (0, 1, 2, 3, 4, 5, 7, 30, 200, -1, 2**40)
NAMES = ("reading", "topology", "agent", "average", "network", "w2", "x", "iteration", "last", "")


def value(draw: Any, hint: Any, metadata: typing.Mapping[str, Any]) -> Any:
    """Return a value of the type that a field declares, mostly one within its constraints."""
    options = [o for o in typing.get_args(hint) if o is not type(None)]
    if typing.get_origin(hint) in (Union, types.UnionType):
        chosen = draw(st.sampled_from([*options, None] if len(options) == 1 else options))
        return None if chosen is None else value(draw, chosen, metadata)
    if typing.get_origin(hint) is tuple:
        return [value(draw, options[0], metadata) for _ in range(draw(st.integers(0, 3)))]
    if metadata.get("choices"):
        return draw(st.sampled_from(metadata["choices"]))
    if hint is Schedule:
        number = draw(st.sampled_from(FLOATS))
        harmonic = {"kind": "harmonic", "a": number, "c": draw(st.sampled_from(FLOATS))}
        return draw(st.sampled_from((number, number, harmonic)))
    if dataclasses.is_dataclass(hint):
        return options_of(draw, hint)
    if hint is bool:
        return draw(st.booleans())
    if hint in (int, float):
        allowed = [n for n in (INTS if hint is int else FLOATS) if _within(n, metadata)]
        return draw(st.sampled_from(allowed or INTS))
    words = st.sampled_from(NAMES) | st.sampled_from([t for t in tokens() if isinstance(t, str)])
    if hint is str:
        return draw(words)
    return {draw(words): draw(words) for _ in range(draw(st.integers(0, 2)))}


def _within(number: float, metadata: typing.Mapping[str, Any]) -> bool:
    above, least, most = (metadata.get(name) for name in ("above", "minimum", "maximum"))
    return not (
        (above is not None and number <= above)
        or (least is not None and number < least)
        or (most is not None and number > most)
    )


def options_of(draw: Any, cls: Any) -> dict[str, Any]:
    """Return options for a dataclass of ``param`` fields: those it needs, and some more."""
    hints = typing.get_type_hints(cls)
    found = {}
    for field in dataclasses.fields(cls):
        needed = field.default is dataclasses.MISSING
        if needed or not draw(st.integers(0, 3)):
            found[field.name] = value(draw, hints[field.name], field.metadata)
    return found


def part(draw: Any, package: str) -> dict[str, Any]:
    """Return a kind of a package of plug-ins, with options."""
    names = [k for k in kinds(package) if k not in NOT_KINDS.get(package, ())]
    kind = draw(st.sampled_from(names))
    return {"kind": kind, **options_of(draw, plugin(package, kind, "test").Params)}


def law(draw: Any, kinds_of: dict[str, Any]) -> dict[str, Any]:
    kind = draw(st.sampled_from(sorted(kinds_of)))
    return {"kind": kind, **options_of(draw, kinds_of[kind])}


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
            experiment["topology"] = law(draw, {k: v[0] for k, v in topology._KINDS.items()})
        elif what == "partition":
            experiment["partition"] = law(draw, partition._KINDS)
        elif what == "initial":
            experiment["initial"] = law(draw, initial.KINDS)
        elif what == "record":
            experiment["record"] = options_of(draw, Record)
        elif what == "metrics":
            experiment["metrics"] = draw(
                st.lists(st.sampled_from(kinds("metrics")), max_size=4, unique=True)
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
