"""Matrices that act on the agents, and the fastest way to multiply by each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from concord.compiled import kernel
from concord.libraries import sparse

Apply = Callable[[np.ndarray, np.ndarray], np.ndarray]

# Numbers in a block of a product: half a megabyte, which second-level caches hold.
BLOCK = 1 << 16

# Agents up to which a product may be that of a dense matrix.
FEW = 32


def copy_vectors(x: np.ndarray, out: np.ndarray, where: Any = True) -> None:
    """Copy x, (..., dim), into an array alike, the vectors that a mask (...) marks.

    A vector is copied as one item if it can: numpy takes up to four times as long for its numbers.
    """
    dim, size = x.shape[-1], x.itemsize
    if dim > 1 and x.dtype == out.dtype and x.strides[-1] == out.strides[-1] == size:
        item = f"V{dim * size}"
        x, out = x.view(item), out.view(item)
    np.copyto(out, x, where=where if where is True else where[..., None])


@dataclass(frozen=True, eq=False)
class AgentMatrix:
    """A sparse N x N matrix that acts on the agents, not necessarily symmetric.

    agents: number of agents N. rows, columns, values: position and value of each nonzero entry,
    sorted by row, then by column; build one with ``from_entries``, which sees to that.
    """

    agents: int
    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray

    @classmethod
    def from_entries(
        cls, agents: int, rows: np.ndarray, columns: np.ndarray, values: np.ndarray
    ) -> AgentMatrix:
        """Build a matrix from entries in any order; entries at one position add up."""
        rows, columns = np.asarray(rows, dtype=np.intp), np.asarray(columns, dtype=np.intp)
        values = np.asarray(values, dtype=float)
        ends = np.concatenate([rows, columns])
        if ends.size and not 0 <= ends.min() <= ends.max() < agents:
            raise ValueError(f"an index is outside 0, ..., {agents - 1}")
        places, inverse = np.unique(rows * agents + columns, return_inverse=True)
        sums = np.bincount(inverse, weights=values, minlength=places.size)
        kept = sums != 0
        rows, columns = np.divmod(places[kept], agents)
        return cls(agents, rows, columns, sums[kept])

    @classmethod
    def with_diagonal(
        cls, rows: np.ndarray, columns: np.ndarray, values: np.ndarray, diagonal: np.ndarray
    ) -> AgentMatrix:
        """Build a matrix from entries and what is added on its diagonal, (agents,)."""
        own = np.arange(len(diagonal))
        rows, columns = np.concatenate([rows, own]), np.concatenate([columns, own])
        return cls.from_entries(len(own), rows, columns, np.concatenate([values, diagonal]))

    def dense(self) -> np.ndarray:
        """Return the matrix as an array of shape (agents, agents)."""
        matrix = np.zeros((self.agents, self.agents))
        matrix[self.rows, self.columns] = self.values
        return matrix

    @property
    def diagonal(self) -> np.ndarray:
        """The diagonal, shape (agents,)."""
        own = self.rows == self.columns
        return np.bincount(self.rows[own], weights=self.values[own], minlength=self.agents)

    def sums(self) -> np.ndarray:
        """Return the sums of the columns and then of the rows, shape (2 agents,)."""
        columns = np.bincount(self.columns, self.values, self.agents)
        return np.concatenate([columns, np.bincount(self.rows, self.values, self.agents)])

    def and_identity(self, share: float, own: float) -> AgentMatrix:
        """Return ``share`` of the matrix and ``own`` of the identity."""
        diagonal = np.full(self.agents, own)
        return self.with_diagonal(self.rows, self.columns, share * self.values, diagonal)

    def inbox(self) -> np.ndarray:
        """Return what acts on the vectors that arrive, (agents, entries off the diagonal).

        Its columns are in the order of the entries: by receiver, then by sender.
        """
        off = self.rows != self.columns
        matrix = np.zeros((self.agents, int(off.sum())))
        matrix[self.rows[off], np.arange(off.sum())] = self.values[off]
        return matrix

    def row(self, agent: int) -> tuple[np.ndarray, np.ndarray]:
        """Return columns and values of the nonzero entries in the row of an agent."""
        start, end = np.searchsorted(self.rows, (agent, agent + 1))
        return self.columns[start:end], self.values[start:end]

    def in_order(self, dim: int) -> bool:
        """Tell whether its product adds up each row's entries in their order."""
        return STRATEGIES[_choose(self, dim)] in IN_ORDER

    def operator(self, chains: int, dim: int, strategy: str | None = None) -> Apply:
        """Return ``apply(x, out)``, the product with x, (chains, agents, dim), buffers allocated.

        It writes ``out[c, i, :] = sum_j M_ij x[c, j, :]`` and returns ``out``, which does not
        overlap x. The strategy is chosen by the matrix and the shape unless one is named
        (``STRATEGIES``).
        """
        made = STRATEGIES[strategy or _choose(self, dim)]
        if strategy is not None or made not in IN_ORDER or not (weigh := kernel("weigh", dim)):
            return made(self, chains, dim)
        rows, agents = self.by_row, self.agents

        @cache
        def other() -> Apply:  # of the entries by row alone, so that none is held twice
            starts, columns, values = rows
            places = np.repeat(np.arange(agents), np.diff(starts))
            entries = AgentMatrix(agents, places, columns.astype(np.intp), values)
            return made(entries, chains, dim)

        def apply(x: np.ndarray, out: np.ndarray) -> np.ndarray:
            try:
                weigh(x, *rows, out)
            except TypeError:  # single precision, or parts of arrays
                other()(x, out)
            return out

        return apply

    def kicked(self, dim: int) -> Callable[..., bool] | None:
        """Return ``kicked(x, *kick, out)``: the product and a kick, if they are compiled.

        It returns whether these arguments suit it. None where they are not compiled.
        """
        move = kernel("move", dim) if self.in_order(dim) else None
        if move is None:
            return None
        rows = self.by_row

        def kicked(x: np.ndarray, *more: Any) -> bool:
            try:
                move(x, *rows, *more)
            except TypeError:  # single precision, parts of arrays, or a step for each agent
                return False
            return True

        return kicked

    @cached_property
    def by_row(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return where each row's entries begin, and the columns and values of all entries."""
        starts = np.searchsorted(self.rows, np.arange(self.agents + 1)).astype(np.uint32)
        return starts, self.columns.astype(np.uint32), self.values

    def _common_value(self) -> float | None:
        """The value all off-diagonal entries share, zeros counted, if there is one."""
        values = self.values[self.rows != self.columns]
        if values.size == 0:
            return 0.0
        full = values.size == self.agents * (self.agents - 1)
        return float(values[0]) if full and (values == values[0]).all() else None


def _choose(matrix: AgentMatrix, dim: int) -> str:
    """Choose the fastest strategy.

    The limits were measured on one core, with 100 chains. Per call the sparse product overtakes
    the one by ranks near agents * dim = 1000; the limit lies higher, where a thousand iterations
    repay the 0.1 s that importing scipy takes.
    """
    common, size = matrix._common_value(), matrix.agents * dim
    if common is not None and (common == 0 or size > 64 or dim > 4):
        return "uniform"
    if matrix.agents <= FEW and dim > 32:
        return "dense"
    return "ranked" if size <= 1000 and size * _ranks(matrix) <= 1000 else "sparse"


def _ranks(matrix: AgentMatrix) -> int:
    """Return the most entries of a row."""
    return int(np.bincount(matrix.rows, minlength=1).max())


def _uniform(matrix: AgentMatrix, chains: int, dim: int) -> Apply:
    """Use that all off-diagonal entries are equal, as on the complete graph: cost O(agents)."""
    common = matrix._common_value()
    if common is None:
        raise ValueError("the off-diagonal entries differ")
    own = (matrix.diagonal - common)[:, None]
    scale = own if np.ptp(own) else own[0, 0]
    if common == 0:
        return lambda x, out: np.multiply(x, scale, out=out)
    share = np.full((1, matrix.agents), common)
    total = np.empty((chains, 1, dim))

    def apply(x: np.ndarray, out: np.ndarray) -> np.ndarray:
        np.matmul(share, x, out=total)
        np.multiply(x, scale, out=out)
        return np.add(out, total, out=out)

    return apply


def _ranked(matrix: AgentMatrix, chains: int, dim: int) -> Apply:
    """Add up the first entries of all rows, the second ones, and so on, for few agents."""
    agents, ranks, (starts, columns, values) = matrix.agents, _ranks(matrix), matrix.by_row
    rank = np.arange(len(columns)) - starts[matrix.rows]
    # Where a row has fewer entries than others it hears from one more agent, at zero.
    senders, weights = np.full((ranks, agents), agents), np.zeros((ranks, agents, dim))
    senders[rank, matrix.rows], weights[rank, matrix.rows] = columns, values[:, None]
    whole, places = len(columns) == ranks * agents, senders.reshape(-1)
    held, heard = np.zeros((chains, agents + 1, dim)), np.empty((chains, ranks * agents, dim))
    parts, together = heard.reshape(chains, ranks, agents, dim), heard.reshape(chains, -1)
    every = weights.reshape(-1)

    def apply(x: np.ndarray, out: np.ndarray) -> np.ndarray:
        if not whole or x.dtype != float:
            held[:, :-1] = x
            x = held
        x.take(places, 1, heard, "clip")
        np.multiply(together, every, out=together)
        np.add.reduce(parts, axis=1, out=out, initial=0.0)
        return out

    return apply


def _dense(matrix: AgentMatrix, chains: int, dim: int) -> Apply:
    """Multiply chain by chain with the dense matrix, for few agents of many dimensions."""
    weights = matrix.dense()
    return lambda x, out: np.matmul(weights, x, out=out)


def _sparse(matrix: AgentMatrix, chains: int, dim: int) -> Apply:
    """Multiply by a sparse matrix: the cost grows with the edges.

    Few agents come first, all chains together. Many are taken chain by chain, where nothing is
    transposed, in blocks of rows whose product stays in the cache.
    """
    agents = matrix.agents
    index = sparse().get_index_dtype(maxval=max(agents, len(matrix.rows)))  # of 4 bytes, if they do
    starts = np.searchsorted(matrix.rows, np.arange(agents + 1)).astype(index)
    columns = matrix.columns.astype(index)

    def block(first: int, last: int) -> Any:
        """Return these rows, without a copy of their entries."""
        own = slice(starts[first], starts[last])
        entries = matrix.values[own], columns[own], starts[first : last + 1] - starts[first]
        return sparse().csr_array(entries, shape=(last - first, agents))

    if agents * dim >= 2 * BLOCK:
        ends = [*range(0, agents, BLOCK // dim), agents]
        blocks = [(slice(i, j), block(i, j)) for i, j in pairwise(ends)]

        def by_chain(x: np.ndarray, out: np.ndarray) -> np.ndarray:
            for old, new in zip(x, out, strict=True):
                for rows, block in blocks:
                    new[rows] = block @ old
            return out

        return by_chain
    weights, buffer = block(0, agents), np.empty((agents, chains, dim))
    flat = buffer.reshape(agents, chains * dim)

    def apply(x: np.ndarray, out: np.ndarray) -> np.ndarray:
        copy_vectors(x.transpose(1, 0, 2), buffer)
        product = (weights @ flat).reshape(agents, chains, dim)
        copy_vectors(product.transpose(1, 0, 2), out)
        return out

    return apply


STRATEGIES: dict[str, Callable[[AgentMatrix, int, int], Apply]] = {
    "uniform": _uniform,
    "dense": _dense,
    "ranked": _ranked,
    "sparse": _sparse,
}
# Those that add up a row's entries in their order, from zero on, as kernels do.
IN_ORDER = _ranked, _sparse
