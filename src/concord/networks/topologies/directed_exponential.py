"""Agent i sends to agents i + 1, i + 2, i + 4, i + 8, ... around a circle: about log2 N of them.

All hear as many as they send to. With a schedule ``one_peer`` and weights ``pairwise`` the average
of N = 2^m agents is exact after m iterations.

Source: Assran, Loizou, Ballas and Rabbat, "Stochastic gradient push for distributed deep learning"
(2019, arXiv:1811.10792), and Ying, Yuan, Chen, Hu, Pan and Yin, "Exponential graph is provably
efficient for decentralized deep training" (2021, arXiv:2110.13363); in our form.
"""

import networkx as nx

from concord.networks.topology import check_edges
from concord.options import Options as Params


def graph(params: Params, agents: int) -> nx.DiGraph:
    """Return the directed exponential graph over agents 0 to N - 1."""
    apart = [2**j for j in range((agents - 1).bit_length())]
    check_edges(agents * len(apart))
    graph = nx.empty_graph(agents, create_using=nx.DiGraph)
    graph.add_edges_from((i, (i + hop) % agents) for i in range(agents) for hop in apart)
    return graph
