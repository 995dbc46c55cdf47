"""Plain values: numbers, texts, lists and mappings, as YAML and callers in Python give them."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeGuard

import numpy as np

from concord.errors import ConcordError, short

LARGEST = 2**63  # what arrays and trace files can hold
PLAIN = frozenset({str, int, float, bool, type(None)})  # types of values that are plain data
TINIEST, HUGEST = 1e-100, 1e100  # squares and cubes of these are numbers still
# A chain with a coordinate beyond this has left every posterior we sample (their scales are of
# order one to a hundred); it is recorded as diverged at that iteration, and keeps running.
FINITE_RANGE = 1e8


def without_numpy(value: object, where: str) -> object:
    """Return a value with numpy's numbers and arrays replaced by Python's."""
    if isinstance(value, (np.generic, np.ndarray)):
        check_masks(value, where)
        return value.tolist()
    if isinstance(value, Mapping):
        return {key: without_numpy(item, place_of_key(where, key)) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_numpy(item, f"{where}[{number}]") for number, item in enumerate(value)]
    return value


def is_list(value: object) -> TypeGuard[Iterable[Any]]:
    """Return whether a caller's value is a list, a column or an array, and no number or text."""
    is_number = isinstance(value, np.ndarray) and not value.ndim
    return isinstance(value, Iterable) and not isinstance(value, str) and not is_number


def check_masks(values: object, where: str) -> None:
    """Refuse an array, or a list of arrays, with masked entries, whose masks numpy would drop."""
    for part in values if isinstance(values, (list, tuple)) else [values]:
        if np.ma.is_masked(part):
            raise ConcordError(
                f"{where}: masked entries would count as if they were not masked; give values in "
                "their place, as .filled(...) does, or leave their rows out"
            )


def parse_self(cls: Any, value: object) -> Any:
    """Return the object of a class with ``parse(value, where)`` that a value stands for.

    A ValueError if it does not fit, whose text has "$" for the value's place.
    """
    if isinstance(value, cls):
        return value
    try:
        return cls.parse(value, "$")
    except ConcordError as error:
        raise ValueError(str(error)) from None  # msgspec's way to say that it does not fit


def place_of_key(where: str, key: object) -> str:
    """Return the place of a key below a place, as messages name it."""
    name = key if str(key).isprintable() and len(str(key)) <= 60 else short(key)
    return f"{where}.{name}" if where else f"{name}"


def is_computable(value: object) -> bool:
    """Return whether each number in plain data is 0, or from 1e-100 to 1e100 in size.

    Integers must be below 2^63.
    """
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


def read_numbers(values: object, name: str) -> np.ndarray:
    """Convert a caller's values to an array of finite floats whose squares are finite, too.

    name: of the values, for errors.
    """
    check_masks(values, name)
    try:
        numbers = np.array(values)
        if numbers.dtype.kind == "c":
            raise ConcordError(f"{name}: its numbers are complex; give real ones")
        array = numbers.astype(float)
    except (TypeError, ValueError):
        for column in getattr(values, "columns", ()):
            if getattr(values[column], "dtype", np.dtype(object)).kind not in "biuf":  # type: ignore[index]
                raise ConcordError(
                    f"{name}: its column {column!r} has no numbers; leave it out, or make numbers "
                    "of it, as pandas.get_dummies does"
                ) from None
        entries = np.asarray(values, dtype=object).ravel()
        if entries.size > 1 and isinstance(entries[0], str):
            text = short(entries[0])
            raise ConcordError(
                f"{name}: its entries are texts, such as {text}; give numbers, such as "
                f"({name} == {text}) + 0"
            ) from None
        raise ConcordError(f"{name}: {short(values)} is no array of numbers; give one") from None
    if not (finite := np.isfinite(array)).all():
        raise ConcordError(_describe_missing(values, array, np.argwhere(~finite), name))
    if (np.abs(array) > HUGEST).any():
        most = np.abs(array).argmax()
        place = [int(index) for index in np.unravel_index(most, array.shape)]
        raise ConcordError(
            f"{name}{place or ''}: {array.flat[most]:g} is beyond {HUGEST:g}, where sums of "
            "squares are not finite; use larger units"
        )
    return array


def _describe_missing(values: Any, array: np.ndarray, lost: np.ndarray, name: str) -> str:
    """Return the sentence about numbers of an array that are not finite, with their rows.

    values: what the caller gave, perhaps a table. lost: their places, (count, axes). name: of the
    values.
    """
    first, labels, column = lost[0].tolist(), range(len(np.atleast_1d(array))), ""
    if array.ndim == 2:
        lost = lost[lost[:, 1] == first[1]]
        column = f"column {[*getattr(values, 'columns', range(array.shape[1]))][first[1]]!r} has "
    if hasattr(values, "iloc"):  # of pandas
        labels = values.index
    what = "missing" if np.isnan(array[tuple(first)]) else "infinite"
    rows = ", ".join(str(labels[row]) for row in lost[:3, 0]) if first else "0"
    more, plural = ", ..." if len(lost) > 3 else "", "s" if len(lost) > 1 else ""
    return (
        f"{name}: {column}{len(lost)} {what} value{plural}, in row{plural} {rows}{more}; drop such "
        "rows, as df.dropna() does, or impute"
    )
