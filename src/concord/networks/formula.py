"""Graphs by formula, whose edges nobody holds.

Nor are the weights of large ones held, so that a process that has some of the agents makes the rows
of these alone.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from concord.libraries import sparse
from concord.networks.matrix import BLOCK, FEW, AgentMatrix, Apply

# The most agents of a network whose edges are listed, or whose weights are held whole.
MOST_LISTED = 100_000

# What a matrix has off its diagonal, and on it: of the rows' degrees (rows,), each entry's row
# among these, and the degree of its column's agent.
Weigh = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True, eq=False)
class Formula(Sequence[tuple[int, int]]):
    """Sorted edges of a connected, undirected graph, which are made only where somebody asks.

    beside: ``beside(agents, who, *options)`` returns the neighbors of these agents, (who, most);
    an agent itself stands where there are fewer, and one may be there twice.
    alike: whether all have as many.
    """

    agents: int
    beside: Callable[..., np.ndarray]
    options: tuple[Any, ...] = ()
    alike: bool = True

    def near(self, who: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return how many these agents and their neighbors are, (who,), and all these, in order."""
        table = np.column_stack([self.beside(self.agents, who, *self.options), who])
        table.sort(axis=1)
        new = np.ones(table.shape, dtype=bool)
        np.not_equal(table[:, 1:], table[:, :-1], out=new[:, 1:])
        return new.sum(axis=1), table[new]

    def degrees(self, who: np.ndarray) -> np.ndarray:
        """Return how many neighbors these agents have; where all are alike, held once."""
        if self.alike and len(who):
            return np.broadcast_to(self.near(who[:1])[0][0] - 1, who.shape)
        return self.near(who)[0] - 1

    def pieces(self, agents: slice) -> Iterator[np.ndarray]:
        """Yield consecutive agents, in pieces that caches hold."""
        for first in range(agents.start, agents.stop, BLOCK):
            yield np.arange(first, min(first + BLOCK, agents.stop))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Return the edges as an array, (edges, 2)."""
        who = np.arange(self.agents)
        counts, others = self.near(who)
        pairs = np.column_stack([np.repeat(who, counts), others])
        return pairs[pairs[:, 0] < pairs[:, 1]].astype(dtype or np.intp, copy=False)

    def __len__(self) -> int:
        """Return how many they are."""
        pieces = self.pieces(slice(0, self.agents))
        return sum(int(self.degrees(who).sum()) for who in pieces) // 2

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return self.agents > 1

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Yield them in order."""
        return ((i, j) for i, j in np.asarray(self).tolist())

    def __getitem__(self, place: Any) -> Any:
        """Return one, or some."""
        return tuple(self)[place]

    def __eq__(self, other: object) -> bool:
        """Return whether others are the same."""
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        """Return the hash of the same pairs in a tuple."""
        return hash(tuple(self))


def everybody(agents: int, who: np.ndarray) -> np.ndarray:
    """Return the neighbors of these agents in a complete graph."""
    return np.tile(np.arange(agents), (len(who), 1))


