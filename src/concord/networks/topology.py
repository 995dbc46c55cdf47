"""Kinds of topologies: graphs over any number of agents, by name and options."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from concord.errors import ConcordError, short
from concord.networks.graph import Graph, graph_of_pairs
from concord.plugins import Chosen

# The most agents of a network, and edges, and agents of one whose cost grows with their pairs.
# Networks are built when a configuration is checked, so a typing error must not fill the memory.
MOST_AGENTS, MOST_EDGES, MOST_PAIRED_AGENTS = 1_000_000, 5_000_000, 2000


def check_pairs(agents: int, kind: str) -> None:
    """Refuse more agents than a kind can take that looks at all pairs."""
    if agents > MOST_PAIRED_AGENTS:
        raise ConcordError(
            f"{agents} agents are too many for kind {kind}, which looks at all pairs; use at most "
            f"{MOST_PAIRED_AGENTS}"
        )


def check_edges(edges: int, agents: int) -> None:
    """Refuse more edges than a process carries."""
    if edges > MOST_EDGES:
        raise ConcordError(
            f"{agents} agents have {edges} edges here, more than one process carries; use fewer "
            f"agents, so that there are at most {MOST_EDGES}"
        )


def joined(neighbors: np.ndarray) -> np.ndarray:
    """Return the pairs of agents and their neighbors, (agents, any number), as an array.

    An agent that stands among its own neighbors is none of them.
    """
    check_edges(neighbors.size, len(neighbors))
    agents = np.repeat(np.arange(len(neighbors)), neighbors.shape[1])
    pairs = np.column_stack([agents, neighbors.ravel()])
    return pairs[pairs[:, 0] != pairs[:, 1]]


@runtime_checkable
class TopologyKind(Protocol):
    """A module of ``concord.networks.topologies``."""

    Params: type

    def graph(self, params: Any, agents: int) -> Any:
        """Return the edges, pairs of the agents 0, 1, ..., or a networkx graph, or refuse.

        Pairs may be the rows of an array of agents' numbers, which is believed; those that are
        there twice count once.

        In a directed graph j hears i over an edge (i, j).
        """


@runtime_checkable
class AveragingKind(Protocol):
    """A topology kind whose agents hear the average of all, not what each of them has."""

    def messages(self, params: Any, agents: int) -> Sequence[int]:
        """Return how many vectors each agent pays for in one average, received ones included."""


@runtime_checkable
class WeightedKind(Protocol):
    """A topology kind with mixing weights of its own, in the place of Metropolis weights."""

    def weights(self, params: Any, agents: int) -> np.ndarray:
        """Return W, (agents, agents), doubly stochastic."""


@runtime_checkable
class DirectedOrNot(Protocol):
    """A graph that tells whether its edges have a direction, as those of networkx do."""

    edges: Iterable[tuple[int, int]]

    def is_directed(self) -> bool:
        """Tell whether they have."""


class ChosenTopology(Chosen):
    """A kind of topology and its options: ``ring``, or ``{kind: grid, rows: 2}``."""

    package = "topologies"

    @classmethod
    def parse(cls, value: Any, where: str) -> Self:
        """Return what a file's word or mapping chooses."""
        return super().parse({"kind": value} if isinstance(value, str) else value, where)

    def graph(self, agents: int, where: str = "topology") -> Graph:
        """Return the graph on so many agents.

        A ConcordError if an option does not suit the number of agents, or the graph is none of so
        many agents; it names ``where``, file and key.
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
        directed = False
        if isinstance(graph, DirectedOrNot):
            directed, graph = graph.is_directed(), graph.edges
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
        if isinstance(self.module, WeightedKind):
            found = replace(found, weights=self.module.weights(self.params, found.agents))
        if not isinstance(self.module, AveragingKind):
            return found
        messages = np.array(self.module.messages(self.params, found.agents))
        return replace(found, server_messages=messages)


def build_graph(kind: str, agents: int, *, where: str = "topology", **options: Any) -> Graph:
    """Return the topology of a kind, such as ``"ring"``, with that kind's options.

    A ConcordError if the kind or an option is unknown or does not suit the number of agents; it
    names ``where``, file and key.
    """
    return ChosenTopology.parse({"kind": kind, **options}, where).graph(agents, where)
