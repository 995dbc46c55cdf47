"""Agents at random places of a unit square are neighbors if they are near each other."""

from __future__ import annotations

from typing import Annotated, Any

from concord.networks.topology import check_pairs
from concord.options import Index, Options, Positive


class Params(Options):
    """How far agents reach, and the seed of their places."""

    radius: Annotated[Positive, "largest distance between neighbors, on a square of side 1"]
    seed: Annotated[Index, "seed of the places"] = 0


def graph(params: Params, agents: int) -> Any:
    """Return the graph."""
    import networkx as nx

    check_pairs(agents, "random_geometric")
    return nx.random_geometric_graph(agents, params.radius, seed=params.seed)
