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

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from concord.errors import ConcordError

# Agents up to which matrices over them are dense, where BLAS is the fastest.
DENSE_AGENTS = 64
OWN = "your graph"  # the name of a graph that a caller gives as such, or as a matrix

Matrix = Any  # (agents, agents): an array, or a sparse one of scipy
Numbers = np.ndarray | float  # an array, or one number for all of its entries


@dataclass(frozen=True, eq=False)
class Graph:
    """A graph over agents 0 to N - 1 without self loops; an arc is a directed edge.

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
    nodes: tuple[Hashable, ...] | None = None
    server_messages: np.ndarray | None = None
    name: str = "graph"

    @cached_property
    def _arcs(self) -> tuple[np.ndarray, np.ndarray]:
        """Return senders and receivers of all arcs, both (arcs,)."""
        pairs = np.asarray(self.edges, dtype=np.intp).reshape(-1, 2)
        senders, receivers = pairs.T if self.directed else np.concatenate([pairs, pairs[:, ::-1]]).T
        order = np.lexsort((senders, receivers))
        return senders[order], receivers[order]

    @property
    def senders(self) -> np.ndarray:
        """Return the sender of each arc, ordered by receiver and then by sender, (arcs,)."""
        return self._arcs[0]

    @property
    def receivers(self) -> np.ndarray:
        """Return the receiver of each arc, (arcs,).

        An edge is two arcs, and one arc in a directed graph.
        """
        return self._arcs[1]

    @cached_property
    def links(self) -> np.ndarray:
        """Return the number of each arc's link, (arcs,); both arcs of an edge have the same."""
        low, high = np.minimum(*self._arcs), np.maximum(*self._arcs)
        links: np.ndarray = np.unique(low * self.agents + high, return_inverse=True)[1]
        return links

    @property
    def link_count(self) -> int:
        """Return the number of links: pairs of agents that an edge joins."""
        return int(self.links.max(initial=-1)) + 1

    @property
    def pair_numbers(self) -> np.ndarray:
        """Return receiver * agents + sender of each arc, which increases, (arcs,)."""
        return self.receivers * self.agents + self.senders

    def numbers_of(self, edges: ArrayLike) -> np.ndarray:
        """Return the ``pair_numbers`` of the arcs that belong to given edges (i, j)."""
        senders, receivers = np.array(edges, dtype=np.intp).reshape(-1, 2).T
        numbers = receivers * self.agents + senders
        if self.directed:
            return numbers
        return np.concatenate([numbers, senders * self.agents + receivers])

    def per_receiver(self, operation: np.ufunc, values: np.ndarray) -> np.ndarray:
        """Reduce values over all arcs to the same receiver, and return the result for each arc.

        operation: a ufunc, such as ``np.minimum``. values: (arcs, ...), as is the result.
        """
        _, first, place = np.unique(self.receivers, return_index=True, return_inverse=True)
        reduced: np.ndarray = operation.reduceat(values, first, axis=0)[place]
        return reduced

    def add_up_sent(self, values: np.ndarray) -> np.ndarray:
        """Return the sums of values over the arcs out of each agent, (agents, ...).

        values: (arcs, ...).
        """
        total = np.zeros((self.agents, *values.shape[1:]), np.result_type(values, np.int64))
        begin, sends = np.cumsum(self.degrees) - self.degrees, self.degrees > 0
        ordered = values[self.order_by_sender].astype(total.dtype)
        total[sends] = np.add.reduceat(ordered, begin[sends], axis=0)
        return total

    @cached_property
    def order_by_sender(self) -> np.ndarray:
        """Return the permutation that sorts the arcs by sender and then by receiver, (arcs,).

        In an undirected graph its entry w is the number of the arc opposite to arc w.
        """
        return np.lexsort((self.receivers, self.senders))

    @cached_property
    def degrees(self) -> np.ndarray:
        """Return the number of neighbors that hear each agent (out-degrees), (agents,)."""
        return np.bincount(self.senders, minlength=self.agents)

    @cached_property
    def in_degrees(self) -> np.ndarray:
        """Return the number of neighbors that each agent hears, (agents,)."""
        return np.bincount(self.receivers, minlength=self.agents)

    @cached_property
    def neighbors(self) -> list[np.ndarray]:
        """Return the neighbors that each agent hears, an increasing array for each agent."""
        return np.split(self.senders, np.cumsum(self.in_degrees)[:-1])

    def draw_arcs(self, shape: int | tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """Draw arcs of an undirected graph, by their numbers, in an array of a shape.

        The receiver is uniform over all agents, the sender uniform over the receiver's neighbors.
        """
        first = np.searchsorted(self.receivers, np.arange(self.agents))
        agent = rng.integers(0, self.agents, shape)
        choice = (rng.random(shape) * self.degrees[agent]).astype(np.intp)
        return first[agent] + np.minimum(choice, self.degrees[agent] - 1)  # a product may round up

    @cached_property
    def colors(self) -> np.ndarray:
        """Return masks of the agents of each color, (colors, agents); neighbors differ in color.

        Agents take, in their order, the first color that no neighbor has taken.
        """
        color = np.full(self.agents, -1)
        for agent, neighbors in enumerate(self.neighbors):
            used = set(color[neighbors].tolist())
            color[agent] = next(c for c in range(self.agents) if c not in used)
        return np.arange(color.max() + 1)[:, None] == color

    @cached_property
    def is_connected(self) -> bool:
        """Return whether a path leads from every agent to every other agent."""
        if self.agents <= DENSE_AGENTS:
            reached = self.matrix(np.ones(len(self.senders)), 1.0) > 0
            for _ in range(self.agents.bit_length()):
                reached = reached @ reached
            return bool(reached.all())
        from scipy import sparse  # a tenth of a second

        ones = np.ones(len(self.senders), dtype=np.int8)
        matrix = sparse.csr_array((ones, self._arcs), shape=(self.agents, self.agents))
        parts, _ = sparse.csgraph.connected_components(matrix, connection="strong")
        return bool(parts == 1)

    def matrix(self, values: np.ndarray, diagonal: np.ndarray | float) -> Matrix:
        """Return the matrix (agents, agents) with given entries on the arcs and the diagonal.

        values: entry (receiver, sender) of each arc, (arcs,). diagonal: a number, or (agents,). The
        matrix is sparse beyond ``DENSE_AGENTS``, if fewer than half of its entries are given.
        """
        agents, shape = np.arange(self.agents), (self.agents, self.agents)
        rows = np.concatenate([self.receivers, agents])
        columns = np.concatenate([self.senders, agents])
        entries = np.concatenate([values, np.broadcast_to(diagonal, self.agents)])
        if self.agents <= DENSE_AGENTS or 2 * len(entries) > self.agents**2:
            dense = np.zeros(shape, entries.dtype)
            dense[rows, columns] = entries
            return dense
        from scipy import sparse

        return sparse.csr_array((entries, (rows, columns)), shape=shape)

    @cached_property
    def identity(self) -> Matrix:
        """Return the identity; a sparse one has explicit zeros on the arcs."""
        return self.matrix(np.zeros(len(self.senders)), 1.0)

    @property
    def weighs_beyond_edges(self) -> bool:
        """Return whether the graph's own mixing weights join agents that are not neighbors."""
        if self.weights is None:
            return False
        allowed = self.matrix(np.ones(len(self.senders)), 1.0)
        return bool((abs(as_dense(self.weights)) > 0)[as_dense(allowed) == 0].any())

    @cached_property
    def adjacency(self) -> Matrix:
        """Return the adjacency A, whose entry (i, j) is 1 if agent i hears agent j, else 0."""
        return self.matrix(np.ones(len(self.senders)), 0.0)

    @cached_property
    def laplacian(self) -> Matrix:
        """Return the Laplacian L = D - A. A ConcordError if the graph is directed."""
        self.refuse_directed("a Laplacian")
        return self.matrix(np.full(len(self.senders), -1.0), self.degrees)

    @cached_property
    def signless_laplacian(self) -> Matrix:
        """Return the signless Laplacian D + A."""
        return self.matrix(np.ones(len(self.senders)), self.degrees)

    @cached_property
    def metropolis(self) -> Matrix:
        """Return the Metropolis weights W, or the graph's own weights in their place.

        A ConcordError if the graph has a direction and no weights of its own.
        """
        if self.weights is not None:
            return self.weights
        self.refuse_directed("Metropolis weights")
        largest = np.maximum(self.degrees[self.receivers], self.degrees[self.senders])
        values = 1 / (1 + largest)
        return self.matrix(values, 1 - np.bincount(self.receivers, values, self.agents))

    def refuse_directed(self, what: str) -> None:
        """Raise a ConcordError if the graph is directed: ``what`` need an undirected one."""
        if self.directed:
            raise ConcordError(
                f"topology {self.name}: {what} need edges without direction; choose another one"
            )


def graph_of_pairs(
    name: str,
    agents: int,
    pairs: ArrayLike,
    directed: bool = False,
    *,
    weights: Matrix | None = None,
    nodes: tuple[Hashable, ...] | None = None,
    server_messages: np.ndarray | None = None,
) -> Graph:
    """Return the graph whose edges are given pairs of agents; a pair may repeat.

    A ConcordError if an edge joins an agent to itself.
    name: the graph's kind. pairs: (edges, 2); in a directed graph the second agent hears the first.
    weights, nodes, server_messages: as of ``Graph``.
    """
    ends = np.array(pairs, dtype=np.intp).reshape(-1, 2)
    loops = ends[ends[:, 0] == ends[:, 1], 0]
    if loops.size:
        raise ConcordError(f"topology {name}: an edge joins agent {loops[0]} to itself; remove it")
    if not directed:
        ends = np.sort(ends, axis=1)
    numbers = np.unique(ends[:, 0] * agents + ends[:, 1])
    edges = np.column_stack(np.divmod(numbers, agents))
    return Graph(agents, edges, directed, weights, nodes, server_messages, name)


def check_agents(numbers: Iterable[int], agents: int, where: str) -> None:
    """Raise a ConcordError for a number that no agent has; ``where`` is file and key of all."""
    for place, number in enumerate(numbers):
        if number >= agents:
            raise ConcordError(
                f"{where}[{place}]: there is no agent {number}; name agents 0 to {agents - 1}"
            )


def as_dense(matrix: Matrix) -> np.ndarray:
    """Return a dense or sparse matrix over agents as a dense array (agents, agents)."""
    dense: np.ndarray = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
    return dense
