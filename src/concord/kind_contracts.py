"""The protocols of plug-ins that are modules: what a kind of each room defines."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from concord.contracts import DataSets, Stream

if TYPE_CHECKING:
    from concord.problem import Problem


@runtime_checkable
class ProblemKind(Protocol):
    """A module of ``concord.problems.kinds``: a kind of problem."""

    Params: type

    def check(self, params: Any, agents: int) -> None:
        """Refuse options that are impossible together, or for this many agents."""

    def build(
        self, params: Any, agents: int, partition: Any, stream: Stream, data_sets: DataSets
    ) -> Problem:
        """Draw the data from ``stream("data")``, or take them from data sets."""


@runtime_checkable
class PartitionKind(Protocol):
    """A kind of partition, a module of ``concord.sampling.partitions``."""

    Params: type

    def split(
        self,
        params: Any,
        rows: int,
        labels: np.ndarray | None,
        agents: int,
        rng: np.random.Generator,
    ) -> list[np.ndarray]:
        """Return an array of row numbers for each agent, every row once.

        ``labels`` are the rows' classes, (rows,); None where they have none.
        """


@runtime_checkable
class ScheduleKind(Protocol):
    """A kind of schedule, a module of ``concord.sampling.schedules``."""

    Params: type

    def schedule(self, params: Any) -> Callable[[int], float]:
        """Return the step size as a positive function of k; a ``Schedule`` if it has that form."""


@runtime_checkable
class InitialKind(Protocol):
    """A kind of initial law, a module of ``concord.sampling.initial``."""

    Params: type

    def draw(
        self, params: Any, problem: Problem, shape: tuple[int, int, int], rng: np.random.Generator
    ) -> np.ndarray:
        """Return initial positions of shape (chains, agents, dim)."""

    def moments(self, params: Any, dim: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Return mean (dim,) and covariance (dim, dim) of one agent. None if not known."""
