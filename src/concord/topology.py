r"""Topologies: undirected graphs over agents, their matrices, and fast products with them.

For a graph with adjacency A and degrees D = diag(deg_i):

.. math::
    L = D - A, \qquad
    W_{ij} = \frac{1}{1 + \max(\deg_i, \deg_j)} \text{ on edges}, \qquad
    W_{ii} = 1 - \sum_{j \ne i} W_{ij}

L is the Laplacian and W the Metropolis weights, symmetric and doubly stochastic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from concord.errors import ConcordError, nearest, short
from concord.parameters import build as build_options
from concord.parameters import param

# The most agents whose spectrum is computed, by dense solvers.
SPECTRUM_LIMIT = 2000
# The most agents of a network whose cost grows with their pairs. Networks are built when a
# configuration is checked, so a typing error must not fill the memory.
MOST_PAIRED = 2000

Apply = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Topology:
    """An undirected graph without self loops.

    Attributes
    ----------
    name
        Its kind, such as ``ring``.
    agents
        Number of agents N, which are numbered from 0.
    edges
        Sorted pairs (i, j) with i < j.
    """

    name: str
    agents: int
    edges: tuple[tuple[int, int], ...]

    @cached_property
    def degrees(self) -> np.ndarray:
        """Number of neighbors of each agent, shape (agents,)."""
        return np.bincount(self._ends.ravel(), minlength=self.agents)

    @cached_property
    def neighbors(self) -> tuple[np.ndarray, ...]:
        """For each agent, the sorted indices of its neighbors."""
        adjacency = self.adjacency()
        return tuple(adjacency.row(agent)[0] for agent in range(self.agents))

    @cached_property
    def connected(self) -> bool:
        """Whether a path joins every two agents."""
        import networkx as nx

        graph = nx.empty_graph(self.agents)
        graph.add_edges_from(self.edges)
        return bool(nx.is_connected(graph))

    @property
    def mean_degree(self) -> float:
        """Average number of neighbors."""
        return 2 * len(self.edges) / self.agents

    def adjacency(self) -> AgentMatrix:
        """Return A, one for each pair of neighbors."""
        return self._matrix(np.ones(len(self.edges)), np.zeros(self.agents))

    def laplacian(self) -> AgentMatrix:
        """Return L = D - A."""
        return self._matrix(-np.ones(len(self.edges)), self.degrees.astype(float))

    def metropolis(self) -> AgentMatrix:
        """Return the Metropolis weights W (gurbuzbalaban2021 and tzikas2024 mix with these)."""
        weights = 1 / (1 + self.degrees[self._ends].max(axis=1, initial=0))
        # Summed edge by edge in agent order: the same floats on every machine.
        leaving = np.bincount(
            self._ends.ravel(), weights=np.repeat(weights, 2), minlength=self.agents
        )
        return self._matrix(weights, 1 - leaving)

    def spectral(self) -> dict[str, float]:
        """Return the eigenvalues that convergence rates depend on.

        Returns
        -------
        dict
            Of the Metropolis weights: ``lambda_2``, the second largest eigenvalue; ``lambda_N``,
            the smallest; ``gamma_bar = max(|lambda_2|, |lambda_N|)``; ``spectral_gap =
            1 - gamma_bar``. Of the Laplacian: ``laplacian_max``, the largest, and
            ``algebraic_connectivity``, the second smallest. Of the signless Laplacian D + A:
            ``signless_max``, the largest. A single agent agrees with itself at once: its
            ``lambda_2``, ``lambda_N`` and ``algebraic_connectivity`` are 0.

        Raises
        ------
        ConcordError
            If there are more than ``SPECTRUM_LIMIT`` agents.
        """
        if self.agents > SPECTRUM_LIMIT:
            raise ConcordError(
                f"topology {self.name}: the spectrum of {self.agents} agents is too large to "
                f"compute; use at most {SPECTRUM_LIMIT} agents, or leave the spectrum out"
            )
        adjacency = self.adjacency().dense()
        weights = np.linalg.eigvalsh(self.metropolis().dense())[:-1]
        laplacian = np.linalg.eigvalsh(np.diag(self.degrees) - adjacency)
        lambda_2, lambda_n = (weights[-1], weights[0]) if self.agents > 1 else (0.0, 0.0)
        gamma_bar = max(abs(lambda_2), abs(lambda_n))
        return {
            "lambda_2": float(lambda_2),
            "lambda_N": float(lambda_n),
            "gamma_bar": float(gamma_bar),
            "spectral_gap": float(1 - gamma_bar),
            "laplacian_max": float(laplacian[-1]),
            "algebraic_connectivity": float(laplacian[1] if self.agents > 1 else 0.0),
            "signless_max": float(np.linalg.eigvalsh(np.diag(self.degrees) + adjacency)[-1]),
        }

    @cached_property
    def _ends(self) -> np.ndarray:
        return np.array(self.edges, dtype=np.intp).reshape(-1, 2)

    def _matrix(self, edge_values: np.ndarray, diagonal: np.ndarray) -> AgentMatrix:
        i, j = self._ends.T
        own = np.arange(self.agents)
        return AgentMatrix.from_entries(
            self.agents,
            np.concatenate([i, j, own]),
            np.concatenate([j, i, own]),
            np.concatenate([edge_values, edge_values, diagonal]),
        )


@dataclass(frozen=True, eq=False)
class AgentMatrix:
    """A sparse N x N matrix that acts on the agents, not necessarily symmetric.

    Attributes
    ----------
    agents
        Number of agents N.
    rows, columns, values
        Position and value of each nonzero entry, sorted by row, then by column; build one with
        ``from_entries`` or ``from_dense``, which see to that.
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
        if not rows.shape == columns.shape == values.shape or rows.ndim != 1:
            raise ValueError(f"entries of shapes {rows.shape}, {columns.shape}, {values.shape}")
        for index in (rows, columns):
            if index.size and not (index.min() >= 0 and index.max() < agents):
                raise ValueError(f"an index is outside 0, ..., {agents - 1}")
        places, inverse = np.unique(rows * agents + columns, return_inverse=True)
        sums = np.bincount(inverse, weights=values, minlength=places.size)
        kept = sums != 0
        rows, columns = np.divmod(places[kept], agents)
        return cls(agents, rows, columns, sums[kept])

    @classmethod
    def from_dense(cls, matrix: np.ndarray) -> AgentMatrix:
        """Build a matrix from an array of shape (agents, agents)."""
        matrix = np.asarray(matrix, dtype=float)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"an agent matrix is square, not of shape {matrix.shape}")
        rows, columns = np.nonzero(matrix)
        return cls(len(matrix), rows, columns, matrix[rows, columns])

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

    def identity_minus(self, c: float) -> AgentMatrix:
        """Return I - c M."""
        own = np.arange(self.agents)
        return AgentMatrix.from_entries(
            self.agents,
            np.concatenate([own, self.rows]),
            np.concatenate([own, self.columns]),
            np.concatenate([np.ones(self.agents), -c * self.values]),
        )

    def split(self) -> tuple[AgentMatrix, AgentMatrix]:
        """Return the strictly lower part and the rest, for updates in place.

        An agent that moves after agents 0, ..., i-1 sees their new values through the lower part
        and all other values, its own included, through the rest.
        """
        lower = self.columns < self.rows
        return self._select(lower), self._select(~lower)

    def row(self, agent: int) -> tuple[np.ndarray, np.ndarray]:
        """Return columns and values of the nonzero entries in the row of an agent."""
        start, end = np.searchsorted(self.rows, (agent, agent + 1))
        return self.columns[start:end], self.values[start:end]

    def operator(self, chains: int, dim: int, strategy: str | None = None) -> AgentOperator:
        """Return the product with arrays of shape (chains, agents, dim), buffers allocated.

        The strategy is chosen by the matrix and the shape unless one is named (see
        ``STRATEGIES``).
        """
        name = strategy or _choose(self, dim)
        return AgentOperator(name, STRATEGIES[name](self, chains, dim))

    def _select(self, mask: np.ndarray) -> AgentMatrix:
        return AgentMatrix(self.agents, self.rows[mask], self.columns[mask], self.values[mask])

    def _common_value(self) -> float | None:
        """The value all off-diagonal entries share, zeros counted, if there is one."""
        values = self.values[self.rows != self.columns]
        if values.size == 0:
            return 0.0
        full = values.size == self.agents * (self.agents - 1)
        return float(values[0]) if full and (values == values[0]).all() else None


