"""A cycle; one or two agents close none: no edge, or a single one."""

from __future__ import annotations

from typing import Any

from concord.options import Options


class Params(Options):
    """It has no options."""


def graph(params: Params, agents: int) -> Any:
    """Return the graph."""
    import networkx as nx

    return nx.cycle_graph(agents) if agents > 2 else nx.path_graph(agents)
