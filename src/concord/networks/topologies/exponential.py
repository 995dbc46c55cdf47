"""Agents 1, 2, 4, 8, ... apart around a circle are neighbors: about 2 log2 N neighbors each.

Source: Ying, Yuan, Chen, Hu, Pan and Yin, "Exponential graph is provably efficient for
decentralized deep training" (2021, arXiv:2110.13363), where edges have a direction; not here.
"""

from __future__ import annotations

from typing import Any

from concord.options import Options


class Params(Options):
    """It has no options."""


def graph(params: Params, agents: int) -> Any:
    """Return the graph."""
    import networkx as nx

    apart = [2**j for j in range((agents - 1).bit_length())]
    return nx.circulant_graph(agents, apart) if apart else nx.empty_graph(agents)
