"""Mixing matrices W, by which an agent averages its neighbors' vectors with its own."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

import numpy as np
from msgspec import Meta

from concord.errors import ConcordError, nearest
from concord.networks.graph import Graph, Matrix

Name = Literal[
    "metropolis",
    "lazy_metropolis",
    "row_stochastic",
    "column_stochastic",
    "pairwise",
]
Weights = Annotated[
    Name | Annotated[float, Meta(gt=0, lt=1)],
    "W: Metropolis weights; half of these, and half for the agent itself; equal weights for all "
    "that an agent hears and itself; or for all that hear an agent and itself; half for the one "
    "neighbor that an agent hears in an iteration; or a number, the weight of every edge",
]


def mixing_matrix(graph: Graph, weights: str | float) -> Matrix:
    r"""Return the mixing matrix W of a graph by name, (agents, agents).

    ``metropolis``
        symmetric and doubly stochastic; a graph's own weights, if it has some;
    ``lazy_metropolis``
        (I + W)/2 with these, whose eigenvalues are not negative;
    a number w
        :math:`I - w L`, the weight w on every edge;
    ``row_stochastic``, ``column_stochastic``
        :math:`1 / (1 + r_i)` or :math:`1 / (1 + s_j)` where i hears j, with r_i the number of
        neighbors that i hears, and s_j of those that hear j;
    ``pairwise``
        1/2 where i hears j, of which one is heard in an iteration, or none.
    """
    if weights in ("metropolis", "lazy_metropolis"):
        whole = weights == "metropolis"
        return graph.metropolis if whole else (graph.metropolis + graph.identity) / 2
    if not isinstance(weights, str):
        return graph.identity - weights * graph.laplacian
    values = {
        "row_stochastic": 1 / (1 + graph.in_degrees[graph.receivers]),
        "column_stochastic": 1 / (1 + graph.degrees[graph.senders]),
        "pairwise": np.full(len(graph.senders), 0.5),
    }
    if weights not in values:
        hint = nearest(weights, get_args(Name))
        raise ConcordError(f"weights: there are none called {weights!r}; {hint}")
    summed = graph.senders if weights == "column_stochastic" else graph.receivers
    diagonal = 1 - np.bincount(summed, values[weights], graph.agents)
    return graph.matrix(values[weights], diagonal)
