"""Options: typed once, checked by msgspec; one sentence refuses a value that does not fit.

Every kind of sampler, problem, topology, figure and so on declares its options as a class:

    class Params(Options):
        friction: Annotated[Positive, "friction gamma"]
        batch_size: Annotated[Count | None, "points per mini-batch; none: all"] = None

The text says what an option means, with its symbol in the paper where there is one.

``build`` makes one from what YAML holds, and so does the class itself, called in Python. Whatever
does not fit raises a ``ConcordError`` with file, key, value and remedy. The schemas that editors
read are generated from the same classes (``concord_studies.configuration.schema``).
"""

from __future__ import annotations

import math
import re
import types
from collections.abc import Iterator, Mapping
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    Protocol,
    Self,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    runtime_checkable,
)

import msgspec
import numpy as np
from msgspec import Meta

from concord.errors import ConcordError, nearest, short
from concord.kinds import find, names
from concord.rooms import ROOMS, options_of

T = TypeVar("T")

LARGEST = 2**63  # what arrays and trace files can hold
_PLAIN = frozenset({str, int, float, bool, type(None)})  # types of values that are plain data
TINIEST, HUGEST = 1e-100, 1e100  # squares and cubes of these are numbers still

Positive = Annotated[float, Meta(gt=0)]
NonNegative = Annotated[float, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]
Count = Annotated[int, Meta(ge=1)]
Index = Annotated[int, Meta(ge=0)]
Label = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,59}$(?!\n)")]
Some = Annotated[tuple[T, ...], Meta(min_length=1)]


class NamesLabel(str):
    """The description of an option that names a label or parameter of the runs shown."""


class NamesRuns(str):
    """The description of an option that selects runs by labels, {label: value or [values]}."""


class NamesIterations(str):
    """The description of an option that names iterations recorded by the runs shown."""


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class _Checked(msgspec.StructMeta):
    """The metaclass that checks options given in Python as those of a file."""

    if not TYPE_CHECKING:

        def __call__(cls, *values: Any, **options: Any) -> Any:
            """Build the class from values by position and by name, checked as those of a file."""
            given = dict(zip(cls.__struct_fields__, values, strict=False)) | options
            if len(given) < len(values) + len(options):
                raise TypeError(f"{cls.__name__} takes each of {cls.__struct_fields__} once")
            return build(cls, given)


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True, metaclass=_Checked):
    """The base of typed options: fields with a type, a description and perhaps a default."""


class Kind(
    Options, tag_field="kind", tag=lambda name: re.sub("(?<=[a-z])(?=[A-Z])", "_", name).lower()
):
    """The options of one of several kinds, chosen by the key ``kind`` (the class's name)."""


@runtime_checkable
class _Reads(Protocol):
    """A type that parses its own values, as schedules do."""

    def parse(self, value: Any, where: str) -> Any:
        """Return the object that a plain value stands for; ``where`` is its place for messages."""


def build(kind: Any, value: Any, where: str = "") -> Any:
    """Return the object of type ``kind`` that a plain value stands for, strictly checked.

    kind: a class of ``Options``, a union of ``Kind``s, or any other type that msgspec knows. A
    class with ``parse(value, where)`` and ``plain()`` (schedules, ``Chosen``) reads itself.
    value: what YAML holds; None is an empty mapping.
    where: file and key for messages, ``config/papers/x/study.yaml: experiments.linear.sampler``.
    A ConcordError on an unknown or missing key, a wrong type or a value outside its bounds.
    """
    if value is None and not _PLAIN.issuperset(hint for hint, _ in members(kind)):
        value = {}
    try:
        made = msgspec.convert(value, kind, dec_hook=_parse)
    except msgspec.ValidationError:
        if (unlike_numpy := _without_numpy(value, where)) is not value:
            return build(kind, unlike_numpy, where)
        raise ConcordError(_mistake(kind, value, where)) from None
    if not _computable(value):  # but an integer may have become a float, which can
        for mistake in _numbers(_builtins(made), where):
            raise ConcordError(mistake)
    return made


