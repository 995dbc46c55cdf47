"""Checks by which several samplers refuse a network or a problem that does not suit them."""

from __future__ import annotations

import numpy as np

from concord.errors import ConcordError
from concord.networks.network import Network

ROUNDING = 1e-9  # by which sums of weights may miss one


def check_connected(network: Network, directed: bool = False) -> None:
    """Refuse a network that is not connected, other than ``no_edges``, or is directed.

    directed: whether the sampler works on directed networks, so that these pass.
    """
    graph = network.graph
    if graph.directed and not directed:
        raise ConcordError(
            f"topology {graph.name!r} is directed, and the sampler needs neighbors that hear each "
            "other; choose an undirected one, or a sampler such as push_sum_sgld"
        )
    if not graph.is_connected and graph.name != "no_edges":
        raise ConcordError(
            f"topology {graph.name!r} is not connected, so its agents cannot agree; "
            "add edges, or use no_edges if isolated agents are meant"
        )


def check_mixing(network: Network, weights: str | float) -> None:
    """Refuse a network that is not connected, and weights not doubly stochastic on it.

    weights: name of the mixing weights, or the weight of every edge.
    """
    check_connected(network, directed=True)
    graph = network.graph
    if graph.directed and weights not in ("row_stochastic", "column_stochastic", "pairwise"):
        raise ConcordError(
            f"weights: {weights} needs neighbors that hear each other, and {graph.name} is "
            "directed; use a sampler for directed networks (push_sum_sgld), or row_stochastic if "
            "all agents hear as many as they send to"
        )
    if weights == "pairwise":
        _check_pairs(network)
    matrix = network.matrix(weights)
    sums = np.concatenate([matrix.sum(axis=0), matrix.sum(axis=1)])
    if np.abs(sums - 1).max() > ROUNDING:
        raise ConcordError(
            f"weights: {weights} are not doubly stochastic on {graph.name} of {graph.agents}, so "
            "averaging would not keep the average; use metropolis on an undirected topology, or a "
            "sampler for directed networks (push_sum_sgld)"
        )
    least = matrix.diagonal().min()
    if (weights == "best_constant" or not isinstance(weights, str)) and least < -1e-12:
        raise ConcordError(
            f"weights: {weights} gives an agent the weight {least:.3g} on itself, on {graph.name} "
            f"of {graph.agents}, but averages need weights that are not negative; use metropolis"
        )


def _check_pairs(network: Network) -> None:
    """Refuse a network on which an agent hears more than one neighbor in an iteration."""
    from concord.networks.conditions import hears_one_at_most  # for these weights alone

    if not hears_one_at_most(network.graph, network.conditions):
        raise ConcordError(
            "weights: pairwise is for networks on which an agent hears at most one neighbor in an "
            "iteration; use another one, or a schedule such as matchings or one_peer"
        )


def check_neighbors(network: Network, name: str) -> None:
    """Refuse a network on which agents receive only the average of all from a server.

    name: the sampler's name in the error.
    """
    if network.graph.server_messages is not None:
        raise ConcordError(
            f"sampler {name} sends vectors from agent to agent, which {network.graph.name} does "
            "not; use topology complete"
        )


def check_lossless(network: Network, why: str) -> None:
    """Refuse a network on which vectors may be lost, delayed or changed.

    why: the reason in the error, a clause with the sampler as subject.
    """
    if not network.is_lossless:
        raise ConcordError(f"network: {why}; remove network")


def check_server(network: Network, name: str) -> None:
    """Refuse a network of two or more agents without a server.

    name: the sampler's name in the error.
    """
    if network.agents > 1 and network.graph.server_messages is None:
        raise ConcordError(
            f"sampler {name} needs a server, which {network.graph.name} has not; use topology "
            "server"
        )


def check_single_agent(network: Network, name: str) -> None:
    """Refuse a network of more than one agent.

    name: the sampler's name in the error.
    """
    if network.agents != 1:
        raise ConcordError(
            f"{name} is centralized and cannot run on {network.agents} agents; set agents to 1"
        )


def find_flat_agent(precisions: np.ndarray) -> int | None:
    """Return the first agent whose precision, (agents, dim, dim), is not positive definite."""
    values = np.linalg.eigvalsh(precisions)
    flat = np.flatnonzero(values[:, 0] <= 1e-14 * values[:, -1])
    return int(flat[0]) if flat.size else None
