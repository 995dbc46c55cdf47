"""Sentences about options and types: what a type takes, and what of a value does not fit it."""

import re
import types
from typing import Any, Literal, get_args, get_origin

import msgspec

from concord.errors import nearest, short
from concord.hints import (
    SIGNS,
    choices,
    classes_of_options,
    complete,
    meaning_of,
    members,
    tagged_kinds,
)
from concord.values import HUGEST, PLAIN, TINIEST, is_computable, parse_self, place_of_key

NAMES = {
    **{float: "number", int: "integer", str: "text", bool: "true or false", dict: "mapping"},
    types.NoneType: "none",
}


def describe_type(hint: object) -> str:
    """Describe the values that a type takes in words, such as "integer >= 1 or none".

    hint: the type.
    """
    words = []
    for option, rules in members(hint):
        shape, arguments = get_origin(option) or option, get_args(option)
        if "title" in rules:
            word = str(rules["title"])
        elif shape is Literal:
            word = " | ".join(map(str, arguments))
        elif shape is dict and arguments and choices(arguments[0]):
            word = f"mapping of {' to '.join(map(describe_type, arguments))}"
        elif shape is tuple and Ellipsis in arguments:
            word = f"list of {describe_type(arguments[0])}"
        elif shape is tuple:
            word = f"[{', '.join(map(describe_type, arguments))}]"
        elif isinstance(shape, type) and issubclass(shape, msgspec.Struct):
            keys = [f"kind: {kind}" for kind in tagged_kinds(shape)]
            keys += [field.encode_name for field in msgspec.structs.fields(shape)]
            word = f"mapping of {', '.join(keys)}"
        elif hasattr(shape, "room"):
            word = f"a kind of {shape.room}"
        else:
            word = NAMES.get(shape, getattr(shape, "__name__", str(shape)).lower())
        bounds = [f"{sign} {rules[bound]:.9g}" for bound, sign in SIGNS.items() if bound in rules]
        if bounds:
            word += f" {' and '.join(bounds)}"
        if "min_length" in rules:
            word += f" (at least {rules['min_length']})"
        words.append(word)
    return " or ".join(dict.fromkeys(words))


def describe_mistake(error: msgspec.ValidationError, hint: object, value: Any, where: str) -> str:
    """Return msgspec's error as a sentence: the place, what does not fit, and the remedy.

    hint, value: the type, and the plain value that does not convert to it. where: its place.
    """
    parse_error = str(error.__cause__ or "")  # of a class that parses itself
    text = parse_error or str(error).partition(" - at `")[0]
    path = str(error).removeprefix(text)
    hint, value, where = _follow(path, hint, value, where)
    if parse_error:
        return (where + parse_error[1:]).lstrip(".: ") if parse_error[0] == "$" else parse_error
    at = f"{where}: " if where else ""
    if " field `" in text:
        key, types = text.split("`")[1], _types_of_keys(hint, value)
        if "unknown" in text:
            if untyped := describe_untyped(hint, key):
                return f"{at}{untyped}"
            return f"{place_of_key(where, key)}: unknown key; {nearest(key, types)}"
        meaning = meaning_of(types[key]) or describe_type(types[key])
        values = ", ".join(map(repr, choices(types[key])))
        if values and meaning != describe_type(types[key]):
            return f"{at}the key {key!r} is missing; give one of {values} ({meaning})"
        return f"{at}the key {key!r} is missing; add it ({meaning})"
    if "`key`" in path:
        hint = next(iter(_parts(hint, dict)), str)
        value = next(key for key in value if not _fits(hint, key))
        at += "the key "
    if text.startswith("Invalid"):
        return f"{at}{short(value)} is not allowed; {nearest(value, map(str, choices(hint)))}"
    kinds = ", ".join(tagged_kinds(hint))
    wish = f"a mapping with a kind: {kinds}" if kinds else describe_type(hint)
    example = _example(hint, value)
    if example and parse_number(value) is not None:
        return f"{at}{short(value)} is a text; give the number {example} ({wish})"
    wish += f", such as {example}" if example else ""
    return f"{at}{short(value)} does not fit; give {wish}"


def describe_untyped(kind: object, key: str) -> str:
    """Return the sentence about an attribute of a class that lacks a type; "" if it is none."""
    kind = kind if isinstance(kind, type) else type(kind)
    value = getattr(kind, key, None)
    if type(value) not in PLAIN or value is None or hasattr(kind.__base__, key):
        return ""
    return (
        f"{kind.__name__}.{key} has no type, so that it is no option; write "
        f"{key}: {type(value).__name__} = {value!r}"
    )


