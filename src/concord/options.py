"""Strict parameters: frozen dataclasses whose fields carry a description and constraints.

Every sampler, problem and figure kind declares its options as a dataclass of ``param`` fields.
``build`` turns a YAML mapping into one; whatever does not fit raises a ``ConcordError`` that names
file, key, value and remedy.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar, Union

from concord.errors import ConcordError, nearest, short

T = TypeVar("T")


def param(
    doc: str,
    *,
    default: Any = dataclasses.MISSING,
    minimum: float | None = None,
    maximum: float | None = None,
    above: float | None = None,
    choices: tuple[Any, ...] | None = None,
    length: int | None = None,
    shortest: int = 0,
) -> Any:
    """Declare a dataclass field.

    Parameters
    ----------
    doc
        What the option means, with its symbol in the paper where there is one.
    default
        Value used when the key is absent; without it the key is required.
    minimum, maximum
        Closed bounds for numbers, applied to each entry of a list.
    above
        Open lower bound; ``above=0`` asks for a positive number.
    choices
        The only values allowed.
    length, shortest
        Number of entries of a list, or the least number of them.
    """
    metadata = {
        "doc": doc,
        "minimum": minimum,
        "maximum": maximum,
        "above": above,
        "choices": choices,
        "length": length,
        "shortest": shortest,
    }
    if isinstance(default, (list, dict)):
        raise TypeError("defaults must be immutable: use a tuple or None")
    return dataclasses.field(default=default, metadata=metadata)


def build(cls: type[T], mapping: Mapping[str, Any] | None, where: str) -> T:
    """Construct the dataclass ``cls`` from ``mapping``, strictly.

    Parameters
    ----------
    cls
        A frozen dataclass whose fields were declared with ``param``. A field's class may itself be
        such a dataclass, or have a ``parse(value, where)`` class method (schedules do).
    mapping
        Keys and values as read from YAML.
    where
        File and key for messages, ``config/papers/x.yaml: experiments.linear.sampler``.

    Raises
    ------
    ConcordError
        On an unknown or missing key, a wrong type or a value outside its constraint.
    """
    if mapping is None:
        mapping = {}
    if not isinstance(mapping, Mapping):
        raise ConcordError(f"{where}: {short(mapping)} is not a mapping of option names to values")
    fields = {field.name: field for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    for key in mapping:
        if key not in fields:
            name = key if str(key).isprintable() and len(str(key)) <= 60 else short(key)
            raise ConcordError(f"{where}.{name}: unknown key; {nearest(key, fields)}")
    hints = _hints(cls)  # type: ignore[arg-type]
    values = {}
    for name, field in fields.items():
        if name in mapping:
            values[name] = _convert(mapping[name], hints[name], field.metadata, f"{where}.{name}")
        elif field.default is dataclasses.MISSING:
            raise ConcordError(
                f"{where}: the key {name!r} is missing; add it ({field.metadata['doc']})"
            )
        elif isinstance(field.default, (int, float)) and hasattr(hints[name], "parse"):
            values[name] = hints[name].parse(field.default, f"{where}.{name}")
        else:
            values[name] = field.default
    return cls(**values)


def plain(value: Any) -> Any:
    """Return what ``build`` made as plain data, every option written out, which it builds again."""
    if hasattr(value, "plain"):
        return value.plain()
    if dataclasses.is_dataclass(value):
        return {
            field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


@cache
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _convert(value: Any, hint: Any, metadata: Mapping[str, Any], where: str) -> Any:
    origin = typing.get_origin(hint)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in typing.get_args(hint):
            return None
        return _convert_union(value, hint, metadata, where)
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            raise ConcordError(f"{where}: {short(value)} is not a list; write it as [a, b, ...]")
        length, shortest = metadata["length"], metadata["shortest"]
        if (length is not None and len(value) != length) or len(value) < shortest:
            wanted = f"{shortest} or more" if length is None else length
            raise ConcordError(f"{where}: {short(value)} has {len(value)} entries; give {wanted}")
        item = typing.get_args(hint)[0]
        return tuple(_convert(v, item, metadata, f"{where}[{i}]") for i, v in enumerate(value))
    if hasattr(hint, "parse"):
        return hint.parse(value, where)
    if dataclasses.is_dataclass(hint):
        return build(typing.cast(type, hint), value, where)
    value = _scalar(value, hint, where)
    _constrain(value, metadata, where)
    return value


def _convert_union(value: Any, hint: Any, metadata: Mapping[str, Any], where: str) -> Any:
    problems = []
    for option in typing.get_args(hint):
        if option is type(None):
            continue
        try:
            return _convert(value, option, metadata, where)
        except ConcordError as error:
            problems.append(error)
    raise problems[0]


_KINDS = {
    int: "an integer",
    float: "a finite number",
    str: "a text",
    bool: "true or false",
    dict: "a mapping",
}
LARGEST = 2**63  # what arrays and trace files can hold
TINIEST, HUGEST = 1e-100, 1e100  # squares and cubes of these are numbers still


def _scalar(value: Any, hint: Any, where: str) -> Any:
    if hint is Any:
        return value
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):
            value = float(value)
    plain = hint if isinstance(hint, type) else typing.get_origin(hint)
    wrong = not isinstance(value, plain) or (isinstance(value, bool) and plain is not bool)
    if wrong or (isinstance(value, float) and not math.isfinite(value)):
        hint_text = _KINDS.get(plain, str(hint))
        raise ConcordError(f"{where}: {short(value)} is not {hint_text}{_surprise(value, plain)}")
    if isinstance(value, int) and abs(value) >= LARGEST:
        raise ConcordError(f"{where}: {short(value)} is too large; give a number below 2^63")
    if isinstance(value, float) and value and not TINIEST <= abs(value) <= HUGEST:
        raise ConcordError(
            f"{where}: {short(value)} is too {'large' if abs(value) > 1 else 'small'} to compute "
            f"with; give 0, or a number from {TINIEST:g} to {HUGEST:g}"
        )
    return value


def _surprise(value: Any, wanted: Any) -> str:
    """Return a hint where YAML reads something else than what was probably meant."""
    if isinstance(value, str) and wanted in (int, float):
        if "e" in value.lower():
            return " (YAML reads 1e-4 as text: write 1.0e-4)"
        if value[:1].isdigit():
            return " (write it without quotes, leading zeros and colons)"
    if isinstance(value, bool) and wanted is str:
        return " (YAML reads yes, no, on and off as true and false: put text in quotes)"
    return ""


def _constrain(value: Any, metadata: Mapping[str, Any], where: str) -> None:
    choices = metadata.get("choices")
    if choices is not None and value not in choices:
        raise ConcordError(
            f"{where}: {short(value)} is not allowed; {nearest(value, map(str, choices))}"
        )
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return
    above, minimum, maximum = metadata["above"], metadata["minimum"], metadata["maximum"]
    if above is not None and not value > above:
        rule = "positive" if above == 0 else f"above {above}"
        raise ConcordError(f"{where}: {value!r} is not {rule}; give a {rule} number")
    if minimum == 1 and isinstance(value, int) and value < 1:
        raise ConcordError(f"{where}: {value!r} is not a positive integer; give 1 or more")
    if minimum is not None and value < minimum:
        raise ConcordError(f"{where}: {value!r} is below {minimum}; give {minimum} or more")
    if maximum is not None and value > maximum:
        raise ConcordError(f"{where}: {value!r} is above {maximum}; give {maximum} or less")
