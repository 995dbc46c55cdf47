"""Outcomes of a check other than success, as exceptions, and helpers that raise them."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from concord.errors import ConcordError

T = TypeVar("T")
U = TypeVar("U")


class Broken(AssertionError):
    """The check fails: a kind breaks its contract, as one sentence says."""


class Prototype(Exception):
    """The check warns: a plug-in may do without what a built-in kind needs."""


class Inapplicable(Exception):
    """The check has nothing to test, for a reason that is given."""


def taken(make: Callable[[T], U], options: Iterable[T]) -> Iterator[tuple[T, U]]:
    """Yield options together with ``make(options)``, and skip those that it refuses.

    make: raises a ConcordError where it refuses. ``Inapplicable`` if it refuses all options.
    """
    any_taken, refused = False, ""
    for each in options:
        try:
            found = make(each)
        except ConcordError as error:
            refused = str(error)
            continue
        any_taken = True
        yield each, found
    if not any_taken:
        raise Inapplicable(f"it refuses all options tried: {refused}")


def expect(kept: bool, otherwise: str, case: object = "") -> None:
    """Raise ``Broken`` with a sentence unless a condition holds.

    kept: the condition. otherwise: the sentence. case: the options or network tried, or "".
    """
    if not kept:
        raise Broken(f"{otherwise}, {case}" if case else otherwise)
