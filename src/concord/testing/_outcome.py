"""How a check ends: it passes, fails, warns, or has nothing to check."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import numpy as np

from concord.errors import ConcordError

T = TypeVar("T")
U = TypeVar("U")
ROUNDING = 1e-12


class Broken(AssertionError):
    """A promise that is not kept, in one sentence."""


class Prototype(Exception):
    """What a prototype may do, but what is built in may not."""


class Inapplicable(Exception):
    """Nothing to check, and why."""


def taken(made: Callable[[T], U], options: Iterable[T]) -> Iterator[tuple[T, U]]:
    """Yield options, and what a kind makes of them; those that it refuses are left out.

    Inapplicable if these are all.
    """
    done, refused = False, ""
    for each in options:
        try:
            found = made(each)
        except ConcordError as error:
            refused = str(error)
            continue
        done = True
        yield each, found
    if not done:
        raise Inapplicable(f"it refuses all options tried: {refused}")


def expect(kept: bool, otherwise: str, case: object = "") -> None:
    """Go on if a promise is kept, or say how it is not, and in which case."""
    if not kept:
        raise Broken(f"{otherwise}, {case}" if case else otherwise)


def same(found: np.ndarray, expected: np.ndarray, otherwise: str, case: object = "") -> None:
    """Go on if arrays are the same up to rounding, or say by how much they differ."""
    expect(np.shape(found) == np.shape(expected), f"{otherwise}: shapes differ", case)
    scale = max(1.0, np.abs(expected).max(initial=0.0))
    off = np.abs(np.subtract(found, expected)).max(initial=0.0)
    expect(bool(off <= ROUNDING * scale), f"{otherwise}: they differ by {off:.3g}", case)