def parse_number(value: object) -> int | float | None:
    """Return the number that a text stands for; None if it is none."""
    try:
        number = float(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return int(number) if number is not None and number.is_integer() else number


def suggest_value(options: type[msgspec.Struct], key: str, value: object) -> str:
    """Return a value of an option as it is written: the caller's if it fits, or what is meant."""
    (hint,) = (each.type for each in msgspec.structs.fields(options) if each.name == key)
    return written(value) if _fits(hint, value) else _example(hint, value) or "..."


def _example(hint: object, value: object) -> str:
    """Return a value of a type, as it is written, that a caller may have meant; "" for none.

    value: what the caller gave, which may be an integer as a float, the option that a mapping needs
    (2000 for ``{"gradients": 2000}``), or the name of a kind.
    """
    meant: list[object] = [int(value)] if isinstance(value, float) and value.is_integer() else []
    if (number := parse_number(value)) is not None:
        meant.append(number)
    for one in classes_of_options(hint):
        tag = one.__struct_config__.tag
        kind = {"kind": tag} if tagged_kinds(hint) else {}
        if kind and tag == value:
            return written({**kind, **complete(one, {})})
        names = [field.encode_name for field in msgspec.structs.fields(one)]
        meant += [{**kind, **complete(one, {name: value})} for name in names]
    meant += [{key: value} for key in choices(next(iter(_parts(hint, dict)), None))]
    return next((written(each) for each in meant if _fits(hint, each)), "")


def written(value: object) -> str:
    """Return an example as it is written, with ... for what is left to the reader; "" if long."""
    text = repr(value).replace("Ellipsis", "...")
    return text if len(text) <= 100 else ""


def _follow(path: str, hint: object, value: Any, where: str) -> tuple[Any, Any, str]:
    """Return the type, the value and the place of a part of a value.

    hint, value, where: of the whole. path: of the part, as msgspec writes it: ``$.a[0]``, or
    ``$[...]`` for a key it does not name.
    """
    for name, number in re.findall(r"\.(\w+)|\[(\d+|\.\.\.)\]", path):
        if name:
            hint, value = _types_of_keys(hint, value)[name], value[name]
            where = place_of_key(where, name)
        elif number == "...":
            _, hint = _parts(hint, dict)
            key, value = next(item for item in value.items() if not _fits(hint, item[1]))
            where = place_of_key(where, key)
        else:
            parts = _parts(hint, tuple)
            hint = parts[0 if Ellipsis in parts else int(number)]
            value, where = value[int(number)], f"{where}[{number}]"
    return hint, value, where


def describe_number(value: Any, where: str) -> str:
    """Return the sentence about the first number in plain data that cannot be computed with."""
    if isinstance(value, (int, float)):
        at = f"{where}: " if where else ""
        return (
            f"{at}{short(value)} cannot be computed with; give 0, a number from {TINIEST:g} to "
            f"{HUGEST:g}, or an integer below 2^63"
        )
    keyed = isinstance(value, dict)
    entries = value.items() if keyed else enumerate(value)
    key, entry = next(entry for entry in entries if not is_computable(entry[1]))
    return describe_number(entry, place_of_key(where, key) if keyed else f"{where}[{key}]")


def _fits(hint: object, value: object) -> bool:
    """Return whether a plain value converts to the type of a hint."""
    try:
        msgspec.convert(value, hint, dec_hook=parse_self)
    except msgspec.ValidationError:
        return False
    return True


def _types_of_keys(hint: object, value: Any) -> dict[str, object]:
    """Return the types of the keys that a mapping of options may have, by key.

    hint: the type of the mapping. value: the mapping, which may choose a kind.
    """
    kinds = tagged_kinds(hint)
    types: dict[str, object] = {"kind": Literal[tuple(kinds)]} if kinds else {}
    for one in classes_of_options(hint):
        if not kinds or one.__struct_config__.tag == value.get("kind"):
            types |= {field.encode_name: field.type for field in msgspec.structs.fields(one)}
    return types


def _parts(hint: object, origin: type) -> tuple[object, ...]:
    """Return the types of a tuple's entries, or of a dict's keys and values. () if it has none.

    hint: the type, or a union. origin: tuple or dict.
    """
    return next((get_args(one) for one, _ in members(hint) if get_origin(one) is origin), ())