class ByRow(AgentMatrix):
    """A matrix of a graph by formula, whose rows are made where somebody asks for them.

    weigh: its entries. total: of each row and column, which ``weigh`` makes alike; None: they
    differ. span: the agents whose rows these are.
    """

    graph: Formula
    weigh: Weigh
    total: float | None
    span: slice

    def __init__(
        self, graph: Formula, weigh: Weigh, total: float | None, span: slice | None = None
    ) -> None:
        vars(self).update(agents=graph.agents, width=None, graph=graph, weigh=weigh, total=total)
        vars(self).update(span=span or slice(0, graph.agents))

    rows = cached_property(lambda self: self._whole[0])
    columns = cached_property(lambda self: self._whole[1])
    values = cached_property(lambda self: self._whole[2])
    _whole = cached_property(lambda self: self.entries(np.arange(self.agents)))

    def entries(self, who: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return rows, columns and values of the entries in the rows of these agents."""
        counts, columns = self.graph.near(who)
        rows = np.repeat(np.arange(len(who)), counts)
        off = columns != who[rows]
        values = np.empty(len(rows))
        others = self.graph.degrees(columns[off])
        values[off], values[~off] = self.weigh(counts - 1, rows[off], others)
        kept = values != 0
        return who[rows[kept]], columns[kept], values[kept]

    @property
    def diagonal(self) -> np.ndarray:
        """The diagonal, shape (agents,)."""
        if not self.graph.alike:
            return super().diagonal
        _, columns, values = self.entries(np.arange(1))
        return np.broadcast_to(values[columns == 0].sum(), self.agents)

    def _common_value(self) -> float | None:
        if self.graph.beside is not everybody:
            return None if self.agents > FEW else super()._common_value()
        _, columns, values = self.entries(np.arange(1))
        return float(values[columns > 0].max()) if (columns > 0).any() else 0.0

    def sums(self) -> np.ndarray:
        """Return the sums of the columns and then of the rows; where all are alike, one."""
        return super().sums() if self.total is None else np.array([self.total])

    def and_identity(self, share: float, own: float) -> AgentMatrix:
        """Return ``share`` of the matrix and ``own`` of the identity."""

        def weigh(*given: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            values, diagonal = self.weigh(*given)
            return share * values, share * diagonal + own

        return ByRow(self.graph, weigh, None if self.total is None else share * self.total + own)

    @property
    def _large(self) -> bool:
        return self.agents > MOST_LISTED

    def kicked(self, dim: int) -> Callable[..., bool] | None:
        """Return nothing for large ones, to whose product kicks are added."""
        return None if self._large else super().kicked(dim)

    def part(self, agents: slice) -> tuple[np.ndarray, AgentMatrix]:
        """Return the rows of some agents, and of which agents they have entries, increasing."""
        if not self._large:
            return super().part(agents)
        heard = (self.entries(who)[1] for who in self.graph.pieces(agents))
        beside = np.unique(
            np.concatenate([np.unique(i[(i < agents.start) | (i >= agents.stop)]) for i in heard])
        )
        before, after = np.split(beside, [np.searchsorted(beside, agents.start)])
        held = np.concatenate([before, np.arange(agents.start, agents.stop), after])
        return held, ByRow(self.graph, self.weigh, self.total, agents)

    def operator(self, chains: int, dim: int, strategy: str | None = None) -> Apply:
        """Return ``apply(x, out)``, the product with x of the agents that ``part`` names.

        Of large ones entries are held of blocks alone whose rows are not all alike.
        """
        if not self._large:
            return super().operator(chains, dim, strategy)
        held, (first, last) = self.part(self.span)[0], (self.span.start, self.span.stop)
        blocks: list[tuple[slice, Any]] = []
        for begin in range(first, last, max(1, BLOCK // dim)):
            who = np.arange(begin, min(begin + max(1, BLOCK // dim), last))
            rows, columns, values = self.entries(who)
            rows, columns = rows - begin, np.searchsorted(held, columns)
            each = len(rows) // len(who)  # entries of a row, if all have as many
            same = len(rows) == each * len(who) and all(
                (entries.reshape(-1, each) == entries[:each]).all()
                for entries in (columns - rows, values)
            )
            own = slice(begin - first, begin - first + len(who))
            if same:
                entries = list(zip(columns[:each].tolist(), values[:each].tolist(), strict=True))
                blocks.append((own, entries))
            else:
                shape = len(who), len(held)
                blocks.append((own, sparse().csr_array((values, (rows, columns)), shape=shape)))
        product = np.empty((min(last - first, max(1, BLOCK // dim)), dim))

        def apply(x: np.ndarray, out: np.ndarray) -> np.ndarray:
            for old, whole in zip(x, out, strict=True):
                for rows, entries in blocks:
                    new = whole[rows]
                    if not isinstance(entries, list):
                        new[:] = entries @ old
                        continue
                    new[:] = 0.0
                    for begin, weight in entries:
                        heard = old[begin : begin + len(new)]
                        np.add(new, np.multiply(heard, weight, product[: len(new)]), out=new)
            return out

        return apply
