"""Agent 0 is the center, and the neighbor of all others."""

from __future__ import annotations

from typing import Any

from concord.options import Options


class Params(Options):
    """It has no options."""


def graph(params: Params, agents: int) -> Any:
    """Return the graph."""
    import networkx as nx

    return nx.star_graph(agents - 1)
