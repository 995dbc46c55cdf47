r"""Topologies: undirected graphs over agents, and their matrices.

For a graph with adjacency A and degrees D = diag(deg_i):

.. math::
    L = D - A, \qquad
    W_{ij} = \frac{1}{1 + \max(\deg_i, \deg_j)} \text{ on edges}, \qquad
    W_{ii} = 1 - \sum_{j \ne i} W_{ij}

L is the Laplacian and W the Metropolis weights, symmetric and doubly stochastic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from concord.errors import ConcordError, short
from concord.networks.matrix import AgentMatrix
from concord.options import Count, Index, Kind, Share
from concord.options import build as options_of

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


class Graph(Kind):
    """A kind of topology: its options, and the graph they make."""

    def _graph(self, nx: Any, agents: int, where: str) -> Any:
        """Return the graph; networkx is passed in, as it is slow to import."""
        raise NotImplementedError

    def topology(self, agents: int, where: str = "topology") -> Topology:
        """Return the topology on so many agents.

        Raises
        ------
        ConcordError
            If an option does not suit the number of agents; it names ``where``, file and key.
        """
        if isinstance(agents, bool) or not isinstance(agents, (int, np.integer)) or agents < 1:
            raise ConcordError(
                f"{where}: {short(agents)} is not a positive number of agents; give 1 or more"
            )
        kind = self.__struct_config__.tag
        if isinstance(self, (Complete, ErdosRenyi)) and agents > MOST_PAIRED:
            raise ConcordError(
                f"{where}: {agents} agents are too many for kind {kind}, which looks at all "
                f"pairs; use at most {MOST_PAIRED}"
            )
        import networkx as nx

        graph = self._graph(nx, int(agents), where)
        edges = sorted((min(edge), max(edge)) for edge in graph.edges)
        return Topology(str(kind), int(agents), tuple(edges))


class Complete(Graph):
    """Every two agents are neighbors."""

    def _graph(self, nx: Any, agents: int, where: str) -> Any:
        return nx.complete_graph(agents)


class Ring(Graph):
    """A cycle; one or two agents close none: no edge, or a single one."""

    def _graph(self, nx: Any, agents: int, where: str) -> Any:
        return nx.cycle_graph(agents) if agents > 2 else nx.path_graph(agents)


class NoEdges(Graph):
    """Agents that are alone."""

    def _graph(self, nx: Any, agents: int, where: str) -> Any:
        return nx.empty_graph(agents)


class Star(Graph):
    """Agent 0 is the center."""

    def _graph(self, nx: Any, agents: int, where: str) -> Any:
        return nx.star_graph(agents - 1)


class Path(Graph):
    """A line of agents."""

    def _graph(self, nx: Any, agents: int, where: str) -> Any:
        return nx.path_graph(agents)


class Grid(Graph):
    """A rectangle of rows * columns agents."""

    rows: Annotated[Count | None, "number of rows; none: the most square grid"] = None

    def _graph(self, nx: Any, agents: int, where: str) -> Any:
        rows = self.rows
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


class ErdosRenyi(Graph):
    """Every two agents are neighbors with the same probability, independently."""

    probability: Annotated[Share, "probability of each edge"]
    seed: Annotated[Index, "seed of the graph"] = 0

    def _graph(self, nx: Any, agents: int, where: str) -> Any:
        return nx.gnp_random_graph(agents, self.probability, seed=self.seed)


class EdgeList(Graph):
    """The edges, one by one."""

    edges: Annotated[tuple[tuple[Index, Index], ...], "pairs [i, j] of agents, from 0"]

    def _graph(self, nx: Any, agents: int, where: str) -> Any:
        graph = nx.empty_graph(agents)
        for index, edge in enumerate(self.edges):
            if max(edge) >= agents:
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


Graphs = Complete | Ring | NoEdges | Star | Path | Grid | ErdosRenyi | EdgeList


def build(kind: str, agents: int, *, where: str = "topology", **options: Any) -> Topology:
    """Return the topology of a kind, such as ``"ring"``, with that kind's options.

    Raises
    ------
    ConcordError
        If the kind or an option is unknown or does not suit the number of agents; it names
        ``where``, file and key.
    """
    graph: Graph = options_of(Graphs, {"kind": kind, **options}, where)
    return graph.topology(agents, where)
