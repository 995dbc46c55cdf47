"""Kinds of topologies: graphs over any number of agents, by name and options."""

from typing import Annotated, Protocol, Self, runtime_checkable

import numpy as np
from msgspec import Meta

from concord.errors import ConcordError
from concord.networks.graph import Graph, graph_of_pairs
from concord.options import Chosen, Options, build

# Networks are built when a configuration is checked, so a typing error must not fill the memory.
MOST_EDGES = 5_000_000
AgentCount = Annotated[int, Meta(ge=1, le=1_000_000)]


def check_edges(edges: int) -> None:
    """Raise a ConcordError for more edges, or pairs of agents, than one process can hold."""
    if edges > MOST_EDGES:
        raise ConcordError(
            f"{edges} edges or pairs are more than one process carries; use fewer agents, so that "
            f"there are at most {MOST_EDGES}"
        )


def list_pairs(agents: int) -> np.ndarray:
    """Return all pairs of agents, (pairs, 2); a ConcordError if they are too many."""
    check_edges(agents * (agents - 1) // 2)
    return np.column_stack(np.triu_indices(agents, 1))


def list_edges(neighbors: np.ndarray) -> np.ndarray:
    """Return the edges (edges, 2) of a table that lists the neighbors of each agent.

    neighbors: numbers of agents, (agents, any number). An agent's own number there is ignored.
    """
    check_edges(neighbors.size)
    agents = np.repeat(np.arange(len(neighbors)), neighbors.shape[1])
    pairs = np.column_stack([agents, neighbors.ravel()])
    return pairs[pairs[:, 0] != pairs[:, 1]]


@runtime_checkable
class TopologyKind(Protocol):
    """The protocol of a topology: a module of ``concord.networks.topologies`` with its options."""

    Params: type

    def graph(self, params: Options, agents: int) -> object:
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
    def parse(cls, value: object, where: str) -> Self:
        """Return the topology that a file's word or mapping chooses.

        value: a kind, or a mapping with ``kind`` and options. where: file and key, for errors.
        """
        return super().parse({"kind": value} if isinstance(value, str) else value, where)

    def graph(self, agents: int, where: str = "topology") -> Graph:
        """Return the graph over a number of agents.

        A ConcordError, which names ``where`` (file and key), if an option or the resulting graph
        does not suit the number of agents.
        """
        agents = build(AgentCount, agents, f"{where}: agents")
        try:
            graph = self.module.graph(self.params, agents)
        except ConcordError as error:
            key = "." if str(error).startswith(tuple(self.params.__struct_fields__)) else ": "
            raise ConcordError(f"{where}{key}{error}") from None
        directed = hasattr(graph, "is_directed") and graph.is_directed()
        edges = getattr(graph, "edges", graph)
        if not isinstance(edges, np.ndarray):
            edges = [tuple(edge[:2]) for edge in edges]
            if not set().union(*edges) <= set(range(agents)):
                raise ConcordError(
                    f"{where}: kind {self.kind} gives nodes that are not 0 to {agents - 1}; number "
                    "its agents so"
                )
        weights = messages = None
        if hasattr(self.module, "weights"):
            weights = self.module.weights(self.params, agents)
        if hasattr(self.module, "messages"):
            messages = np.array(self.module.messages(self.params, agents))
        kept = self.kind, agents, edges, directed
        return graph_of_pairs(*kept, weights=weights, server_messages=messages)


def build_graph(kind: str, agents: int, *, where: str = "topology", **options: object) -> Graph:
    """Return the graph of a kind of topology, such as ``"ring"``, over a number of agents.

    A ConcordError if the kind or an option is unknown or does not suit the number of agents; it
    names ``where``, file and key.
    """
    return ChosenTopology.parse({"kind": kind, **options}, where).graph(agents, where)
