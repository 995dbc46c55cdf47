"""What samplers have in common: networks they refuse, and what a plain step sends."""

from __future__ import annotations

import numpy as np

from concord.contracts import Info
from concord.errors import ConcordError
from concord.networks.topology import Topology


def to_all_neighbors(topology: Topology) -> Info:
    """Return the diagnostics of a step in which every agent sends one vector to each neighbor."""
    return Info(topology.degrees, np.minimum(topology.degrees, 1))


def check_connected(topology: Topology) -> None:
    """Refuse a network in parts, unless it is meant: mixing would never reach consensus."""
    if not topology.connected and topology.name != "no_edges":
        raise ConcordError(
            f"topology {topology.name!r} is not connected, so its agents cannot agree; "
            "add edges, or use no_edges if isolated agents are meant"
        )


def check_centralized(topology: Topology, sampler: str) -> None:
    """Refuse a network: there is one agent, which holds all the data."""
    if topology.agents != 1:
        raise ConcordError(
            f"{sampler} is centralized and cannot run on {topology.agents} agents; set agents to 1"
        )
