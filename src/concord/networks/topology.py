r"""Topologies: graphs over agents, and their matrices.

For an undirected graph with adjacency A and degrees D = diag(deg_i):

.. math::
    L = D - A, \qquad
    W_{ij} = \frac{1}{1 + \max(\deg_i, \deg_j)} \text{ on edges}, \qquad
    W_{ii} = 1 - \sum_{j \ne i} W_{ij}

L is the Laplacian and W the Metropolis weights, symmetric and doubly stochastic. Rows are receivers
and columns senders, of graphs with directions too: A_ij = 1 if agent i hears agent j.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, Self, runtime_checkable

import msgspec
import numpy as np

from concord.errors import ConcordError, short
from concord.networks.conditions import Conditions
from concord.networks.formula import MOST_LISTED, ByRow, Formula, Weigh
from concord.networks.matrix import AgentMatrix
from concord.networks.transports import Part
from concord.options import plain
from concord.plugins import Chosen
from concord.summary import Summarized

# The most agents whose spectrum is computed, by dense solvers.
SPECTRUM_LIMIT = 2000

# The most agents of a network whose cost grows with their pairs. Networks are built when a
# configuration is checked, so a typing error must not fill the memory.
MOST_PAIRED = 2000


@dataclass(frozen=True, repr=False)
class Topology(Summarized):
    """A graph without self loops.

    name: its kind, such as ``ring``.
    agents: number of agents N, which are numbered from 0.
    edges: sorted pairs (i, j) with i < j, over which both hear each other; in a directed graph any
    pairs, over which j hears i.
    weights: a matrix W of its own, to mix with in place of Metropolis weights.
    directed: whether edges have a direction.
    nodes: what its agents are called where the graph was made; None: by their numbers.
    messages: vectors that each agent sends for an average of all, (agents,), which a server makes;
    None: one to each neighbor, and agents average.
    conditions: what happens on it (``network.under``): nothing, every vector arrives at once.
    masks, times: the streams of what arrives, perhaps by counters, and of how long gradients take:
    generators of their own, in the end for one block of chains (``network.drawing``).
    part: the agents of this process; None: it has all.
    """

    name: str
    agents: int
    edges: Sequence[tuple[int, int]]
    weights: AgentMatrix | None = None
    directed: bool = False
    nodes: tuple[Any, ...] | None = field(default=None, compare=False)
    messages: tuple[int, ...] | None = None
    conditions: Conditions = field(default_factory=Conditions)
    masks: Any = field(default=None, repr=False)
    times: np.random.Generator | None = field(default=None, repr=False)
    part: Part | None = field(default=None, repr=False)

    def summary(self) -> dict[str, Any]:
        """Return the graph's sizes, and what happens on it."""
        stated = msgspec.structs.asdict(self.conditions)
        usual = msgspec.structs.asdict(Conditions())
        degrees = self.degrees
        return {
            "graph": self.name,
            "agents": self.agents,
            "edges": f"{len(self.edges)}{' directed' if self.directed else ''}",
            "neighbors": f"{degrees.min()} to {degrees.max()}",
            "weights": None if self.weights is None else "its own",
            **{name: plain(value) for name, value in stated.items() if value != usual[name]},
        }

    @property
    def names(self) -> tuple[Any, ...]:
        """What the agents are called, by their numbers: the nodes of a graph, or the numbers."""
        return tuple(range(self.agents)) if self.nodes is None else self.nodes

    @property
    def own(self) -> slice:
        """The agents of this process."""
        return slice(0, self.agents) if self.part is None else self.part.own

    @cached_property
    def degrees(self) -> np.ndarray:
        """Number of neighbors that each agent sends to (its out-degree), shape (agents,)."""
        if isinstance(self.edges, Formula):
            found = self.edges.degrees(np.arange(self.agents))
            return found if self.agents > MOST_LISTED else np.array(found)
        ends = self._ends[:, 0] if self.directed else self._ends
        return np.bincount(ends.ravel(), minlength=self.agents)

    @cached_property
    def neighbors(self) -> tuple[np.ndarray, ...]:
        """For each agent, the sorted indices of the neighbors that it hears."""
        adjacency = self.adjacency()
        return tuple(adjacency.row(agent)[0] for agent in range(self.agents))

    @cached_property
    def connected(self) -> bool:
        """Whether a path leads from every agent to every other."""
        if isinstance(self.edges, Formula):
            return True
        back = [(j, i) for i, j in self.edges]
        if not self.directed:
            return _all_reached(self.agents, [*self.edges, *back])
        return _all_reached(self.agents, self.edges) and _all_reached(self.agents, back)

    def adjacency(self) -> AgentMatrix:
        """Return A, one where a row's agent hears a column's."""
        return self._matrix(lambda own, rows, others: (np.ones(len(rows)), np.zeros(len(own))))

    def laplacian(self) -> AgentMatrix:
        """Return L = D - A; a ConcordError if the graph is directed."""
        self._check_undirected("a Laplacian")
        return self._matrix(lambda own, rows, others: (np.full(len(rows), -1.0), own + 0.0), 0.0)

    def metropolis(self) -> AgentMatrix:
        """Return the Metropolis weights W (gurbuzbalaban2021 and tzikas2024 mix with these).

        A ConcordError if the graph is directed.
        """
        self._check_undirected("Metropolis weights")

        def weigh(
            own: np.ndarray, rows: np.ndarray, others: np.ndarray
        ) -> tuple[np.ndarray, np.ndarray]:
            weights = 1 / (1 + np.maximum(own[rows], others))
            # Summed neighbor by neighbor in agent order: the same floats on every machine.
            return weights, 1 - np.bincount(rows, weights, len(own))

        return self._matrix(weigh, 1.0)

    def spectral(self) -> dict[str, float]:
        """Return the eigenvalues that convergence rates depend on.

        Those of the weights W: ``lambda_2``, the second largest eigenvalue; ``lambda_N``, the
        smallest; ``gamma_bar = max(|lambda_2|, |lambda_N|)``; ``spectral_gap = 1 - gamma_bar``. Of
        the Laplacian: ``laplacian_max``, the largest, and ``algebraic_connectivity``, the second
        smallest. Of the signless Laplacian D + A: ``signless_max``, the largest. A single agent
        agrees with itself at once: its ``lambda_2``, ``lambda_N`` and ``algebraic_connectivity``
        are 0. A ConcordError if there are more than ``SPECTRUM_LIMIT`` agents, or the graph is
        directed.
        """
        self._check_undirected("this spectrum")
        if self.agents > SPECTRUM_LIMIT:
            raise ConcordError(
                f"topology {self.name}: the spectrum of {self.agents} agents is too large to "
                f"compute; use at most {SPECTRUM_LIMIT} agents, or leave the spectrum out"
            )
        adjacency = self.adjacency().dense()
        weights = np.linalg.eigvalsh((self.weights or self.metropolis()).dense())[:-1]
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

    def _check_undirected(self, what: str) -> None:
        if self.directed:
            raise ConcordError(
                f"topology {self.name}: {what} need neighbors that hear each other, and its edges "
                "have a direction; choose an undirected one"
            )

    def _matrix(self, weigh: Weigh, total: float | None = None) -> AgentMatrix:
        if isinstance(self.edges, Formula):
            return ByRow(self.edges, weigh, total)
        senders, receivers = self._ends.T
        if not self.directed:  # both ways
            senders, receivers = self._ends.T.ravel(), self._ends.T[::-1].ravel()
        values, diagonal = weigh(self.degrees, receivers, self.degrees[senders])
        return AgentMatrix.with_diagonal(receivers, senders, values, diagonal)


