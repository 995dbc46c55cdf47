"""The matrices W that agents average with."""

from typing import Annotated, Literal

import numpy as np
from msgspec import Meta

from concord.errors import ConcordError
from concord.networks.matrix import AgentMatrix
from concord.networks.network import one_by_one
from concord.networks.topology import Topology

Weights = Annotated[
    Literal[
        "metropolis",
        "lazy_metropolis",
        "max_degree",
        "best_constant",
        "row_stochastic",
        "column_stochastic",
        "pairwise",
        "next_two",
    ]
    | Annotated[float, Meta(gt=0, lt=1)],
    "W: Metropolis weights; half of these, and half for the agent itself; one weight for all "
    "edges, 1/(1 + the largest degree) or the one that agrees fastest; equal weights for all that "
    "an agent hears and itself; or for all that hear an agent and itself; half for the one "
    "neighbor that an agent hears in an iteration; or on a ring a third each for an agent itself "
    "and the next two, one way around (not symmetric); or a number, the weight of every edge",
]
ROUNDING = 1e-9  # by which sums of weights may miss one


def check_weights(topology: Topology, weights: str | float) -> None:
    """Refuse weights that the network has no meaning for."""
    if weights == "next_two" and (topology.name != "ring" or topology.agents < 3):
        raise ConcordError(
            f"weights: next_two goes around a ring of 3 agents or more, not {topology.name} of "
            f"{topology.agents}; use metropolis"
        )
    if topology.directed and weights not in ("row_stochastic", "column_stochastic", "pairwise"):
        raise ConcordError(
            f"weights: {weights} needs neighbors that hear each other, and {topology.name} is "
            "directed; use a sampler for directed networks (push_sum_sgld), or row_stochastic if "
            "all agents hear as many as they send to"
        )
    if weights == "pairwise" and not one_by_one(topology):
        raise ConcordError(
            "weights: pairwise is for networks on which an agent hears at most one neighbor in an "
            "iteration; use another one, or a schedule such as matchings or one_peer"
        )
    matrix = weights_of(topology, weights)
    if np.abs(matrix.sums() - 1).max() > ROUNDING:
        raise ConcordError(
            f"weights: {weights} are not doubly stochastic on {topology.name} of "
            f"{topology.agents}, so averaging would not keep the average; use metropolis on an "
            "undirected topology, or a sampler for directed networks (push_sum_sgld)"
        )
    constant = weights == "best_constant" or isinstance(weights, float)
    own = matrix.diagonal.min() if constant else 0.0
    if own < -1e-12:  # rounding apart
        raise ConcordError(
            f"weights: {weights} gives an agent the weight {own:.3g} on itself, on "
            f"{topology.name} of {topology.agents}, but averages need weights that are not "
            "negative; use metropolis"
        )


def weights_of(topology: Topology, weights: str | float) -> AgentMatrix:
    r"""Return the matrix W that agents average with.

    ``metropolis``
        symmetric and doubly stochastic, on any network; where a network has weights of its own,
        these;
    ``lazy_metropolis``
        (I + W)/2 with these, whose eigenvalues are not negative;
    ``max_degree``, ``best_constant``
        :math:`I - \alpha L` with :math:`\alpha = 1 / (1 + \max_i \deg_i)`, or :math:`2 /
        (\lambda_{\max}(L) + \lambda_2(L))`, which makes the second largest modulus of an
        eigenvalue smallest (Xiao and Boyd, "Fast linear iterations for distributed averaging",
        2004);
    a number w
        :math:`I - w L`, the weight w on every edge (extra2024's released code);
    ``row_stochastic``, ``column_stochastic``
        :math:`W_{ij} = 1 / (1 + r_i)` or :math:`1 / (1 + s_j)` where i hears j, with r_i the
        number of neighbors that i hears, and s_j of those that j sends to; the other sums are one
        only where these numbers are equal;
    ``pairwise``
        :math:`W_{ij} = 1/2` where i hears j, of which one arrives in an iteration (or none);
    ``next_two``
        :math:`W_{ij} = 1/3` for j = i, i + 1 and i + 2 modulo N: doubly stochastic, but not
        symmetric, and i + 2 is no neighbor of i on the ring.

    Source: gurbuzbalaban2021, section 2, and what its released code computes.
    """
    if weights == "metropolis":
        return topology.weights or topology.metropolis()
    if weights == "lazy_metropolis":
        return (topology.weights or topology.metropolis()).and_identity(0.5, 0.5)
    if isinstance(weights, float):
        return topology.laplacian().and_identity(-weights, 1.0)
    if weights == "max_degree":
        return topology.laplacian().and_identity(-1 / (1 + topology.degrees.max()), 1.0)
    if weights == "best_constant":
        found = topology.spectral()
        most = found["laplacian_max"] + found["algebraic_connectivity"]
        return topology.laplacian().and_identity(-2 / most if most else 0.0, 1.0)
    if weights != "next_two":
        adjacency = topology.adjacency()
        hears = np.bincount(adjacency.rows, minlength=topology.agents)
        values = {
            "row_stochastic": 1 / (1 + hears[adjacency.rows]),
            "column_stochastic": 1 / (1 + topology.degrees[adjacency.columns]),
            "pairwise": np.full(len(adjacency.rows), 0.5),
        }[weights]
        sums = adjacency.columns if weights == "column_stochastic" else adjacency.rows
        kept = 1 - np.bincount(sums, values, topology.agents)
        return AgentMatrix.with_diagonal(adjacency.rows, adjacency.columns, values, kept)
    own = np.arange(topology.agents)
    seen = (own[:, None] + np.arange(3)) % topology.agents
    third = np.full(seen.size, 1 / 3)
    return AgentMatrix.from_entries(topology.agents, np.repeat(own, 3), seen.ravel(), third)
