"""A ring of near neighbors, some of whose edges lead to an agent at random: a small world.

Source: Watts and Strogatz, "Collective dynamics of small-world networks" (1998).
"""

from typing import Annotated, Any

import networkx as nx

from concord.errors import ConcordError
from concord.options import Count, Index, Options, Share

NAME = "Watts-Strogatz"


class Params(Options):
    """The ring, how much of it is rewired, and the seed."""

    neighbors: Annotated[Count, "neighbors of each agent on the ring, an even number"]
    probability: Annotated[Share, "probability that an edge is rewired"]
    seed: Annotated[Index, "seed of the graph"] = 0


def graph(params: Params, agents: int) -> Any:
    """Return the graph, or refuse a number of neighbors that no such ring has."""
    if params.neighbors % 2 or params.neighbors >= agents:
        raise ConcordError(
            f"neighbors: no ring of {agents} agents gives each {params.neighbors}; use an even "
            "number below that of the agents"
        )
    return nx.watts_strogatz_graph(agents, params.neighbors, params.probability, seed=params.seed)
