"""What samplers have in common: networks they refuse, and what a plain step sends."""

from __future__ import annotations

from typing import Any

from concord.contracts import Info, Problem
from concord.errors import ConcordError
from concord.networks import mixing
from concord.networks.channel import Channel
from concord.networks.faults import Network
from concord.networks.topology import Topology
from concord.sampling.gradients import check_batches


def to_all_neighbors(channel: Channel) -> Info:
    """Return the diagnostics of a step in which every agent sends one vector to each neighbor."""
    return Info(channel.unicasts, channel.broadcasts, channel.active)


def check_connected(topology: Topology) -> None:
    """Refuse a network in parts, unless it is meant: mixing would never reach consensus."""
    if not topology.connected and topology.name != "no_edges":
        raise ConcordError(
            f"topology {topology.name!r} is not connected, so its agents cannot agree; "
            "add edges, or use no_edges if isolated agents are meant"
        )


def check_arrivals(topology: Topology, params: Any, **wanted: str) -> None:
    """Refuse options that say nothing of a network on which vectors may not arrive."""
    for name, value in wanted.items() if isinstance(topology, Network) else ():
        if (given := getattr(params, name)) != value:
            raise ConcordError(
                f"{name}: {given} has no meaning on a network where vectors may not arrive; "
                f"use {value}, or remove network"
            )


def check_averaging(problem: Problem | None, topology: Topology, params: Any) -> None:
    """Refuse a network in parts, unless it is meant, and options that do not go together."""
    check_connected(topology)
    mixing.check_weights(topology, params.weights)
    check_arrivals(topology, params, update_order="simultaneous")
    if params.weights == "next_two":
        check_arrivals(topology, params, weights="metropolis")
    check_batches(params.batch_size, params.batch_scale, params.batch_pool)


def check_centralized(topology: Topology, sampler: str) -> None:
    """Refuse a network: there is one agent, which holds all the data."""
    if topology.agents != 1:
        raise ConcordError(
            f"{sampler} is centralized and cannot run on {topology.agents} agents; set agents to 1"
        )
