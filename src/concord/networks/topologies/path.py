"""A line of agents."""

from __future__ import annotations

from typing import Any

from concord.options import Options


class Params(Options):
    """It has no options."""


def graph(params: Params, agents: int) -> Any:
    """Return the graph."""
    import networkx as nx

    return nx.path_graph(agents)
