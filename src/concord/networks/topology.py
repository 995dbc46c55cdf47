"""Kinds of topologies: graphs over any number of agents, by name and options."""

from dataclasses import replace
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from concord.errors import ConcordError, short
from concord.networks.graph import Graph, graph_of_pairs
from concord.options import Chosen

# The most agents of a network, and edges, and agents of one whose cost grows with their pairs.
# Networks are built when a configuration is checked, so a typing error must not fill the memory.
MOST_AGENTS, MOST_EDGES, MOST_PAIRED_AGENTS = 1_000_000, 5_000_000, 2000


def check_pairs(agents: int, kind: str) -> None:
    """Raise a ConcordError for too many agents of a kind that looks at all pairs of agents."""
    if agents > MOST_PAIRED_AGENTS:
        raise ConcordError(
            f"{agents} agents are too many for kind {kind}, which looks at all pairs; use at most "
            f"{MOST_PAIRED_AGENTS}"
        )


def check_edges(edges: int, agents: int) -> None:
    """Raise a ConcordError for more edges than one process can hold."""
    if edges > MOST_EDGES:
        raise ConcordError(
            f"{agents} agents have {edges} edges here, more than one process carries; use fewer "
            f"agents, so that there are at most {MOST_EDGES}"
        )


def list_edges(neighbors: np.ndarray) -> np.ndarray:
    """Return the edges (edges, 2) of a table that lists the neighbors of each agent.

    neighbors: numbers of agents, (agents, any number). An agent's own number there is ignored.
    """
    check_edges(neighbors.size, len(neighbors))
    agents = np.repeat(np.arange(len(neighbors)), neighbors.shape[1])
    pairs = np.column_stack([agents, neighbors.ravel()])
    return pairs[pairs[:, 0] != pairs[:, 1]]


@runtime_checkable
class TopologyKind(Protocol):
    """The protocol of a topology: a module of ``concord.networks.topologies`` with its options."""

    Params: type

    def graph(self, params: Any, agents: int) -> Any:
        """Return the edges of the graph over agents 0 to N - 1, or raise a ConcordError.

        Edges are pairs of agents, rows of an integer array whose range is not checked, or a
        networkx graph. A pair that repeats counts once. In a directed graph agent j hears agent i
        over (i, j).

        A kind may also have a function ``weights(params, agents)``, the doubly stochastic mixing
        matrix (agents, agents) in place of Metropolis weights, or ``messages(params, agents)``: on
        it a server sends every agent the average of all, and each sends and receives so many
        vectors for one average, (agents,).
        """


class ChosenTopology(Chosen):
    """A kind of topology and its options: ``ring``, or ``{kind: grid, rows: 2}``."""

    room = "topologies"

    @classmethod
    def parse(cls, value: Any, where: str) -> Self:
        """Return the topology that a file's word or mapping chooses.

        value: a kind, or a mapping with ``kind`` and options. where: file and key, for errors.
        """
        return super().parse({"kind": value} if isinstance(value, str) else value, where)

    def graph(self, agents: Any, where: str = "topology") -> Graph:
        """Return the graph over a number of agents.

        A ConcordError, which names ``where`` (file and key), if an option or the resulting graph
        does not suit the number of agents.
        """
        if isinstance(agents, bool) or not isinstance(agents, (int, np.integer)) or agents < 1:
            raise ConcordError(
                f"{where}: {short(agents)} is not a positive number of agents; give 1 or more"
            )
        if agents > MOST_AGENTS:
            raise ConcordError(
                f"{where}: {agents} agents are more than one process carries; use at most "
                f"{MOST_AGENTS}"
            )
        try:
            graph = self.module.graph(self.params, int(agents))
        except ConcordError as error:
            key = "." if str(error).startswith(tuple(self.params.__struct_fields__)) else ": "
            raise ConcordError(f"{where}{key}{error}") from None
        directed = hasattr(graph, "is_directed") and graph.is_directed()
        graph = getattr(graph, "edges", graph)
        if not isinstance(graph, np.ndarray):
            graph = [tuple(edge[:2]) for edge in graph]
            if not set().union(*graph) <= set(range(agents)):
                raise ConcordError(
                    f"{where}: kind {self.kind} gives a graph whose nodes are not 0 to "
                    f"{agents - 1}; number its agents so"
                )
        ends = np.array(graph, dtype=np.intp).reshape(-1, 2)
        if (ends[:, 0] == ends[:, 1]).any():
            raise ConcordError(
                f"{where}: kind {self.kind} gives an edge from an agent to itself; leave it out"
            )
        found = graph_of_pairs(self.kind, int(agents), ends, directed)
        if hasattr(self.module, "weights"):
            found = replace(found, weights=self.module.weights(self.params, found.agents))
        if not hasattr(self.module, "messages"):
            return found
        messages = np.array(self.module.messages(self.params, found.agents))
        return replace(found, server_messages=messages)


def build_graph(kind: str, agents: int, *, where: str = "topology", **options: Any) -> Graph:
    """Return the graph of a kind of topology, such as ``"ring"``, over a number of agents.

    A ConcordError if the kind or an option is unknown or does not suit the number of agents; it
    names ``where``, file and key.
    """
    return ChosenTopology.parse({"kind": kind, **options}, where).graph(agents, where)