def _all_reached(agents: int, pairs: Iterable[tuple[int, int]]) -> bool:
    """Return whether agent 0 reaches everybody over these pairs.

    By hand, since a job would need longer to import a library of graphs than for its work.
    """
    following: list[list[int]] = [[] for _ in range(agents)]
    for i, j in pairs:
        following[i].append(j)
    reached, waiting = {0}, [0]
    while waiting:
        new = set(following[waiting.pop()]) - reached
        reached |= new
        waiting += new
    return len(reached) == agents


def check_pairs(agents: int, kind: str) -> None:
    """Refuse more agents than a kind can take that looks at all pairs."""
    if agents > MOST_PAIRED:
        raise ConcordError(
            f"{agents} agents are too many for kind {kind}, which looks at all pairs; use at most "
            f"{MOST_PAIRED}"
        )


@runtime_checkable
class TopologyKind(Protocol):
    """A module of ``concord.networks.topologies``."""

    Params: type

    def graph(self, params: Any, agents: int) -> Any:
        """Return the edges, pairs of the agents 0, 1, ..., or a networkx graph, or refuse.

        In a directed graph j hears i over an edge (i, j).
        """


@runtime_checkable
class AveragingKind(Protocol):
    """A topology kind whose agents hear the average of all, not what each of them has."""

    def messages(self, params: Any, agents: int) -> Sequence[int]:
        """Return how many vectors each agent pays for in one average, received ones included."""


