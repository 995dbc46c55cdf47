"""Every two agents are neighbors."""

from __future__ import annotations

from typing import Any

from concord.networks.topology import check_pairs
from concord.options import Options


class Params(Options):
    """It has no options."""


def graph(params: Params, agents: int) -> Any:
    """Return the graph."""
    import networkx as nx

    check_pairs(agents, "complete")
    return nx.complete_graph(agents)
