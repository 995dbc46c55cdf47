r"""Graphs over agents, and their matrices.

For an undirected graph with adjacency A and degrees D = diag(deg_i):

.. math::
    L = D - A, \qquad
    W_{ij} = \frac{1}{1 + \max(\deg_i, \deg_j)} \text{ on edges}, \qquad
    W_{ii} = 1 - \sum_{j \ne i} W_{ij}

L is the Laplacian and W the Metropolis weights, symmetric and doubly stochastic. Rows are receivers
and columns senders, of directed graphs too: A_ij = 1 if agent i hears agent j.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from concord.errors import ConcordError

# Agents up to which matrices over them are dense, where BLAS is the fastest.
DENSE_AGENTS = 64

# Agents up to which spectra are computed: a dense solver takes seconds beyond.
SPECTRUM_AGENTS = 2000

Matrix = Any  # (agents, agents): an array, or a sparse one of scipy


@dataclass(frozen=True, eq=False)
class Graph:
    """A graph without self loops, whose agents are numbered from 0.

    agents: number of agents N.
    edges: pairs (i, j), (edges, 2): both hear each other; in a directed graph j hears i.
    directed: whether edges have a direction.
    weights: a mixing matrix of its own, used where samplers ask for Metropolis weights.
    nodes: what a caller's own graph calls the agents, by their numbers; None: numbers.
    server_messages: where a server averages over all agents, the vectors that each agent sends and
    receives for one average, (agents,); None: agents talk to their neighbors.
    name: its kind, such as ``ring``.
    """

    agents: int
    edges: np.ndarray
    directed: bool = False
    weights: Matrix | None = None
    nodes: tuple[Any, ...] | None = None
    server_messages: np.ndarray | None = None
    name: str = "graph"
    _matrices: dict[Any, Matrix] = field(default_factory=dict, repr=False)

    @cached_property
    def _ways(self) -> tuple[np.ndarray, np.ndarray]:
        pairs = np.asarray(self.edges, dtype=np.intp).reshape(-1, 2)
        senders, receivers = pairs.T if self.directed else np.concatenate([pairs, pairs[:, ::-1]]).T
        order = np.lexsort((senders, receivers))
        return senders[order], receivers[order]

    @property
    def senders(self) -> np.ndarray:
        """Who sends over each way, ordered by receiver and then by sender, (ways,)."""
        return self._ways[0]

    @property
    def receivers(self) -> np.ndarray:
        """Who hears over each way, (ways,); an edge is two ways, of a directed graph one."""
        return self._ways[1]

    @cached_property
    def links(self) -> np.ndarray:
        """The number of the link that each way belongs to, both ways of an edge alike, (ways,)."""
        low, high = np.minimum(*self._ways), np.maximum(*self._ways)
        links: np.ndarray = np.unique(low * self.agents + high, return_inverse=True)[1]
        return links

    @property
    def link_count(self) -> int:
        """How many links there are."""
        return int(self.links.max(initial=-1)) + 1

    @property
    def pair_numbers(self) -> np.ndarray:
        """A number for the receiver and sender of each way, increasing, (ways,)."""
        return self.receivers * self.agents + self.senders

    def numbers_of(self, edges: Any) -> np.ndarray:
        """Return the ``pair_numbers`` of the ways of these edges (i, j)."""
        senders, receivers = np.array(edges, dtype=np.intp).reshape(-1, 2).T
        numbers = receivers * self.agents + senders
        if self.directed:
            return numbers
        return np.concatenate([numbers, senders * self.agents + receivers])

    def per_receiver(self, operation: np.ufunc, values: np.ndarray) -> np.ndarray:
        """Return for each way what an operation makes of the values of all ways to its receiver.

        values: (ways, ...).
        """
        _, first, place = np.unique(self.receivers, return_index=True, return_inverse=True)
        reduced: np.ndarray = operation.reduceat(values, first, axis=0)[place]
        return reduced

    def add_up_sent(self, values: np.ndarray) -> np.ndarray:
        """Return the sum over the ways from each agent, (agents, ...), of values (ways, ...)."""
        kind, begin = np.result_type(values, np.int64), np.cumsum(self.degrees) - self.degrees
        total, sends = np.zeros((self.agents, *values.shape[1:]), kind), self.degrees > 0
        total[sends] = np.add.reduceat(values[self.way_back], begin[sends], axis=0, dtype=kind)
        return total

    @cached_property
    def way_back(self) -> np.ndarray:
        """The ways ordered by sender and then receiver: of an undirected graph each way's back."""
        return np.lexsort((self.receivers, self.senders))

    @cached_property
    def degrees(self) -> np.ndarray:
        """How many neighbors hear each agent, (agents,)."""
        return np.bincount(self.senders, minlength=self.agents)

    @cached_property
    def in_degrees(self) -> np.ndarray:
        """How many neighbors each agent hears, (agents,)."""
        return np.bincount(self.receivers, minlength=self.agents)

    @cached_property
    def neighbors(self) -> list[np.ndarray]:
        """The neighbors that each agent hears, increasing."""
        return np.split(self.senders, np.cumsum(self.in_degrees)[:-1])

    @cached_property
    def is_connected(self) -> bool:
        """Whether a path leads from every agent to every other."""
        if self.agents <= DENSE_AGENTS:
            reached = self.matrix(np.ones(len(self.senders)), 1.0) > 0
            for _ in range(self.agents.bit_length()):
                reached = reached @ reached
            return bool(reached.all())
        from scipy import sparse  # a tenth of a second

        ones = np.ones(len(self.senders), dtype=np.int8)
        matrix = sparse.csr_array((ones, self._ways), shape=(self.agents, self.agents))
        parts, _ = sparse.csgraph.connected_components(matrix, connection="strong")
        return bool(parts == 1)

    def matrix(self, values: np.ndarray, diagonal: np.ndarray | float) -> Matrix:
        """Return the matrix with these values on the ways, (ways,), and on the diagonal."""
        own, shape = np.arange(self.agents), (self.agents, self.agents)
        rows = np.concatenate([self.receivers, own])
        columns = np.concatenate([self.senders, own])
        entries = np.concatenate([values, np.broadcast_to(diagonal, self.agents)])
        if self.agents <= DENSE_AGENTS:
            dense = np.zeros(shape, entries.dtype)
            dense[rows, columns] = entries
            return dense
        from scipy import sparse

        return sparse.csr_array((entries, (rows, columns)), shape=shape)

    def identity(self) -> Matrix:
        """Return I, with entries of zero on the ways where it is sparse."""
        return self.matrix(np.zeros(len(self.senders)), 1.0)

    @property
    def weighs_beyond_edges(self) -> bool:
        """Whether its own weights join agents that are no neighbors."""
        if self.weights is None:
            return False
        allowed = self.matrix(np.ones(len(self.senders)), 1.0)
        return bool((abs(as_dense(self.weights)) > 0)[as_dense(allowed) == 0].any())

    def adjacency(self) -> Matrix:
        """Return A, one where a row's agent hears a column's."""
        return self.matrix(np.ones(len(self.senders)), 0.0)

    def laplacian(self) -> Matrix:
        """Return L = D - A; a ConcordError if the graph is directed."""
        self._refuse_directed("a Laplacian")
        return self.matrix(np.full(len(self.senders), -1.0), self.degrees)

    def signless_laplacian(self) -> Matrix:
        """Return D + A."""
        return self.matrix(np.ones(len(self.senders)), self.degrees)

    def metropolis(self) -> Matrix:
        """Return the Metropolis weights W; a ConcordError if the graph is directed."""
        self._refuse_directed("Metropolis weights")
        largest = np.maximum(self.degrees[self.receivers], self.degrees[self.senders])
        values = 1 / (1 + largest)
        return self.matrix(values, 1 - np.bincount(self.receivers, values, self.agents))

    def spectrum(self) -> dict[str, float]:
        """Return the eigenvalues that rates of convergence depend on.

        Of the weights W: ``lambda_2`` and ``lambda_N``, the second largest and the smallest;
        ``gamma_bar``, the larger of their moduli; ``spectral_gap`` = 1 - gamma_bar. Of the
        Laplacian: ``laplacian_max`` and ``algebraic_connectivity``, the largest and the second
        smallest. Of D + A: ``signless_max``, the largest. A ConcordError for directed graphs and
        beyond ``SPECTRUM_AGENTS``.
        """
        self._refuse_directed("this spectrum")
        if self.agents > SPECTRUM_AGENTS:
            raise ConcordError(
                f"topology {self.name}: the spectrum of {self.agents} agents is too large to "
                f"compute; use at most {SPECTRUM_AGENTS} agents, or leave the spectrum out"
            )
        own = self.metropolis() if self.weights is None else self.weights
        weights, laplacian, adjacency = map(as_dense, (own, self.laplacian(), self.adjacency()))
        of_weights = np.linalg.eigvalsh(weights)[:-1] if self.agents > 1 else np.zeros(1)
        of_laplacian = np.linalg.eigvalsh(laplacian)
        gamma_bar = max(abs(of_weights[-1]), abs(of_weights[0]))
        found = {
            "lambda_2": of_weights[-1],
            "lambda_N": of_weights[0],
            "gamma_bar": gamma_bar,
            "spectral_gap": 1 - gamma_bar,
            "laplacian_max": of_laplacian[-1],
            "algebraic_connectivity": of_laplacian[1] if self.agents > 1 else 0.0,
            "signless_max": np.linalg.eigvalsh(np.diag(self.degrees) + adjacency)[-1],
        }
        return {name: float(value) for name, value in found.items()}

    def _refuse_directed(self, what: str) -> None:
        if self.directed:
            raise ConcordError(
                f"topology {self.name}: {what} need neighbors that hear each other, and its edges "
                "have a direction; choose an undirected one"
            )


def graph_of_pairs(
    name: str, agents: int, pairs: Any, directed: bool = False, **fields: Any
) -> Graph:
    """Return the graph with an edge for each pair of agents; pairs may repeat.

    fields: others of ``Graph``.
    """
    ends = np.array(pairs, dtype=np.intp).reshape(-1, 2)
    if not directed:
        ends = np.sort(ends, axis=1)
    numbers = np.unique(ends[:, 0] * agents + ends[:, 1])
    edges = np.column_stack(np.divmod(numbers, agents))
    return Graph(agents, edges, directed=directed, name=name, **fields)


def as_dense(matrix: Matrix) -> np.ndarray:
    """Return a matrix over agents as an array."""
    dense: np.ndarray = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
    return dense
