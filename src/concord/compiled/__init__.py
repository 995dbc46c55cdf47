"""Kernels that numba compiles where it is installed (the extra ``fast``): less time, same bytes.

A kernel does the operations of the numpy code beside which it is asked for, in the same order, so
that no byte of a result depends on numba. To import it takes half a second: so it is used where
enough work is announced, and what it has compiled is kept for later processes.
"""

import sys
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import TypeVar

T = TypeVar("T")
Kernel = Callable[..., None]

# Numbers to compute until it pays to import numba: those that steps move, and a thousand for each
# step, whose calls take as long.
PATIENCE, CALLS = 100_000_000, 1000

_awaited = PATIENCE


def expect(steps: int, numbers: int) -> None:
    """Announce so many steps of this process that each move so many numbers."""
    global _awaited
    _awaited = max(_awaited - steps * (numbers + CALLS), 0)


def kernel(name: str, *constants: int | str) -> Kernel | None:
    """Return a kernel of ``kernels``, compiled for these constants; None where numpy is to go on.

    That is where too little work is announced, and without a numba that works.
    """
    return built(_shared, name, *constants)


@cache
def _shared(name: str, *constants: int | str) -> Kernel:
    from concord.compiled import kernels  # of an extra

    made: Kernel = getattr(kernels, name)(*constants)
    return made


def built(make: Callable[..., T], *arguments: object) -> T | None:
    """Return what ``make``, which needs numba, makes of the arguments; None as of ``kernel``."""
    if _awaited or not _there():
        return None
    try:
        return make(*arguments)
    except Exception as error:  # of any kind: numpy's, llvmlite's, the compiler's
        _tell(f"{type(error).__name__}: {' '.join(str(error).split())}")
        return None


@cache
def _there() -> bool:
    return find_spec("numba") is not None


@cache
def _tell(what: str) -> None:
    print(
        f"concord: numba is installed, but cannot be used ({what}); numpy gives the same numbers, "
        "but takes longer; install the version of envs/requirements.lock, or remove numba",
        file=sys.stderr,
    )
