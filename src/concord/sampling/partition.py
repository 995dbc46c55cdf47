"""Partitions: how rows of data are divided among agents, and the divided data.

Every row goes to exactly one agent. Agents may hold different numbers of rows, so their data are
stored as one zero-padded array, which gradients of all agents traverse at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from concord.errors import ConcordError
from concord.options import build
from concord.plugins import Chosen

Parts = Sequence[np.ndarray]


class Split(Parts):
    """Rows of each agent: of some in an order, each agent has the next so many."""

    def __init__(self, rows: np.ndarray, counts: Sequence[int] | np.ndarray) -> None:
        self.rows, self.counts = rows, np.asarray(counts)
        self._ends = np.concatenate([[0], np.cumsum(counts)])

    @classmethod
    def of(cls, parts: Parts) -> Split:
        """Return these parts as a split."""
        if isinstance(parts, Split):
            return parts
        return cls(np.concatenate(parts), [len(part) for part in parts])

    def __len__(self) -> int:
        """Return the number of agents."""
        return len(self._ends) - 1

    def __getitem__(self, agent: Any) -> Any:
        """Return the rows of an agent, or the split of some agents that follow on each other."""
        found = range(len(self))[agent]
        if isinstance(found, int):
            return self.rows[self._ends[found] : self._ends[found + 1]]
        first, last = self._ends[[found.start, found.stop]]
        return Split(self.rows[first:last], self.counts[found.start : found.stop])


def consecutive_counts(rows: int, agents: int) -> np.ndarray:
    """Return the sizes of ``agents`` consecutive parts, which differ by at most one."""
    enough(rows, agents)
    return rows // agents + (np.arange(agents) < rows % agents)


def enough(rows: int, agents: int, minimum: int = 1) -> None:
    """Refuse too few rows for each agent to have a minimum of them."""
    if agents * minimum > rows:
        each = "a row" if minimum == 1 else f"{minimum} rows"
        raise ConcordError(
            f"{rows} rows cannot give each of {agents} agents {each}; use fewer agents or more data"
        )


class Way(Chosen):
    """A kind of partition and its options: ``{kind: dirichlet, concentration: 0.3}``."""

    package = "partitions"


@dataclass(frozen=True)
class Partition:
    """A way to divide rows, chosen by the user, and where the choice is written.

    own: agents of which a rank builds the data alone, if the problem can; None: all.
    """

    options: Way
    where: str = "partition"
    own: slice | None = None

    @classmethod
    def parse(cls, value: Any, where: str) -> Partition:
        """Build a partition from ``{kind: equal | consecutive | sizes | dirichlet | ..., ...}``.

        A ConcordError if the kind or one of its options is unknown, missing or out of range.
        """
        return cls(build(Way, value, where), where)

    def split(self, rows: int | np.ndarray, agents: int, rng: np.random.Generator) -> Parts:
        """Divide rows among agents; returns one array of row numbers per agent.

        rows: number of rows, or the class of each row, shape (rows,); dirichlet needs the classes.
        agents: number of agents.
        rng: the stream of the partition, which samplers share.
        A ConcordError if the rows cannot be divided as asked.
        """
        labels = None if np.ndim(rows) == 0 else np.asarray(rows)
        count = int(rows) if labels is None else len(labels)
        try:
            return self.options.module.split(self.options.params, count, labels, agents, rng)
        except ConcordError as error:
            raise ConcordError(f"{self.where}: {error}") from None


@dataclass(frozen=True, eq=False)
class AgentData:
    """Rows of all agents in one array each, padded with zeros.

    features: shape (agents, n_max, d), or (agents, n_max, ...) for rows that are arrays.
    targets: shape (agents, n_max).
    counts: rows of each agent, shape (agents,); agent i's are ``features[i, :counts[i]]``.
    """

    features: np.ndarray
    targets: np.ndarray
    counts: np.ndarray

    @classmethod
    def from_parts(
        cls, features: np.ndarray, targets: np.ndarray, parts: Parts, most: int = 0
    ) -> AgentData:
        """Gather the rows of each part from features (rows, d) and targets (rows,).

        most: the most rows of any agent, where these are not all.
        """
        split = Split.of(parts)
        held = np.arange(max(most, split.counts.max())) < split.counts[:, None]
        padded = np.zeros((*held.shape, *features.shape[1:]), dtype=features.dtype)
        aims = np.zeros(held.shape, dtype=targets.dtype)
        padded[held], aims[held] = features[split.rows], targets[split.rows]
        return cls(padded, aims, split.counts)

    def __getitem__(self, agents: slice) -> AgentData:
        """Return those of some agents, padded as all are, and nothing of the others."""
        return AgentData(*(a[agents].copy() for a in (self.features, self.targets, self.counts)))

    @cached_property
    def mask(self) -> np.ndarray:
        """One for a row, zero for padding; shape (agents, n_max), float."""
        return (np.arange(self.targets.shape[1]) < self.counts[:, None]).astype(float)

    def pooled(self) -> tuple[np.ndarray, np.ndarray]:
        """Return features (rows, d) and targets (rows,) of all agents, in agent order."""
        held = self.mask.astype(bool)
        return self.features[held], self.targets[held]
