"""What several samplers refuse: networks, and options that do not go together."""

from typing import Any

import numpy as np

from concord.contracts import Problem
from concord.errors import ConcordError
from concord.networks.topology import Topology
from concord.networks.weights import check_weights
from concord.sampling.gradients import check_batches


def check_connected(topology: Topology, directed: bool = False) -> None:
    """Refuse a network in parts, unless it is meant: mixing would never reach consensus.

    And, unless the sampler knows what to do with it, one whose edges have a direction.
    """
    if topology.directed and not directed:
        raise ConcordError(
            f"topology {topology.name!r} is directed, and the sampler needs neighbors that hear "
            "each other; choose an undirected one, or a sampler such as push_sum_sgld"
        )
    if not topology.connected and topology.name != "no_edges":
        raise ConcordError(
            f"topology {topology.name!r} is not connected, so its agents cannot agree; "
            "add edges, or use no_edges if isolated agents are meant"
        )


def check_mixing(topology: Topology, weights: str | float) -> None:
    """Refuse a network in parts, and weights that do not suit it; they decide about directions."""
    check_connected(topology, directed=True)
    check_weights(topology, weights)
    if weights == "next_two":  # of whom one is no neighbor
        check_arrivals(topology, weights=(weights, "metropolis"))


def check_arrivals(topology: Topology, **options: tuple[str, str]) -> None:
    """Refuse options that need all vectors of all neighbors, one by one.

    Of each option what is given, and what does not need them.
    """
    where, remedy = "on a network where vectors may not arrive", "remove network"
    if topology.messages is not None:
        where, remedy = f"on {topology.name}, which averages at once", "use topology complete"
    elif topology.conditions.perfect:
        return
    for name, (given, value) in options.items():
        if given != value:
            raise ConcordError(f"{name}: {given} has no meaning {where}; use {value}, or {remedy}")


def check_perfect(topology: Topology, why: str) -> None:
    """Refuse a network on which something may not arrive as it was sent, and say why."""
    if not topology.conditions.perfect:
        raise ConcordError(f"network: {why}; remove network")


def check_neighbors(topology: Topology, sampler: str) -> None:
    """Refuse a network whose agents hear nothing but the average of all."""
    if topology.messages is not None:
        raise ConcordError(
            f"sampler {sampler} sends vectors from agent to agent, which {topology.name} does not; "
            "use topology complete"
        )


def check_averaging(problem: Problem | None, topology: Topology, params: Any) -> None:
    """Refuse what ``check_weighted`` does, and an order in which everything has to arrive."""
    check_weighted(problem, topology, params)
    check_arrivals(topology, update_order=(params.update_order, "simultaneous"))


def check_weighted(problem: Problem | None, topology: Topology, params: Any) -> None:
    """Refuse a network in parts, unless it is meant, and options that do not go together."""
    check_mixing(topology, params.weights)
    check_batches(params.batch_size, params.batch_scale, params.batch_pool)


def first_flat(precisions: np.ndarray) -> int | None:
    """Return the first agent whose precision, (agents, dim, dim), is not positive definite."""
    values = np.linalg.eigvalsh(precisions)
    flat = np.flatnonzero(values[:, 0] <= 1e-14 * values[:, -1])
    return int(flat[0]) if flat.size else None


def check_server(topology: Topology, sampler: str) -> None:
    """Refuse a network without a server, which one agent does not need."""
    if topology.agents > 1 and topology.messages is None:
        raise ConcordError(
            f"sampler {sampler} needs a server, which {topology.name} has not; use topology server"
        )


def check_centralized(topology: Topology, sampler: str) -> None:
    """Refuse a network: there is one agent, which holds all the data."""
    if topology.agents != 1:
        raise ConcordError(
            f"{sampler} is centralized and cannot run on {topology.agents} agents; set agents to 1"
        )