@runtime_checkable
class LargeKind(Protocol):
    """A topology kind whose graphs are a ``Formula`` that may have any number of agents."""

    beside: Any  # the formula


@runtime_checkable
class DirectedOrNot(Protocol):
    """A graph that tells whether its edges have a direction, as those of networkx do."""

    edges: Iterable[tuple[int, int]]

    def is_directed(self) -> bool:
        """Tell whether they have."""


class Graph(Chosen):
    """A kind of topology and its options: ``ring``, or ``{kind: grid, rows: 2}``."""

    package = "topologies"

    @classmethod
    def parse(cls, value: Any, where: str) -> Self:
        """Return what a file's word or mapping chooses."""
        return super().parse({"kind": value} if isinstance(value, str) else value, where)

    def topology(self, agents: int, where: str = "topology") -> Topology:
        """Return the topology on so many agents.

        A ConcordError if an option does not suit the number of agents, or the graph is none of so
        many agents; it names ``where``, file and key.
        """
        if isinstance(agents, bool) or not isinstance(agents, (int, np.integer)) or agents < 1:
            raise ConcordError(
                f"{where}: {short(agents)} is not a positive number of agents; give 1 or more"
            )
        if agents > MOST_LISTED and not isinstance(self.module, LargeKind):
            raise ConcordError(
                f"{where}: {agents} agents are too many for kind {self.kind}, whose edges are "
                f"listed; use at most {MOST_LISTED}, or a ring, torus, grid, hypercube or "
                "exponential graph"
            )
        try:
            graph = self.module.graph(self.params, int(agents))
        except ConcordError as error:
            key = "." if str(error).startswith(tuple(self.params.__struct_fields__)) else ": "
            raise ConcordError(f"{where}{key}{error}") from None
        directed = False
        if isinstance(graph, DirectedOrNot):
            directed, graph = graph.is_directed(), graph.edges
        if isinstance(graph, Formula):
            return self._priced(Topology(self.kind, int(agents), graph))
        pairs = [tuple(edge[:2]) for edge in graph]
        if any(i == j for i, j in pairs):
            raise ConcordError(
                f"{where}: kind {self.kind} gives an edge from an agent to itself; leave it out"
            )
        if not set().union(*pairs) <= set(range(agents)):
            raise ConcordError(
                f"{where}: kind {self.kind} gives a graph whose nodes are not 0 to {agents - 1}; "
                "number its agents so"
            )
        return self._priced(of_graph(self.kind, int(agents), pairs, directed))

    def _priced(self, found: Topology) -> Topology:
        if not isinstance(self.module, AveragingKind):
            return found
        return replace(found, messages=tuple(self.module.messages(self.params, found.agents)))


def of_graph(
    name: str, agents: int, pairs: Iterable[tuple[int, int]], directed: bool = False
) -> Topology:
    """Return the topology with an edge for each pair of agents."""
    edges = sorted(set(pairs) if directed else {(min(pair), max(pair)) for pair in pairs})
    return Topology(name, agents, tuple(edges), directed=directed)


def build(kind: str, agents: int, *, where: str = "topology", **options: Any) -> Topology:
    """Return the topology of a kind, such as ``"ring"``, with that kind's options.

    A ConcordError if the kind or an option is unknown or does not suit the number of agents; it
    names ``where``, file and key.
    """
    return Graph.parse({"kind": kind, **options}, where).topology(agents, where)