def _without_numpy(value: Any, where: str) -> Any:
    """Return a value with numpy's numbers and arrays replaced by Python's."""
    if isinstance(value, (np.generic, np.ndarray)):
        check_masks(value, where)
        return value.tolist()
    if isinstance(value, Mapping):
        made: Any = {key: _without_numpy(item, _at(where, key)) for key, item in value.items()}
        return made if any(made[key] is not value[key] for key in made) else value
    if isinstance(value, (list, tuple)):
        made = [_without_numpy(item, f"{where}[{n}]") for n, item in enumerate(value)]
        return made if any(a is not b for a, b in zip(made, value, strict=True)) else value
    return value


def check_masks(values: Any, where: str) -> None:
    """Refuse an array, or lists of arrays, with masked entries, whose masks numpy would drop."""
    if masked := _masked(values):
        raise ConcordError(
            f"{where}: masked entries, {masked} of them, would count as if they were not masked; "
            "give values in their place, as .filled(...) does, or leave their rows out"
        )


def _masked(values: Any) -> int:
    """Return the number of masked entries in an array, or in nested lists of arrays."""
    if isinstance(values, (list, tuple)):
        return sum(map(_masked, values))
    return int(np.ma.getmaskarray(values).sum()) if np.ma.is_masked(values) else 0


def build_file(kind: Any, value: Any, path: Any) -> Any:
    """Return the object that a file's content stands for; messages begin with the file."""
    try:
        return build(kind, value, f"{path}")
    except ConcordError as error:
        raise ConcordError(str(error).replace(f"{path}.", f"{path}: ", 1)) from None


def plain(value: Any) -> Any:
    """Return an object of ``build`` as plain data, every option written out."""
    return value if type(value) in _PLAIN else _lists(_builtins(value))


def _builtins(value: Any) -> Any:
    """Return an object as plain data of dictionaries, lists, numbers and texts."""
    return msgspec.to_builtins(value, enc_hook=lambda part: part.plain())


def _lists(value: Any) -> Any:
    """Return plain data with every tuple as a list."""
    if isinstance(value, dict):
        return {k: v if type(v) in _PLAIN else _lists(v) for k, v in value.items()}
    return [_lists(item) for item in value] if isinstance(value, (list, tuple)) else value


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


def kinds(union: Any) -> dict[str, Any]:
    """Return the classes of a union of ``Kind``s, by kind."""
    return {o.__struct_config__.tag: o for o, _ in members(union) if _is_a(o, Kind)}


def choices(hint: Any) -> tuple[Any, ...]:
    """Return the values that a ``Literal`` type lists; none for other types."""
    return tuple(v for o, _ in members(hint) if get_origin(o) is Literal for v in get_args(o))


def _parse(kind: Any, value: Any) -> Any:
    """Return a value parsed by a class that reads itself; a ValueError if it does not fit."""
    if isinstance(value, kind):
        return value
    try:
        return kind.parse(value, "")
    except ConcordError as error:
        raise ValueError(str(error)) from None  # msgspec's way to say that it does not fit


def _fits(hint: Any, value: Any) -> bool:
    """Return whether a value converts to a type."""
    try:
        msgspec.convert(value, hint, dec_hook=_parse)
    except msgspec.ValidationError:
        return False
    return True


BOUNDS = ("gt", "ge", "le", "lt", "min_length", "pattern", "title")

_NAMES = {
    int: "an integer",
    float: "a finite number",
    str: "a text",
    bool: "true or false",
    Literal: "a text",
    tuple: "a list",
    dict: "a mapping",
}


def _alike(option: Any, value: Any) -> bool:
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
    if shape is dict or _is_a(shape, Options):
        return isinstance(value, Mapping)
    return isinstance(value, str) if shape in (str, Literal) else True


def _is_a(option: Any, kind: type) -> bool:
    """Return whether an option's type is a subclass of a class."""
    return isinstance(option, type) and issubclass(option, kind)


def _at(where: str, key: Any) -> str:
    """Return the place of a key below a place, as messages name it."""
    name = key if str(key).isprintable() and len(str(key)) <= 60 else short(key)
    return f"{where}.{name}" if where else f"{name}"


