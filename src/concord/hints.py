"""Type hints of options: their parts, bounds, meaning and choices."""

import types
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

SIGNS = {"gt": ">", "ge": ">=", "lt": "<", "le": "<="}
RULES = (*SIGNS, "min_length", "title")  # of a type, as ``msgspec.Meta`` has them


def members(hint: object) -> list[tuple[Any, dict[str, Any]]]:
    """Return a type, or the types of a union, each with its bounds and description.

    hint: a type hint, which may be ``Annotated``.
    """
    rules: dict[str, object] = {}
    if get_origin(hint) is Annotated:
        hint, *notes = get_args(hint)
        for note in notes:
            if isinstance(note, str):
                rules["description"] = note
            else:
                rules |= {n: getattr(note, n) for n in RULES if getattr(note, n) is not None}
    if get_origin(hint) in (Union, types.UnionType):
        return [(o, bounds | rules) for part in get_args(hint) for o, bounds in members(part)]
    return [(hint, rules)]


def tagged_kinds(union: object) -> dict[str, type[msgspec.Struct]]:
    """Return the classes of a union of ``Kind``s, by kind."""
    configs = {one: one.__struct_config__ for one in classes_of_options(union)}
    return {str(config.tag): one for one, config in configs.items() if config.tag_field == "kind"}


def classes_of_options(hint: object) -> list[type[msgspec.Struct]]:
    """Return the classes of ``Options`` that a type hint, perhaps a union, has as members."""
    types_of_hint = [one for one, _ in members(hint) if isinstance(one, type)]
    return [one for one in types_of_hint if issubclass(one, msgspec.Struct)]


def complete(options: object, given: dict[str, Any]) -> dict[str, Any]:
    """Return given options with those that a class needs, an Ellipsis where no value is clear.

    options: the class.
    """
    fields: tuple[Any, ...] = msgspec.structs.fields(options)  # type: ignore[arg-type]
    needed = {f.encode_name: next(iter(choices(f.type)), ...) for f in fields if f.required}
    return {**needed, **given}


def choices(hint: object) -> tuple[object, ...]:
    """Return the values that a type hint lists as ``Literal``; none for other types."""
    return tuple(v for o, _ in members(hint) if get_origin(o) is Literal for v in get_args(o))


def meaning_of(hint: object) -> str:
    """Return the description in an option's type hint, or "" without one."""
    return str(members(hint)[0][1].get("description", ""))
