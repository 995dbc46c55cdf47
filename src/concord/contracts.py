"""The protocols of plug-ins, and of what metrics ask of problems; samplers ask ``concord.problem``.

Arrays ``x`` have shape (chains, agents, dim), and agent i is evaluated at its own x_i.
``isinstance`` sees whether the members exist, not what they are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    from concord.problem import Problem

Stream = Callable[[str], np.random.Generator]


@runtime_checkable
class WithNames(Protocol):
    """A problem whose parameters have names, of which the positions x are coordinates."""

    def constrain(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Return the named parameters at positions (..., dim), each of shape (..., own shape)."""


@runtime_checkable
class WithInitial(Protocol):
    """A problem with its own law of the initial positions x^(0)."""

    def initial(self, shape: tuple[int, int, int], rng: np.random.Generator) -> np.ndarray:
        """Return initial positions of shape (chains, agents, dim)."""


@runtime_checkable
class WithDtype(Protocol):
    """A problem whose arrays have another type than float64."""

    dtype: np.dtype


def dtype_of(problem: Problem) -> np.dtype:
    """Return the floating-point type of a problem's arrays, float64 unless declared."""
    return np.dtype(problem.dtype if isinstance(problem, WithDtype) else float)


@cache
def offers(module: Any, protocol: type) -> bool:
    """Return whether a kind's module has every attribute of a protocol; the answer is cached.

    Python takes long for such a check, and there are many runs of a kind.
    """
    return isinstance(module, protocol)


class DataSets(Protocol):
    """The registered data sets from which problems of real data are made, read by the caller."""

    @property
    def folder(self) -> Path:
        """Return the folder of the data sets' files, for problems that read files themselves."""

    def table(self, name: str) -> dict[str, np.ndarray]:
        """Return the columns of a table by name, as numbers (empty: nan) or texts."""

    def points(self, name: str) -> tuple[Any, np.ndarray]:
        """Return the features, (rows, columns), and the labels, (rows,), of a data set."""


@runtime_checkable
class TakesArrays(Protocol):
    """A problem kind that may be made of a caller's own arrays."""

    from_arrays: Callable[..., Any]
