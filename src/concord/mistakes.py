"""Sentences about mistakes in options: what does not fit its type, and what to do."""

from __future__ import annotations

import math
import types
from collections.abc import Iterator, Mapping
from typing import Any, Literal, Protocol, get_args, get_origin, runtime_checkable

import msgspec

from concord.errors import ConcordError, nearest, short
from concord.hints import choices, is_subclass, members, tagged_kinds
from concord.values import HUGEST, TINIEST, is_computable, key_place, parse_self


@runtime_checkable
class _Reads(Protocol):
    """A type that parses its own values, as schedules do."""

    def parse(self, value: Any, where: str) -> Any:
        """Return the object that a plain value stands for; ``where`` is its place for messages."""


def _fits(hint: Any, value: Any) -> bool:
    """Return whether a value converts to a type."""
    try:
        msgspec.convert(value, hint, dec_hook=parse_self)
    except msgspec.ValidationError:
        return False
    return True


_NAMES = {
    int: "an integer",
    float: "a finite number",
    str: "a text",
    bool: "true or false",
    Literal: "a text",
    tuple: "a list",
    dict: "a mapping",
}


def _has_form(option: Any, value: Any) -> bool:
    """Return whether a value has the form of a type, whatever its bounds and parts."""
    shape = get_origin(option) or option
    if isinstance(shape, _Reads):
        return True
    if isinstance(value, bool) or value is None or shape in (bool, types.NoneType):
        return shape is type(value)
    if shape in (int, float):
        return isinstance(value, (int, shape))
    if shape is tuple:
        return isinstance(value, (list, tuple))
    if shape is dict or is_subclass(shape, msgspec.Struct):
        return isinstance(value, Mapping)
    return isinstance(value, str) if shape in (str, Literal) else True


def _prefix_place(where: str, text: str) -> str:
    """Return a sentence that begins with its place, if there is one."""
    return f"{where}: {text}" if where else text


def find_mistake(hint: Any, value: Any, where: str) -> str:
    """Return the sentence about the first part of a value that does not fit its type."""
    options, known = members(hint), tagged_kinds(hint)
    if known and isinstance(value, Mapping) and (len(options) > 1 or "kind" in value):
        if "kind" not in value:
            return _prefix_place(where, f"the key 'kind' is missing; add one of {', '.join(known)}")
        kind = value["kind"]
        if not isinstance(kind, str) or kind not in known:
            place = key_place(where, "kind")
            return f"{place}: there is no kind {short(kind)}; {nearest(kind, known)}"
        return _mistake_within(known[kind], {}, value, where)
    for option, rules in options:
        if _has_form(option, value):
            return _mistake_within(option, rules, value, where)
    shapes = [get_origin(option) or option for option, _ in options]
    names = [_NAMES[shape] for shape in shapes if shape in _NAMES]
    if known:
        names.append(f"a mapping with a kind: {', '.join(known)}")
    elif any(is_subclass(shape, msgspec.Struct) for shape in shapes):
        names.append("a mapping of option names to values")
    wanted = " or ".join(dict.fromkeys(names))
    if shapes[0] is tuple:
        wanted += "; write it as [a, b, ...]"
    elif shapes[0] is dict:
        keys = [key for hint in get_args(options[0][0])[:1] for key in choices(hint)]
        wanted += f"; write it as {{{next(iter(keys), 'key')}: value}}"
    return _prefix_place(where, f"{short(value)} is not {wanted}")


