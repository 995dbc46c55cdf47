"""What a sampler needs of networks and problems, by which unsuited ones are refused.

A sampler's class declares it (``Sampler.needs``), and ``check_needs`` refuses all else in one
sentence.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np

from concord.errors import ConcordError
from concord.networks.network import Network
from concord.summary import SHOWN

ROUNDING = 1e-9  # by which sums of weights may miss one
ABILITIES = {  # what methods of a problem mean to a user
    "difference": "mini-batches",
    "gram": "quadratic potentials",
    "hessian_product": "Hessians of the potentials",
    "minimize": "proximal steps",
    "potential": "values of the potentials",
    "prior_gradient": "the prior's gradient apart",
}
LANGEVIN = (  # what to do where a sampler would draw from Gaussians
    "add step_size=0.001, by which it takes Langevin steps in place of draws from Gaussians, or "
    "take de_sgld"
)
ARGUMENTS = {  # of ``concord.Problem`` that have it offer a method
    "difference": "batch_gradient",
    "hessian_product": "hessian_product",
    "minimize": "prox",
    "potential": "potential",
}


class Needs(NamedTuple):
    """What a sampler needs of a network and of a problem.

    network: ``alone``, a single agent; ``server``, an average of all by a server, or a single
    agent; ``connected``, neighbors that hear each other, and a path between any two agents, or no
    edges; ``pairs``, the same with an edge at least; ``paths``, the same where edges may have
    directions; ``mixing``, doubly stochastic weights on such a network (the sampler's ``weights``,
    or Metropolis weights); ``any`` network.

    peers: whether agents must receive the vectors of their neighbors, so that a server's average
    does not do.

    arrival: a clause after the sampler's name that says why every vector must arrive; "" where some
    may get lost, late or changed.

    problem: names of methods that the problem must have besides ``gradient``.

    local: a clause after the sampler's name that says why it is not right where some coordinates
    belong to the agent who holds them (``local_coordinates``); "" where it is.
    """

    network: Literal["any", "alone", "server", "connected", "pairs", "paths", "mixing"] = "any"
    peers: bool = False
    arrival: str = ""
    problem: tuple[str, ...] = ()
    local: str = ""


def check_needs(sampler: Any, problem: object, network: Network) -> None:
    """Refuse a network or a problem that lacks what the sampler needs, with a ConcordError.

    problem: None where it is not built yet.
    """
    needs, graph = sampler.needs, network.graph
    name = sampler.name or type(sampler).__name__
    if needs.network == "alone" and network.agents > 1:
        raise ConcordError(
            f"{name} is centralized and cannot run on {network.agents} agents; set agents to 1"
        )
    if needs.network == "server" and network.agents > 1 and graph.server_messages is None:
        raise ConcordError(
            f"{name} needs a server, which {graph.name} has not; use topology server"
        )
    if needs.network in ("connected", "pairs", "paths"):
        _check_connected(network, directed=needs.network == "paths")
    if needs.network == "pairs" and not network.edges:
        raise ConcordError(
            f"topology {graph.name!r} of {network.agents} has no pair to gossip; add edges"
        )
    if needs.network == "mixing":
        _check_mixing(network, getattr(sampler, "weights", "metropolis"))
    if needs.peers and graph.server_messages is not None:
        raise ConcordError(
            f"{name} sends vectors from agent to agent, which {graph.name} does not; use topology "
            "complete"
        )
    if needs.arrival and not network.is_lossless:
        raise ConcordError(f"network: {name} {needs.arrival}; remove network")
    if needs.local:
        refuse_local(problem, f"{name} {needs.local}")
    for method in needs.problem:
        require(problem, method, "choose another problem or sampler")


def refuse_local(problem: object, why: str) -> None:
    """Raise a ConcordError, which begins by why, if a problem has local coordinates."""
    if getattr(problem, "local", None) is not None:
        raise ConcordError(f"{why}; share all coordinates, or use a sampler such as de_sgld")


def require(problem: object, method: str, remedy: str) -> None:
    """Raise a ConcordError with a remedy if a problem, unless it is None, lacks a method.

    method: the name of the method or attribute, such as ``minimize``.
    """
    if problem is not None and not hasattr(problem, method):
        kind = type(problem).__name__
        if kind == "Problem" and method in ARGUMENTS:
            kind, remedy = (
                "gradients alone",
                f"give concord.Problem its {ARGUMENTS[method]}=, or {remedy}",
            )
        raise ConcordError(
            f"the sampler needs {ABILITIES.get(method, method)}, which a problem of {kind} does "
            f"not offer; {remedy}"
        )


def check_positive_definite(precisions: np.ndarray) -> None:
    """Raise a ConcordError if a precision, one of (agents, dim, dim), is not positive definite."""
    values = np.linalg.eigvalsh(precisions)
    flat = np.flatnonzero(values[:, 0] <= 1e-14 * values[:, -1])
    if flat.size:
        raise ConcordError(
            f"agent {flat[0]} has too few points, too little curvature, or no prior and no "
            "neighbors, so that it has no law or minimizer of its own; give it a share of the prior"
        )


def _check_connected(network: Network, directed: bool) -> None:
    """Refuse agents without a path between any two; ``directed``: edges may be one-way."""
    graph = network.graph
    if graph.directed and not directed:
        raise ConcordError(
            f"topology {graph.name!r} is directed, and the sampler needs neighbors that hear each "
            "other; choose an undirected one, or a sampler such as push_sum_sgld"
        )
    if not graph.is_connected and graph.name != "no_edges":
        raise ConcordError(
            f"network: {graph.name} is not connected: {_describe_parts(network)}; add an edge, or "
            "take 'no_edges' if isolated agents are meant"
        )


def _describe_parts(network: Network) -> str:
    """Return which agents of a network that is not connected have no path to each other."""
    from scipy import sparse  # a tenth of a second

    adjacency = sparse.csr_array(network.graph.adjacency)
    _, parts = sparse.csgraph.connected_components(adjacency, connection="strong")
    sides: tuple[list[str], list[str]] = [], []
    for name, part in zip(network.names, parts.tolist(), strict=True):
        sides[int(part != parts[0])].append(str(name))
    inside, outside = (", ".join(side[:SHOWN]) + ", ..." * (len(side) > SHOWN) for side in sides)
    return f"no path joins {inside} with {outside}, so that they cannot agree"


@lru_cache(maxsize=4)  # planning asks for every run of a sweep
def _check_mixing(network: Network, weights: str | float) -> None:
    """Refuse a network that is not connected, and weights not doubly stochastic on it."""
    _check_connected(network, directed=True)
    graph = network.graph
    if graph.directed and weights not in ("row_stochastic", "column_stochastic", "pairwise"):
        raise ConcordError(
            f"weights: {weights} needs neighbors that hear each other, and {graph.name} is "
            "directed; use a sampler for directed networks (push_sum_sgld), or row_stochastic if "
            "all agents hear as many as they send to"
        )
    if weights == "pairwise":
        from concord.networks.conditions import hears_one_at_most  # for these weights alone

        if not hears_one_at_most(graph, network.conditions):
            raise ConcordError(
                "weights: pairwise is for networks on which an agent hears at most one neighbor in "
                "an iteration; use another one, or a schedule such as matchings or one_peer"
            )
    matrix = network.matrix(weights)
    sums = np.concatenate([matrix.sum(axis=0), matrix.sum(axis=1)])
    if np.abs(sums - 1).max() > ROUNDING:
        raise ConcordError(
            f"weights: {weights} are not doubly stochastic on {graph.name} of {graph.agents}, so "
            "averaging would not keep the average; use metropolis on an undirected topology, or a "
            "sampler for directed networks (push_sum_sgld)"
        )
    least = matrix.diagonal().min()
    if not isinstance(weights, str) and least < -1e-12:
        raise ConcordError(
            f"weights: {weights} gives an agent the weight {least:.3g} on itself, on {graph.name} "
            f"of {graph.agents}, but averages need weights that are not negative; use metropolis"
        )