def _said(where: str, text: str) -> str:
    """Return a sentence that begins with its place, if there is one."""
    return f"{where}: {text}" if where else text


def _mistake(hint: Any, value: Any, where: str) -> str:
    """Return the sentence about the first part of a value that does not fit its type."""
    options, known = members(hint), kinds(hint)
    if known and isinstance(value, Mapping) and (len(options) > 1 or "kind" in value):
        if "kind" not in value:
            return _said(where, f"the key 'kind' is missing; add one of {', '.join(known)}")
        kind = value["kind"]
        if not isinstance(kind, str) or kind not in known:
            return f"{_at(where, 'kind')}: there is no kind {short(kind)}; {nearest(kind, known)}"
        return _mistake_within(known[kind], {}, value, where)
    for option, rules in options:
        if _alike(option, value):
            return _mistake_within(option, rules, value, where)
    shapes = [get_origin(option) or option for option, _ in options]
    names = [_NAMES[shape] for shape in shapes if shape in _NAMES]
    if known:
        names.append(f"a mapping with a kind: {', '.join(known)}")
    elif any(_is_a(shape, Options) for shape in shapes):
        names.append("a mapping of option names to values")
    wanted = " or ".join(dict.fromkeys(names))
    if shapes[0] is tuple:
        wanted += "; write it as [a, b, ...]"
    return _said(where, f"{short(value)} is not {wanted}{_surprise(value, shapes)}")


def _surprise(value: Any, wanted: list[Any]) -> str:
    """Return a hint for a value that YAML reads otherwise than its author meant; "" if none."""
    if isinstance(value, str) and {int, float} & {*wanted} and value[:1].isdigit():
        return " (write it without quotes, leading zeros and colons)"
    if isinstance(value, bool) and {str, Literal} & {*wanted}:
        return " (YAML reads yes, no, on and off as true and false: put text in quotes)"
    return ""


def _mistake_within(shape: Any, rules: Mapping[str, Any], value: Any, where: str) -> str:
    """Return the sentence about a value whose form fits its type, but not its parts or bounds."""
    parts: list[tuple[Any, Any, str]] = []
    arguments = get_args(shape)
    if _is_a(shape, Options):
        fields = {field.encode_name: field for field in msgspec.structs.fields(shape)}
        known = {*fields, shape.__struct_config__.tag_field}
        for key in value:
            if shape.__struct_config__.forbid_unknown_fields and key not in known:
                return f"{_at(where, key)}: unknown key; {nearest(key, fields)}"
        for name, field in fields.items():
            if field.required and name not in value:
                meaning = members(field.type)[0][1].get("description", "see config/README.md")
                return _said(where, f"the key {name!r} is missing; add it ({meaning})")
        parts = [(f.type, value[n], _at(where, n)) for n, f in fields.items() if n in value]
    elif get_origin(shape) is tuple:
        fixed = arguments[-1] is not Ellipsis
        least = len(arguments) if fixed else rules.get("min_length", 0)
        if len(value) < least or (fixed and len(value) > least):
            given = f"{short(value)} has {len(value)} entries"
            return _said(where, f"{given}; give {least}{'' if fixed else ' or more'}")
        parts = [
            (arguments[i if fixed else 0], item, f"{where}[{i}]") for i, item in enumerate(value)
        ]
    elif get_origin(shape) is dict:
        if len(value) < rules.get("min_length", 0):
            return _said(where, "it is empty; give 1 entry or more")
        wanted = members(arguments[0])[0][1].get("title", "id; use letters, digits and _")
        for key in value:
            if not isinstance(key, str):
                return _said(where, f"the key {short(key)} is not a text; put it in quotes")
            if listed := choices(arguments[0]):
                if key not in listed:
                    return f"{_at(where, key)}: unknown key; {nearest(key, listed)}"
            elif not _fits(arguments[0], key):
                return _said(where, f"{short(key)} is no {wanted}")
        parts = [(arguments[1], item, _at(where, key)) for key, item in value.items()]
    elif isinstance(shape, _Reads):
        try:
            shape.parse(value, where)
        except ConcordError as error:
            return str(error)
    for hint, part, place in parts:
        if not _fits(hint, part):
            return _mistake(hint, part, place)
    if get_origin(shape) is Literal:
        return _said(where, f"{short(value)} is not allowed; {nearest(value, map(str, arguments))}")
    return next(_numbers(value, where, integer=shape is int), None) or _said(
        where, _out_of_bounds(value, rules)
    )