def _mistake_within(shape: Any, rules: Mapping[str, Any], value: Any, where: str) -> str:
    """Return the sentence about a value whose form fits its type, but not its parts or bounds."""
    parts: list[tuple[Any, Any, str]] = []
    arguments = get_args(shape)
    if is_subclass(shape, msgspec.Struct):
        fields = {field.encode_name: field for field in msgspec.structs.fields(shape)}
        known = {*fields, shape.__struct_config__.tag_field}
        for key in value:
            if shape.__struct_config__.forbid_unknown_fields and key not in known:
                return f"{key_place(where, key)}: unknown key; {nearest(key, fields)}"
        for name, field in fields.items():
            if field.required and name not in value:
                meaning = members(field.type)[0][1].get("description", "see config/README.md")
                return _prefix_place(where, f"the key {name!r} is missing; add it ({meaning})")
        parts = [(f.type, value[n], key_place(where, n)) for n, f in fields.items() if n in value]
    elif get_origin(shape) is tuple:
        fixed = arguments[-1] is not Ellipsis
        least = len(arguments) if fixed else rules.get("min_length", 0)
        if len(value) < least or (fixed and len(value) > least):
            given = f"{short(value)} has {len(value)} entries"
            return _prefix_place(where, f"{given}; give {least}{'' if fixed else ' or more'}")
        parts = [
            (arguments[i if fixed else 0], item, f"{where}[{i}]") for i, item in enumerate(value)
        ]
    elif get_origin(shape) is dict:
        if len(value) < rules.get("min_length", 0):
            return _prefix_place(where, "it is empty; give 1 entry or more")
        wanted = members(arguments[0])[0][1].get("title", "id; use letters, digits and _")
        for key in value:
            if not isinstance(key, str):
                return _prefix_place(where, f"the key {short(key)} is not a text; put it in quotes")
            if listed := choices(arguments[0]):
                if key not in listed:
                    return f"{key_place(where, key)}: unknown key; {nearest(key, listed)}"
            elif not _fits(arguments[0], key):
                return _prefix_place(where, f"{short(key)} is no {wanted}")
        parts = [(arguments[1], item, key_place(where, key)) for key, item in value.items()]
    elif isinstance(shape, _Reads):
        try:
            shape.parse(value, where)
        except ConcordError as error:
            return str(error)
    for hint, part, place in parts:
        if not _fits(hint, part):
            return find_mistake(hint, part, place)
    if get_origin(shape) is Literal:
        return _prefix_place(
            where, f"{short(value)} is not allowed; {nearest(value, map(str, arguments))}"
        )
    return next(number_mistakes(value, where, integer=shape is int), None) or _prefix_place(
        where, _out_of_bounds(value, rules)
    )


def _out_of_bounds(value: Any, rules: Mapping[str, Any]) -> str:
    """Return the sentence about a value that breaks bounds. "" if it keeps all."""
    match rules:
        case {"gt": 0} if not value > 0:
            return f"{value!r} is not positive; give a positive number"
        case {"ge": 1} if isinstance(value, int) and value < 1:
            return f"{value!r} is not a positive integer; give 1 or more"
        case {"ge": least} if value < least:
            return f"{value!r} is below {least}; give {least} or more"
        case {"le": most} if value > most:
            return f"{value!r} is above {most}; give {most} or less"
        case {"lt": end} if value >= end:
            return f"{value!r} is not below {end}; give a smaller number"
        case {"pattern": _, "title": wanted}:
            return f"{short(value)} is not {wanted}"
        case {"pattern": pattern}:
            return f"{short(value)} does not match {pattern}; give a text that does"
    return f"{short(value)} does not fit; see config/README.md"


def number_mistakes(value: Any, where: str, integer: bool = True) -> Iterator[str]:
    """Yield a sentence about each number in plain data that is not finite, too large or small."""
    if is_computable(value):
        return
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from number_mistakes(item, key_place(where, key))
    elif isinstance(value, (list, tuple)):
        for number, item in enumerate(value):
            yield from number_mistakes(item, f"{where}[{number}]")
    elif isinstance(value, int):
        large = "is too large; give a number below 2^63" if integer else "is not a finite number"
        yield _prefix_place(where, f"{short(value)} {large}")
    elif not math.isfinite(value):
        yield _prefix_place(where, f"{value} is not a finite number; give one")
    else:
        size = "large" if abs(value) > 1 else "small"
        yield _prefix_place(
            where,
            f"{short(value)} is too {size} to compute with; give 0, or a number from {TINIEST:g} "
            f"to {HUGEST:g}",
        )
