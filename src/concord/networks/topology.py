r"""Topologies: undirected graphs over agents, and their matrices.

For a graph with adjacency A and degrees D = diag(deg_i):

.. math::
    L = D - A, \qquad
    W_{ij} = \frac{1}{1 + \max(\deg_i, \deg_j)} \text{ on edges}, \qquad
    W_{ii} = 1 - \sum_{j \ne i} W_{ij}

L is the Laplacian and W the Metropolis weights, symmetric and doubly stochastic.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from concord.errors import ConcordError, short
from concord.networks.matrix import AgentMatrix
from concord.plugins import Chosen

# The most agents whose spectrum is computed, by dense solvers.
SPECTRUM_LIMIT = 2000


# The most agents of a network whose cost grows with their pairs. Networks are built when a
# configuration is checked, so a typing error must not fill the memory.
MOST_PAIRED = 2000


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
    weights
        A matrix W of its own, to mix with in place of Metropolis weights.
    """

    name: str
    agents: int
    edges: tuple[tuple[int, int], ...]
    weights: AgentMatrix | None = None

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
            Of the weights W: ``lambda_2``, the second largest eigenvalue; ``lambda_N``,
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

    def _matrix(self, edge_values: np.ndarray, diagonal: np.ndarray) -> AgentMatrix:
        i, j = self._ends.T
        own = np.arange(self.agents)
        return AgentMatrix.from_entries(
            self.agents,
            np.concatenate([i, j, own]),
            np.concatenate([j, i, own]),
            np.concatenate([edge_values, edge_values, diagonal]),
        )


def check_pairs(agents: int, kind: str) -> None:
    """Refuse more agents than a kind can take that looks at all pairs."""
    if agents > MOST_PAIRED:
        raise ConcordError(
            f"{agents} agents are too many for kind {kind}, which looks at all pairs; use at most "
            f"{MOST_PAIRED}"
        )


class Graph(Chosen):
    """A kind of topology and its options: ``ring``, or ``{kind: grid, rows: 2}``."""

    package = "topologies"

    @classmethod
    def parse(cls, value: Any, where: str) -> Self:
        """Return what a file's word or mapping chooses."""
        return super().parse({"kind": value} if isinstance(value, str) else value, where)

    def topology(self, agents: int, where: str = "topology") -> Topology:
        """Return the topology on so many agents.

        Raises
        ------
        ConcordError
            If an option does not suit the number of agents, or the graph is none of so many
            agents; it names ``where``, file and key.
        """
        if isinstance(agents, bool) or not isinstance(agents, (int, np.integer)) or agents < 1:
            raise ConcordError(
                f"{where}: {short(agents)} is not a positive number of agents; give 1 or more"
            )
        try:
            graph = self.module.graph(self.params, int(agents))
        except ConcordError as error:
            key = "." if str(error).startswith(tuple(self.params.__struct_fields__)) else ": "
            raise ConcordError(f"{where}{key}{error}") from None
        if graph.is_directed() or graph.is_multigraph() or any(i == j for i, j in graph.edges):
            raise ConcordError(
                f"{where}: kind {self.kind} gives a graph with directions, double edges or edges "
                "from an agent to itself; give an undirected one"
            )
        if len(graph) != agents or any(node not in graph for node in range(agents)):
            raise ConcordError(
                f"{where}: kind {self.kind} gives a graph whose nodes are not 0 to {agents - 1}; "
                "number its agents so"
            )
        edges = sorted((min(edge), max(edge)) for edge in graph.edges)
        return Topology(self.kind, int(agents), tuple(edges))


def build(kind: str, agents: int, *, where: str = "topology", **options: Any) -> Topology:
    """Return the topology of a kind, such as ``"ring"``, with that kind's options.

    Raises
    ------
    ConcordError
        If the kind or an option is unknown or does not suit the number of agents; it names
        ``where``, file and key.
    """
    return Graph.parse({"kind": kind, **options}, where).topology(agents, where)