@dataclass(frozen=True)
class AgentOperator:
    """A matrix prepared to act on the agents axis of arrays of one shape.

    ``operator(x, out)`` writes ``out[c, i, :] = sum_j M_ij x[c, j, :]`` and returns ``out``, for x
    and out of shape (chains, agents, dim) that do not overlap.
    """

    strategy: str
    apply: Apply

    def __call__(self, x: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Write M x into out."""
        return self.apply(x, out)


def _choose(matrix: AgentMatrix, dim: int) -> str:
    """Choose the fastest strategy.

    The limits were measured on one core, with 100 chains. Per call the sparse product overtakes
    the block product near agents * dim = 100 and the dense one near 20 agents; the limits lie
    higher, where a thousand iterations repay the 0.1 s that importing scipy takes.
    """
    common, size = matrix._common_value(), matrix.agents * dim
    if common is not None and (common == 0 or size > 64 or dim > 4):
        return "uniform"
    if dim <= 4 and size <= 200:
        return "block"
    return "dense" if matrix.agents <= 32 else "sparse"


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


def _block(matrix: AgentMatrix, chains: int, dim: int) -> Apply:
    """Multiply agents and dimensions at once by the Kronecker product of M and the identity."""
    blocks = np.ascontiguousarray(np.kron(matrix.dense(), np.eye(dim)).T)
    size = matrix.agents * dim

    def apply(x: np.ndarray, out: np.ndarray) -> np.ndarray:
        # An out that is not contiguous would be copied, and the result lost: copy=False refuses.
        np.matmul(x.reshape(chains, size), blocks, out=out.reshape(chains, size, copy=False))
        return out

    return apply


def _dense(matrix: AgentMatrix, chains: int, dim: int) -> Apply:
    """Multiply chain by chain with the dense matrix, for few agents."""
    weights = matrix.dense()
    return lambda x, out: np.matmul(weights, x, out=out)


def _sparse(matrix: AgentMatrix, chains: int, dim: int) -> Apply:
    """Multiply by a sparse matrix, agents first: the cost grows with the edges."""
    from scipy.sparse import csr_array

    entries = (matrix.values, (matrix.rows, matrix.columns))
    weights = csr_array(entries, shape=(matrix.agents, matrix.agents))
    buffer = np.empty((matrix.agents, chains, dim))
    flat = buffer.reshape(matrix.agents, chains * dim)

    def apply(x: np.ndarray, out: np.ndarray) -> np.ndarray:
        np.copyto(buffer, x.transpose(1, 0, 2))
        product = (weights @ flat).reshape(buffer.shape)
        np.copyto(out, product.transpose(1, 0, 2))
        return out

    return apply


STRATEGIES: dict[str, Callable[[AgentMatrix, int, int], Apply]] = {
    "uniform": _uniform,
    "block": _block,
    "dense": _dense,
    "sparse": _sparse,
}


def build(kind: str, agents: int, *, where: str = "topology", **options: Any) -> Topology:
    """Build a topology of a kind, with that kind's options.

    Parameters
    ----------
    kind
        ``complete``, ``ring``, ``no_edges``, ``star`` (agent 0 is the center), ``path``; ``grid``
        with option ``rows`` (default: the most square grid); ``erdos_renyi`` with ``probability``
        and ``seed`` (default 0); ``edge_list`` with ``edges``, pairs of agents.
    agents
        Number of agents; a grid needs rows * columns of them.
    where
        File and key for messages.

    Raises
    ------
    ConcordError
        If the kind or an option is unknown or does not suit the number of agents.
    """
    if isinstance(agents, bool) or not isinstance(agents, (int, np.integer)) or agents < 1:
        raise ConcordError(
            f"{where}: {short(agents)} is not a positive number of agents; give 1 or more"
        )
    given = parse(kind, options, where)
    if kind in ("complete", "erdos_renyi") and agents > MOST_PAIRED:
        raise ConcordError(
            f"{where}: {agents} agents are too many for kind {kind}, which looks at all pairs; "
            f"use at most {MOST_PAIRED}"
        )
    import networkx as nx

    graph = _KINDS[kind][1](nx, int(agents), given, where)
    edges = sorted((min(edge), max(edge)) for edge in graph.edges)
    return Topology(kind, int(agents), tuple(edges))


def parse(kind: Any, options: Mapping[str, Any], where: str) -> Any:
    """Return the typed options of a kind of topology, without building the graph.

    Raises
    ------
    ConcordError
        If the kind or an option is unknown, or a value does not fit.
    """
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ConcordError(
            f"{where}.kind: {short(kind)} is not a topology; {nearest(kind, _KINDS)}"
        )
    return build_options(_KINDS[kind][0], options, where)


@dataclass(frozen=True)
class _NoOptions:
    pass


@dataclass(frozen=True)
class _GridOptions:
    rows: int | None = param("number of rows; none: the most square grid", default=None, minimum=1)


@dataclass(frozen=True)
class _ErdosRenyiOptions:
    probability: float = param("probability of each edge", minimum=0, maximum=1)
    seed: int = param("seed of the graph", default=0, minimum=0)


@dataclass(frozen=True)
class _EdgeListOptions:
    edges: tuple[tuple[int, ...], ...] = param("pairs [i, j] of agents, from 0", minimum=0)


def _ring(nx: Any, agents: int, options: _NoOptions, where: str) -> Any:
    # One or two agents close no cycle: no edge, or a single one.
    return nx.cycle_graph(agents) if agents > 2 else nx.path_graph(agents)


def _grid(nx: Any, agents: int, options: _GridOptions, where: str) -> Any:
    rows = options.rows
    if rows is None:
        rows = max(r for r in range(1, math.isqrt(agents) + 1) if agents % r == 0)
    if agents % rows:
        raise ConcordError(
            f"{where}.rows: {rows} rows do not divide {agents} agents; "
            "give a divisor of the number of agents"
        )
    columns = agents // rows
    grid = nx.grid_2d_graph(rows, columns)
    return nx.relabel_nodes(grid, {(r, c): r * columns + c for r, c in grid})


def _erdos_renyi(nx: Any, agents: int, options: _ErdosRenyiOptions, where: str) -> Any:
    return nx.gnp_random_graph(agents, options.probability, seed=options.seed)


def _edge_list(nx: Any, agents: int, options: _EdgeListOptions, where: str) -> Any:
    graph = nx.empty_graph(agents)
    for index, edge in enumerate(options.edges):
        if len(edge) != 2:
            problem = "is not a pair; give two agents"
        elif max(edge) >= agents:
            problem = f"names an agent that does not exist; agents are 0 to {agents - 1}"
        elif edge[0] == edge[1]:
            problem = "joins an agent to itself; remove it"
        elif graph.has_edge(*edge):
            problem = "is given twice; remove one"
        else:
            graph.add_edge(*edge)
            continue
        raise ConcordError(f"{where}.edges[{index}]: {list(edge)} {problem}")
    return graph


# Options and graph of each kind; a graph function receives networkx, which is slow to import.
_KINDS: dict[str, tuple[type, Callable[..., Any]]] = {
    "complete": (_NoOptions, lambda nx, agents, *_: nx.complete_graph(agents)),
    "ring": (_NoOptions, _ring),
    "no_edges": (_NoOptions, lambda nx, agents, *_: nx.empty_graph(agents)),
    "star": (_NoOptions, lambda nx, agents, *_: nx.star_graph(agents - 1)),
    "path": (_NoOptions, lambda nx, agents, *_: nx.path_graph(agents)),
    "grid": (_GridOptions, _grid),
    "erdos_renyi": (_ErdosRenyiOptions, _erdos_renyi),
    "edge_list": (_EdgeListOptions, _edge_list),
}
