"""Partitions: how rows of data are divided among agents, and the divided data.

Every row goes to exactly one agent. Agents may hold different numbers of rows, so their data are
stored as one zero-padded array, which gradients of all agents traverse at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from concord.errors import ConcordError
from concord.options import Chosen, build
from concord.problem import ALL, Agents

Parts = list[np.ndarray]


def consecutive_counts(rows: int, agents: int) -> list[int]:
    """Return the sizes of ``agents`` consecutive parts, which differ by at most one."""
    check_rows(rows, agents)
    return [rows // agents + (agent < rows % agents) for agent in range(agents)]


def check_rows(rows: int, agents: int, minimum: int = 1) -> None:
    """Refuse fewer rows than give each agent a minimum of them."""
    if agents * minimum > rows:
        each = "a row" if minimum == 1 else f"{minimum} rows"
        raise ConcordError(
            f"{rows} rows cannot give each of {agents} agents {each}; use fewer agents or more data"
        )


class PartitionChoice(Chosen):
    """A kind of partition with its options: ``{kind: dirichlet, concentration: 0.3}``."""

    room = "partitions"


PartitionLike = str | Mapping[str, object] | PartitionChoice  # what a caller gives


@dataclass(frozen=True)
class Partition:
    """A way to divide rows among agents, and the place where a user states it."""

    options: PartitionChoice
    where: str = "partition"

    @classmethod
    def parse(cls, value: object, where: str) -> Partition:
        """Build a partition from ``{kind: equal | consecutive | sizes | dirichlet | ..., ...}``.

        A ConcordError if the kind or one of its options is unknown, missing or out of range.
        """
        return cls(build(PartitionChoice, value, where), where)

    def split(self, rows: int | np.ndarray, agents: int, rng: np.random.Generator) -> Parts:
        """Divide rows among agents; return each agent's row numbers, an array for each.

        rows: number of rows, or the class of each row, shape (rows,); dirichlet needs the classes.
        agents: number of agents.
        rng: the generator of the partition, the same for all samplers.
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
    columns, sites: names of the features and of the agents; None: numbers.
    """

    features: np.ndarray
    targets: np.ndarray
    counts: np.ndarray
    columns: tuple[str, ...] | None = None
    sites: tuple[str, ...] | None = None

    @classmethod
    def from_parts(cls, features: np.ndarray, targets: np.ndarray, parts: Parts) -> AgentData:
        """Gather the rows of each part from features (rows, d) and targets (rows,)."""
        counts = np.array([len(part) for part in parts])
        shape = len(parts), counts.max()
        padded = np.zeros((*shape, *features.shape[1:]), dtype=features.dtype)
        aims = np.zeros(shape, dtype=targets.dtype)
        for agent, part in enumerate(parts):
            padded[agent, : len(part)] = features[part]
            aims[agent, : len(part)] = targets[part]
        return cls(padded, aims, counts)

    @cached_property
    def mask(self) -> np.ndarray:
        """Return 1.0 for every row and 0.0 for padding, shape (agents, n_max)."""
        return (np.arange(self.targets.shape[1]) < self.counts[:, None]).astype(float)

    def points_at(self, rows: np.ndarray, agents: Agents = ALL) -> tuple[np.ndarray, np.ndarray]:
        """Return features (..., agents, batch, d) and targets of rows (..., agents, batch).

        rows: numbers among an agent's own rows. agents: chosen agents, (chains, few); default: all.
        """
        places = rows + self._first_rows[agents]
        return self._all_rows.take(places, axis=0), self.targets.reshape(-1).take(places)

    @cached_property
    def _first_rows(self) -> np.ndarray:
        """Return the index of each agent's first row in tables of all rows, (agents, 1)."""
        agents, most = self.targets.shape
        return (np.arange(agents) * most)[:, None]

    @cached_property
    def _all_rows(self) -> np.ndarray:
        """Return all agents' rows in one array, (agents * n_max, ...), padding included."""
        return self.features.reshape(self.targets.size, *self.features.shape[2:])

    def all_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Return features (rows, d) and targets (rows,) of all agents, in agent order."""
        rows = self.mask.astype(bool)
        return self.features[rows], self.targets[rows]
