"""The protocols of plug-ins that are modules, and what metrics and arrays ask of problems.

Arrays ``x`` have shape (chains, agents, dim), and agent i is evaluated at its own x_i.
``isinstance`` sees whether the members exist, not what they are. ``concord.problem`` has what
samplers ask of problems, ``networks.topology`` and ``networks.compressions`` the protocols of
their kinds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.random import Generator

from concord.options import Options

if TYPE_CHECKING:
    from pathlib import Path

    from concord.problem import Problem

Stream = Callable[[str], Generator]


@runtime_checkable
class WithNames(Protocol):
    """A problem whose parameters have names, of which the positions x are coordinates."""

    def constrain(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Return the named parameters at positions (..., dim), each of shape (..., own shape)."""


@runtime_checkable
class WithUnits(Protocol):
    """A problem whose coordinates have units of data, by which a step may be far too large.

    units_advice: what makes the scales of coordinates alike, for messages.
    """

    units_advice: str


def dtype_of(problem: Problem) -> np.dtype:
    """Return the floating-point type of a problem's arrays: its ``dtype``, or float64."""
    return np.dtype(getattr(problem, "dtype", float))


class DataSets(Protocol):
    """The registered data sets from which problems of real data are made, read by the caller."""

    @property
    def folder(self) -> Path:
        """Return the folder of the data sets' files, for problems that read files themselves."""

    def table(self, name: str) -> dict[str, np.ndarray]:
        """Return the columns of a table by name, as numbers (empty: nan) or texts."""

    def points(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the features, (rows, columns), and the labels, (rows,), of a data set."""


@runtime_checkable
class ProblemKind(Protocol):
    """A module of ``concord.problems.kinds``: a kind of problem."""

    Params: type[Options]

    def check(self, params: Options, agents: int) -> None:
        """Refuse options that are impossible together, or for this many agents."""

    def build(
        self, params: Options, agents: int, partition: Any, stream: Stream, data_sets: DataSets
    ) -> Problem:
        """Return the problem; its data are drawn from ``stream("data")``, or are of data sets."""


@runtime_checkable
class PartitionKind(Protocol):
    """A kind of partition, a module of ``concord.sampling.partitions``."""

    Params: type[Options]

    def split(
        self, params: Options, rows: int, labels: np.ndarray | None, agents: int, rng: Generator
    ) -> list[np.ndarray]:
        """Return an array of row numbers for each agent, every row once.

        ``labels`` are the rows' classes, (rows,); None where they have none.
        """


@runtime_checkable
class ScheduleKind(Protocol):
    """A kind of schedule, a module of ``concord.sampling.schedules``."""

    Params: type[Options]

    def schedule(self, params: Options) -> Callable[[int], float]:
        """Return the step size as a positive function of k; a ``Schedule`` if it has that form."""


@runtime_checkable
class InitialKind(Protocol):
    """A kind of initial law, a module of ``concord.sampling.initial``."""

    Params: type[Options]

    def draw(
        self, params: Options, problem: Problem, shape: tuple[int, int, int], rng: Generator
    ) -> np.ndarray:
        """Return initial positions of shape (chains, agents, dim)."""

    def moments(self, params: Options, dim: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Return mean (dim,) and covariance (dim, dim) of one agent. None if not known."""