def _out_of_bounds(value: Any, rules: Mapping[str, Any]) -> str:
    """Return the sentence about a value that breaks bounds; "" if it keeps all."""
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


def _computable(value: Any) -> bool:
    """Return whether all numbers in plain data can be computed with."""
    parts = [value]
    for part in parts:  # which grow: a call for each would take most of a study's check
        if isinstance(part, dict):
            parts += part.values()
        elif isinstance(part, (list, tuple)):
            parts += part
        elif isinstance(part, float):
            if part and not TINIEST <= abs(part) <= HUGEST:
                return False
        elif isinstance(part, int) and not -LARGEST < part < LARGEST:
            return False
    return True


def _numbers(value: Any, where: str, integer: bool = True) -> Iterator[str]:
    """Yield a sentence about each number in plain data that is not finite, too large or small."""
    if _computable(value):
        return
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _numbers(item, _at(where, key))
    elif isinstance(value, (list, tuple)):
        for number, item in enumerate(value):
            yield from _numbers(item, f"{where}[{number}]")
    elif isinstance(value, int):
        large = "is too large; give a number below 2^63" if integer else "is not a finite number"
        yield _said(where, f"{short(value)} {large}")
    elif not math.isfinite(value):
        yield _said(where, f"{value} is not a finite number; give one")
    else:
        size = "large" if abs(value) > 1 else "small"
        yield _said(
            where,
            f"{short(value)} is too {size} to compute with; give 0, or a number from {TINIEST:g} "
            f"to {HUGEST:g}",
        )


class Chosen:
    """A kind of a room with its options, parsed from ``{kind: ring, ...}``."""

    room: ClassVar[str]
    __slots__ = ("kind", "module", "params")

    def __init__(self, kind: str, **options: Any) -> None:
        """Choose a kind of the class's room with options given by name."""
        self._choose(kind, options, "")

    def _choose(self, kind: Any, options: dict[str, Any], where: str) -> None:
        """Set module, kind and typed options; ``where`` is the place for messages."""
        self.module = find(self.room, kind, where or ROOMS[self.room].one)
        self.kind: str = kind
        self.params = build(options_of(self.module), options, where)

    @classmethod
    def parse(cls, value: Any, where: str) -> Self:
        """Return the kind and options that a file's mapping chooses.

        A ConcordError if the kind or an option is unknown, missing or out of bounds.
        """
        if isinstance(value, cls):
            return value
        if not isinstance(value, dict) or "kind" not in value:
            known = ", ".join(names(cls.room))
            raise ConcordError(
                f"{where}: the key 'kind' is missing; add one of {known}"
                if isinstance(value, dict)
                else f"{where}: {short(value)} is not a mapping with a kind: {known}"
            )
        made = cls.__new__(cls)
        made._choose(value["kind"], {k: v for k, v in value.items() if k != "kind"}, where)
        return made

    def plain(self) -> dict[str, Any]:
        """Return the mapping that ``parse`` reads, every option written out."""
        return {"kind": self.kind, **plain(self.params)}

    def __eq__(self, other: object) -> bool:
        """Return whether another choice has the same kind and the same options."""
        return isinstance(other, type(self)) and self.plain() == other.plain()

    def __hash__(self) -> int:
        """Return a hash of the kind and its options, the same for equal choices."""
        return hash((self.kind, self.params))

    def __repr__(self) -> str:
        """Return the Python call that makes the choice."""
        options = "".join(f", {key}={value!r}" for key, value in plain(self.params).items())
        return f"{type(self).__name__}({self.kind!r}{options})"
