"""Type hints of options: their parts, bounds, descriptions and choices."""

import types
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec


def members(hint: Any) -> list[tuple[Any, dict[str, Any]]]:
    """Return a type, or the types of a union, each with its bounds and description."""
    rules: dict[str, Any] = {}
    if get_origin(hint) is Annotated:
        hint, *notes = get_args(hint)
        for note in notes:
            if isinstance(note, str):
                rules["description"] = note
            else:
                rules |= {n: getattr(note, n) for n in BOUNDS if getattr(note, n) is not None}
    if get_origin(hint) in (Union, types.UnionType):
        return [(o, own | rules) for part in get_args(hint) for o, own in members(part)]
    return [(hint, rules)]


def tagged_kinds(union: Any) -> dict[str, Any]:
    """Return the classes of a union of ``Kind``s, by kind."""
    return {o.__struct_config__.tag: o for o, _ in members(union) if _has_kind(o)}


def choices(hint: Any) -> tuple[Any, ...]:
    """Return the values that a ``Literal`` type lists; none for other types."""
    return tuple(v for o, _ in members(hint) if get_origin(o) is Literal for v in get_args(o))


BOUNDS = ("gt", "ge", "le", "lt", "min_length", "pattern", "title")


def is_subclass(option: Any, kind: type) -> bool:
    """Return whether an option's type is a subclass of a class."""
    return isinstance(option, type) and issubclass(option, kind)


def _has_kind(option: Any) -> bool:
    """Return whether a type is a class of ``Kind``, which the key ``kind`` chooses."""
    return is_subclass(option, msgspec.Struct) and option.__struct_config__.tag_field == "kind"
