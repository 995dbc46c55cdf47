"""A network that grows: each new agent joins some others, likelier those that have many neighbors.

Source: Barabási and Albert, "Emergence of scaling in random networks" (1999).
"""

from typing import Annotated, Any

import networkx as nx

from concord.errors import ConcordError
from concord.options import Count, Index, Options

NAME = "Barabási-Albert"


class Params(Options):
    """What a new agent brings, and the seed."""

    edges: Annotated[Count, "edges of each new agent"]
    seed: Annotated[Index, "seed of the graph"] = 0


def graph(params: Params, agents: int) -> Any:
    """Return the graph, or refuse too many edges."""
    if params.edges >= agents:
        raise ConcordError(
            f"edges: a new agent cannot bring {params.edges} edges to a network of {agents}; use "
            "fewer than it has agents"
        )
    return nx.barabasi_albert_graph(agents, params.edges, seed=params.seed)
