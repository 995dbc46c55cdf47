"""How a check ends: it passes, fails, warns, or has nothing to check."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from concord.errors import ConcordError

T = TypeVar("T")
U = TypeVar("U")


class Broken(AssertionError):
    """A promise that is not kept, in one sentence."""


class Prototype(Exception):
    """What a prototype may do, but what is built in may not."""


class Inapplicable(Exception):
    """Nothing to check, and why."""


def taken(make: Callable[[T], U], options: Iterable[T]) -> Iterator[tuple[T, U]]:
    """Yield options, and what a kind makes of them; those that it refuses are left out.

    Inapplicable if these are all.
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
    """Go on if a promise is kept, or say how it is not, and in which case."""
    if not kept:
        raise Broken(f"{otherwise}, {case}" if case else otherwise)
