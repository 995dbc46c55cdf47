"""Every two agents are neighbors with the same probability, independently."""

from typing import Annotated

import networkx as nx

from concord.kinds import Declaration
from concord.networks.topology import check_edges
from concord.options import Index, Options, Share

DECLARES = Declaration(name="Erdős-Rényi")


class Params(Options):
    """The distribution of the graph, and its seed."""

    probability: Annotated[Share, "probability of each edge"]
    seed: Annotated[Index, "seed of the graph"] = 0


def graph(params: Params, agents: int) -> nx.Graph:
    """Return a networkx graph in which pairs of agents are linked with ``params.probability``."""
    check_edges(agents * (agents - 1) // 2)
    return nx.gnp_random_graph(agents, params.probability, seed=params.seed)
