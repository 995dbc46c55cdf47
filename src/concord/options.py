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

import re
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Self,
    TypeVar,
    dataclass_transform,
    overload,
)

import msgspec
from msgspec import Meta

from concord.errors import ConcordError, short
from concord.hints import complete, members
from concord.kinds import ROOMS, exists, find, names, options_of
from concord.mistakes import describe_mistake, describe_number, written
from concord.values import PLAIN, is_computable, parse_self, without_numpy

T = TypeVar("T")

Positive = Annotated[float, Meta(gt=0)]
NonNegative = Annotated[float, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]
PositiveShare = Annotated[float, Meta(gt=0, le=1)]
Count = Annotated[int, Meta(ge=1)]
Index = Annotated[int, Meta(ge=0)]
Label = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,59}$(?!\n)",
        title="a name of letters, digits and . _ + -",
    ),
]
Some = Annotated[tuple[T, ...], Meta(min_length=1)]


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class _CheckedMeta(msgspec.StructMeta):
    """The metaclass that checks options given in Python like options in a file."""

    if not TYPE_CHECKING:

        def __new__(mcs, name: str, bases: Any, members: dict[str, Any], **options: Any) -> Any:
            """Make the class, unless it has a method by which its fields would not be checked."""
            if "__init__" in members:
                raise ConcordError(
                    f"{name}.__init__: leave it out; write its options as fields, such as "
                    f"step_size: float, and {name}(0.001) sets the first"
                )
            return super().__new__(mcs, name, bases, members, **options)

        def __call__(cls, *values: Any, **options: object) -> Any:
            """Build the class from values by position and name, checked like values in a file."""
            arguments = dict(zip(cls.__match_args__, values, strict=False)) | options
            if len(arguments) < len(values) + len(options):
                order = ", ".join(cls.__match_args__) or "no options"
                raise ConcordError(
                    f"{cls.__name__}: it takes {order} in order, each once; name the others, or "
                    "write them in the class with a type, as step_size: float"
                )
            return build(cls, arguments)

        def __setattr__(cls, name: str, value: object) -> None:
            """Set an attribute of the class, but for that by which @dataclass begins."""
            if name == "__dataclass_params__":
                raise ConcordError(
                    f"{cls.__name__}: remove @dataclass; its fields are options as is"
                )
            super().__setattr__(name, value)


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True, metaclass=_CheckedMeta):
    """The base of typed options: fields with a type, a description and perhaps a default."""


class Kind(
    Options, tag_field="kind", tag=lambda name: re.sub("(?<=[a-z])(?=[A-Z])", "_", name).lower()
):
    """The options of one of several kinds, chosen by the key ``kind`` (the class's name)."""


@overload
def build(kind: type[T], value: object, where: str = "") -> T: ...
@overload
def build(kind: object, value: object, where: str = "") -> Any: ...
def build(kind: Any, value: object, where: str = "") -> Any:
    """Return the object of type ``kind`` that a plain value stands for, strictly checked.

    kind: a class of ``Options``, a union of ``Kind``s, or any other type that msgspec knows. A
    class with ``parse(value, where)`` and ``plain()`` (schedules, ``Chosen``) reads itself.
    value: what YAML holds; None is an empty mapping, but for types of numbers and texts alone.
    where: file and key for messages, ``config/papers/x/study.yaml: experiments.linear.sampler``.
    A ConcordError on an unknown or missing key, a wrong type or a value outside its bounds.
    """
    if value is None and not PLAIN.issuperset(hint for hint, _ in members(kind)):
        value = {}
    try:
        built = msgspec.convert(value, kind, dec_hook=parse_self)
    except msgspec.ValidationError:
        value = without_numpy(value, where)
        try:
            built = msgspec.convert(value, kind, dec_hook=parse_self)
        except msgspec.ValidationError as error:
            raise ConcordError(describe_mistake(error, kind, value, where)) from None
    if not is_computable(value):
        raise ConcordError(describe_number(value, where))
    return built


def plain(value: Any) -> Any:
    """Return an object of ``build`` as plain data, every option written out."""
    if type(value) in PLAIN:
        return value
    return _lists(msgspec.to_builtins(value, enc_hook=lambda part: part.plain()))


def _lists(value: object) -> object:
    """Return plain data with every tuple as a list."""
    if isinstance(value, dict):
        return {k: v if type(v) in PLAIN else _lists(v) for k, v in value.items()}
    return [_lists(item) for item in value] if isinstance(value, (list, tuple)) else value


class Chosen:
    """A plug-in chosen by name with its options, parsed from ``{kind: ring, ...}``."""

    room: ClassVar[str]
    example: ClassVar[str] = ""  # of a mapping, for messages
    __slots__ = ("kind", "module", "params")

    def __init__(self, kind: str, **options: object) -> None:
        """Choose a plug-in of the class's group, with options given by name."""
        self._choose(kind, options, "")

    def _choose(self, kind: str, options: dict[str, object], where: str) -> None:
        """Set module, kind and typed options; ``where`` is the place for messages."""
        self.module = find(self.room, kind, where or ROOMS[self.room].noun)
        self.kind: str = kind
        self.params = build(options_of(self.module), options, where)

    @classmethod
    def parse(cls, value: object, where: str) -> Self:
        """Return the kind and options that a file's mapping chooses.

        A ConcordError if the kind or an option is unknown, missing or out of bounds.
        """
        if isinstance(value, cls):
            return value
        if not isinstance(value, dict) or "kind" not in value:
            wish, example = f"give a mapping with a kind: {', '.join(names(cls.room))}", cls.example
            if exists(cls.room, value):
                options = options_of(find(cls.room, value, where))
                example = written({"kind": value, **complete(options, {})})
            wish += f", such as {example}" if example else ""
            raise ConcordError(f"{where}: {short(value)} does not fit; {wish}")
        choice = cls.__new__(cls)
        choice._choose(value["kind"], {k: v for k, v in value.items() if k != "kind"}, where)
        return choice

    def plain(self) -> dict[str, object]:
        """Return the mapping that ``parse`` reads, every option written out."""
        return {"kind": self.kind, **plain(self.params)}

    def __eq__(self, other: object) -> bool:
        """Return whether another choice has the same kind and the same options."""
        return isinstance(other, type(self)) and self.plain() == other.plain()

    def __hash__(self) -> int:
        """Return a hash of the kind and its options, the same for equal choices."""
        return hash(str(self.plain()))  # options may be lists

    def __repr__(self) -> str:
        """Return the Python call that makes the choice."""
        options = "".join(f", {key}={value!r}" for key, value in plain(self.params).items())
        return f"{type(self).__name__}({self.kind!r}{options})"
