"""A sweep: the axes of an experiment, their labels and what each merges into a run.

An axis is one of

- ``topology: [complete, ring]``: the axis names a key of the run, and takes these values;
- ``batch: {key: sampler.batch_size, values: [5, 10]}``: the axis sets a nested key;
- ``reading: {published: {...}, corrected: {...}}``: each label merges a mapping into the run.

``overrides`` then adjust the cells they match: ``{when: {topology: complete}, set: {...}}``.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple

from msgspec import Meta

from concord.errors import ConcordError, short
from concord.options import Options, Some, build

Values = Some[bool | int | float | str | None]
LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,59}")


# Of an experiment: to plan so many takes 5 CPU seconds if they are small, else a minute, and that
# grows as their number (docs/speed.md).
MOST_RUNS = 10_000


class Layer(NamedTuple):
    """Settings of a run that one place of a study's files makes, as nested keys and values.

    place: file and key, such as "study.yaml: defaults". below: the key of the run to which what is
    written there belongs, such as "sampler"; "": it is a mapping of the run's keys.
    """

    place: str
    keys: Mapping[str, Any]
    below: str = ""

    def find(self, key: str) -> str | None:
        """Return file and key of a run's dotted key, if it is set here."""
        value: Any = self.keys
        for part in key.split("."):
            if isinstance(value, Mapping) and part in value:
                value = value[part]
            elif part == "kind" and not isinstance(value, Mapping):  # it is a kind, or a number
                key = key.removesuffix(".kind")
            else:
                return None
        if not f".{key}.".startswith(below := f".{self.below}." if self.below else "."):
            return None
        return self.place + f".{key}".removeprefix(below[:-1])


def relocate(message: str, where: str, layers: Sequence[Layer]) -> str:
    """Return a message about a key of a run with the place in the file that set the key last.

    where: the place that the message names. layers: the mappings that a run is made of, in order.
    """
    match = re.match(rf"{re.escape(where)}\.([\w.]*\w)", message)
    if match is not None:
        places = (layer.find(match[1]) for layer in reversed(layers))
        if place := next(filter(None, places), None):
            return place + message[match.end() :]
    return message


def label_text(value: Any) -> str:
    """Return a value as the text that names it in a run's name."""
    return format(value, "g") if isinstance(value, float) else str(value)


class KeyAxis(Options):
    """An axis that sets a key of the run, nested ones with dots, to plain values."""

    key: Annotated[str, Meta(pattern=r"^\w+(\.\w+)*$(?!\n)")]
    values: Values


def cells_of(axis: str, values: Any, where: str) -> list[tuple[str, Layer]]:
    """Return the label of each value of an axis, and the keys that it sets.

    where: file and key of the axis.
    """
    cells = []
    if isinstance(values, Mapping) and values.keys() != {"key", "values"}:
        for label, keys in build(dict[str, dict[str, Any] | None], values, where).items():
            place = f"{where}.{label}"
            cells.append((check_label(label, place), Layer(place, keys or {})))
    else:
        key, place = axis, where
        if isinstance(values, Mapping):
            by_key = build(KeyAxis, values, where)
            key, values, place = by_key.key, by_key.values, f"{where}.values"
        for number, value in enumerate(build(Values, values, place)):
            label = check_label(label_text(value), f"{place}[{number}]")
            cells.append((label, Layer(f"{place}[{number}]", nest(key, value), key)))
    labels = [label for label, _ in cells]
    for label in labels:
        if labels.count(label) > 1:
            raise ConcordError(
                f"{where}: two values have the label {label}, so that their runs would be one; "
                "remove one, or give them labels: {label: {key: value}}"
            )
    return cells


def check_label(label: str, where: str) -> str:
    """Return a label that can name a folder; where: file and key, for the error of another."""
    if not LABEL.fullmatch(label):
        raise ConcordError(
            f"{where}: {short(label)} cannot name a folder; "
            "use letters, digits and . _ + - (at most 60)"
        )
    return label


def nest(key: str, value: Any) -> dict[str, Any]:
    """Return the nested mapping that has a value under a dotted key."""
    for part in reversed(key.split(".")):
        value = {part: value}
    return value


SHORT = {"problem": "name", "topology": "kind"}  # what a text stands for in the place of a mapping


def merge(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """Return a nested mapping ``base`` with ``change`` merged in, mapping by mapping.

    It shares parts with both, which nobody changes in place.
    """
    merged = dict(base)
    for key, value in change.items():
        if isinstance(value, Mapping) and isinstance(merged.get(key), Mapping):
            # Options belong to their kind: those of another kind go with it.
            other = "kind" in value and merged[key].get("kind", value["kind"]) != value["kind"]
            merged[key] = value if other else merge(merged[key], value)
        elif isinstance(value, Mapping) and key in SHORT and isinstance(merged.get(key), str):
            merged[key] = {SHORT[key]: merged[key], **value}
        else:
            merged[key] = value
    return merged
