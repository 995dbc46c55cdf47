"""Graphs by formula, whose edges are not held.

Nor are the weights of a cycle, so that it may be very large.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any

import numpy as np

from concord.networks.matrix import BLOCK, AgentMatrix, Apply


@dataclass(frozen=True)
class Formula(Sequence[tuple[int, int]]):
    """Sorted edges of a graph of so many agents, which are made only where somebody asks."""

    agents: int

    def __getitem__(self, place: Any) -> Any:
        """Return one, or some."""
        return tuple(self)[place]

    def __eq__(self, other: object) -> bool:
        """Return whether others are the same."""
        return other.agents == self.agents if type(other) is type(self) else tuple(self) == other

    def __hash__(self) -> int:
        """Return the hash of the same pairs in a tuple."""
        return hash(tuple(self))


class AllPairs(Formula):
    """The edges of a complete graph."""

    def __len__(self) -> int:
        """Return how many they are."""
        return self.agents * (self.agents - 1) // 2

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Yield them in order."""
        return combinations(range(self.agents), 2)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Return them as an array, (edges, 2)."""
        return np.column_stack(np.triu_indices(self.agents, 1)).astype(dtype or np.intp)


class Cycle(Formula):
    """The edges of a ring of three agents or more."""

    def __len__(self) -> int:
        """Return how many they are."""
        return self.agents

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Yield them in order."""
        ends = ((i, i + 1) for i in range(1, self.agents - 1))
        return chain([(0, 1), (0, self.agents - 1)], ends)


class Around(AgentMatrix):
    """A matrix with one value on the diagonal of a cycle, and one for both neighbors.

    span: of which agents the rows are. Its product adds up a row's entries in their order.
    """

    own: float
    common: float
    span: slice

    def __init__(self, agents: int, own: float, common: float, span: slice | None = None) -> None:
        span = slice(0, agents) if span is None else span
        vars(self).update(agents=agents, own=own, common=common, span=span, width=None)

    def __getattr__(self, name: str) -> Any:
        """Return rows, columns or values of its entries, made when somebody asks for them."""
        if name not in ("rows", "columns", "values"):
            raise AttributeError(name)
        rows = np.repeat(np.arange(self.agents), 3)
        columns = np.sort(np.add(rows.reshape(-1, 3), [-1, 0, 1]) % self.agents).ravel()
        values = np.where(rows == columns, self.own, self.common)
        kept = values != 0
        vars(self).update(rows=rows[kept], columns=columns[kept], values=values[kept])
        return vars(self)[name]

    @property
    def diagonal(self) -> np.ndarray:
        """The diagonal, shape (agents,)."""
        return np.broadcast_to(self.own, self.agents)

    def sums(self) -> np.ndarray:
        """Return the sum of each column and row, which are all alike, (1,)."""
        return np.array([self.own + 2 * self.common])

    def and_identity(self, share: float, own: float) -> AgentMatrix:
        """Return ``share`` of the matrix and ``own`` of the identity."""
        return Around(self.agents, share * self.own + own, share * self.common)

    def in_order(self, dim: int) -> bool:
        """Tell that its product adds up each row's entries in their order."""
        return True

    def kicked(self, dim: int) -> Callable[..., bool] | None:
        """Return nothing: kicks are added after the product."""
        return None

    def part(self, agents: slice) -> tuple[np.ndarray, AgentMatrix]:
        """Return the rows of some agents, and of which agents they have entries, increasing."""
        first, last, many = agents.start, agents.stop, self.agents
        beside = {(first - 1) % many, last % many}
        beside = {agent for agent in beside if not first <= agent < last}
        before = sorted(agent for agent in beside if agent < first)
        after = sorted(agent for agent in beside if agent >= last)
        held = np.concatenate([before, np.arange(first, last), after]).astype(np.intp)
        return held, Around(many, self.own, self.common, agents)

    def operator(self, chains: int, dim: int, strategy: str | None = None) -> Apply:
        """Return ``apply(x, out)``, the product with x of the agents that ``part`` names."""
        held, (first, last) = self.part(self.span)[0], (self.span.start, self.span.stop)
        lower = int(np.searchsorted(held, first))
        ends = []  # rows whose neighbors may be anywhere: the places of these, by number
        for agent in sorted({first, last - 1}):
            heard = sorted({(agent + step) % self.agents for step in (-1, 0, 1)})
            places = np.searchsorted(held, heard)
            weights = [self.own if other == agent else self.common for other in heard]
            ends.append((agent - first, list(zip(places, weights, strict=True))))
        rows = range(1, last - first - 1, max(1, BLOCK // dim))
        blocks = [(i, min(i + rows.step, last - first - 1)) for i in rows]
        beside = np.empty((min(rows.step, last - first), dim))

        def apply(x: np.ndarray, out: np.ndarray) -> np.ndarray:
            for old, new in zip(x, out, strict=True):
                for i, j in blocks:
                    own, more = new[i:j], beside[: j - i]
                    np.multiply(old[lower + i - 1 : lower + j - 1], self.common, out=own)
                    np.add(own, np.multiply(old[lower + i : lower + j], self.own, out=more), own)
                    other = old[lower + i + 1 : lower + j + 1]
                    np.add(own, np.multiply(other, self.common, out=more), out=own)
                for row, entries in ends:
                    new[row] = 0.0
                    for place, weight in entries:
                        new[row] += weight * old[place]
            return out

        return apply
