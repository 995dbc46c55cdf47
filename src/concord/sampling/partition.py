"""Partitions: how rows of data are divided among agents, and the divided data.

Every row goes to exactly one agent. Agents may hold different numbers of rows, so their data are
stored as one zero-padded array, which gradients of all agents traverse at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from concord.errors import ConcordError
from concord.options import Count, Kind, Positive, build

Parts = list[np.ndarray]

# Draws of the Dirichlet shares before a minimum is declared out of reach.
ATTEMPTS = 1000


def equal(rows: int, agents: int, rng: np.random.Generator) -> Parts:
    """Divide ``rows`` rows at random into parts whose sizes differ by at most one.

    Returns one array of row numbers per agent.
    """
    _enough(rows, agents)
    return np.array_split(rng.permutation(rows), agents)


def consecutive_counts(rows: int, agents: int) -> list[int]:
    """Return the sizes of ``agents`` consecutive parts, which differ by at most one."""
    _enough(rows, agents)
    return [rows // agents + (agent < rows % agents) for agent in range(agents)]


def sizes(counts: Sequence[int], rng: np.random.Generator) -> Parts:
    """Divide ``sum(counts)`` rows at random so that agent i gets ``counts[i]`` of them."""
    if min(counts, default=0) < 1:
        raise ConcordError(f"sizes {list(counts)} leave an agent without rows; give 1 or more each")
    ends = np.cumsum(counts)
    return np.split(rng.permutation(ends[-1]), ends[:-1])


def dirichlet(
    labels: np.ndarray, agents: int, concentration: float, minimum: int, rng: np.random.Generator
) -> Parts:
    """Divide rows so that sizes and class shares differ between agents.

    For each class the agents' shares of its rows are drawn from the symmetric Dirichlet law; the
    smaller the concentration, the more the agents differ. Shares are drawn again until every
    agent has at least ``minimum`` rows.

    Parameters
    ----------
    labels
        Class of each row, shape (rows,).
    agents, concentration, minimum
        Number of agents, parameter of the Dirichlet law, fewest rows of an agent.

    Raises
    ------
    ConcordError
        If there are too few rows, or no draw of ``ATTEMPTS`` meets the minimum.
    """
    minimum = max(minimum, 1)
    _enough(len(labels), agents, minimum)
    classes, members = np.unique(labels, return_counts=True)
    for _ in range(ATTEMPTS):
        shares = rng.dirichlet(np.full(agents, concentration), size=len(classes))
        inner = np.rint(np.cumsum(shares[:, :-1], axis=1) * members[:, None]).astype(int)
        ends = np.column_stack([np.zeros_like(members), inner, members])
        if np.diff(ends, axis=1).sum(axis=0).min() >= minimum:
            break
    else:
        raise ConcordError(
            f"no draw of {ATTEMPTS} gave each of {agents} agents the minimum of {minimum} rows "
            f"at concentration {concentration}; lower the minimum or raise the concentration"
        )
    rows = [rng.permutation(np.flatnonzero(labels == label)) for label in classes]
    pieces = [np.split(row, end[1:-1]) for row, end in zip(rows, ends, strict=True)]
    return [np.concatenate(part) for part in zip(*pieces, strict=True)]


def _enough(rows: int, agents: int, minimum: int = 1) -> None:
    if agents * minimum > rows:
        each = "a row" if minimum == 1 else f"{minimum} rows"
        raise ConcordError(
            f"{rows} rows cannot give each of {agents} agents {each}; use fewer agents or more data"
        )


class Equal(Kind):
    """Random parts of nearly equal size."""

    def split(self, labels: np.ndarray, agents: int, rng: np.random.Generator) -> Parts:
        """Return the rows of each agent."""
        return equal(len(labels), agents, rng)


class Consecutive(Kind):
    """Rows in their order, in parts of nearly equal size."""

    def split(self, labels: np.ndarray, agents: int, rng: np.random.Generator) -> Parts:
        """Return the rows of each agent."""
        ends = np.cumsum(consecutive_counts(len(labels), agents))
        return np.split(np.arange(len(labels)), ends[:-1])


class Sizes(Kind):
    """Random parts of given sizes."""

    sizes: Annotated[tuple[Count, ...], "number of rows of each agent, in agent order"]

    def split(self, labels: np.ndarray, agents: int, rng: np.random.Generator) -> Parts:
        """Return the rows of each agent."""
        if len(self.sizes) != agents:
            raise ConcordError(f"{len(self.sizes)} sizes for {agents} agents; give one per agent")
        if sum(self.sizes) != len(labels):
            raise ConcordError(
                f"sizes add up to {sum(self.sizes)} but there are {len(labels)} rows; "
                "make them equal"
            )
        return sizes(self.sizes, rng)


class Dirichlet(Kind):
    """Random parts with different sizes and class shares."""

    concentration: Annotated[Positive, "parameter of the Dirichlet law of the agents' shares"]
    minimum: Annotated[Count, "fewest rows of an agent"] = 1

    def split(self, labels: np.ndarray, agents: int, rng: np.random.Generator) -> Parts:
        """Return the rows of each agent."""
        return dirichlet(labels, agents, self.concentration, self.minimum, rng)


Way = Equal | Consecutive | Sizes | Dirichlet


@dataclass(frozen=True)
class Partition:
    """A way to divide rows, chosen by the user, and where the choice is written."""

    options: Way
    where: str = "partition"

    @classmethod
    def parse(cls, value: Any, where: str) -> Partition:
        """Build a partition from ``{kind: equal | consecutive | sizes | dirichlet, ...}``.

        Raises
        ------
        ConcordError
            If the kind or one of its options is unknown, missing or out of range.
        """
        return cls(build(Way, value, where), where)

    def split(self, rows: int | np.ndarray, agents: int, rng: np.random.Generator) -> Parts:
        """Divide rows among agents; returns one array of row numbers per agent.

        Parameters
        ----------
        rows
            Number of rows, or the class of each row, shape (rows,); dirichlet needs the classes.
        agents
            Number of agents.
        rng
            The stream of the partition, which samplers share.

        Raises
        ------
        ConcordError
            If the rows cannot be divided as asked.
        """
        if np.ndim(rows) == 0:
            if isinstance(self.options, Dirichlet):
                raise ConcordError(
                    f"{self.where}: kind dirichlet needs rows with classes, which this problem "
                    "does not have; use equal or sizes"
                )
            rows = np.zeros(rows, dtype=np.int8)
        try:
            return self.options.split(np.asarray(rows), agents, rng)
        except ConcordError as error:
            raise ConcordError(f"{self.where}: {error}") from None


@dataclass(frozen=True, eq=False)
class AgentData:
    """Rows of all agents in one array each, padded with zeros.

    Attributes
    ----------
    features
        Shape (agents, n_max, d), or (agents, n_max, ...) for rows that are arrays.
    targets
        Shape (agents, n_max).
    counts
        Rows of each agent, shape (agents,); agent i's are ``features[i, :counts[i]]``.
    """

    features: np.ndarray
    targets: np.ndarray
    counts: np.ndarray

    @classmethod
    def from_parts(cls, features: np.ndarray, targets: np.ndarray, parts: Parts) -> AgentData:
        """Gather the rows of each part from features (rows, d) and targets (rows,)."""
        counts = np.array([len(part) for part in parts])
        shape = (len(parts), counts.max())
        padded = np.zeros((*shape, *features.shape[1:]), dtype=features.dtype)
        aims = np.zeros(shape, dtype=targets.dtype)
        for agent, part in enumerate(parts):
            padded[agent, : len(part)] = features[part]
            aims[agent, : len(part)] = targets[part]
        return cls(padded, aims, counts)

    @cached_property
    def mask(self) -> np.ndarray:
        """One for a row, zero for padding; shape (agents, n_max), float."""
        return (np.arange(self.targets.shape[1]) < self.counts[:, None]).astype(float)

    def pooled(self) -> tuple[np.ndarray, np.ndarray]:
        """Return features (rows, d) and targets (rows,) of all agents, in agent order."""
        held = self.mask.astype(bool)
        return self.features[held], self.targets[held]
