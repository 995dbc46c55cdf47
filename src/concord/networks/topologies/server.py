"""A server averages over all agents: one vector up and one down for each of them.

Every agent weighs the same for every other, W = J/N with J the matrix of ones. Agents send nothing
to each other; where they add up along a ring instead, and pass the sum on along it (ring
all-reduce), it takes 2 (N - 1) vectors, one after the other, and no server.
"""

from typing import Annotated, Literal

import numpy as np

from concord.networks.topology import check_pairs
from concord.options import Options


class Params(Options):
    """How the average is made."""

    average_by: Annotated[
        Literal["server", "ring_all_reduce"],
        "the server, N vectors up and N down; or the agents, adding up along a ring, which takes "
        "2 (N - 1) vectors",
    ] = "server"


def graph(params: Params, agents: int) -> np.ndarray:
    """Return the edges of the complete graph, whose Metropolis weights are J/N."""
    check_pairs(agents, "server")
    return np.column_stack(np.triu_indices(agents, 1))


def messages(params: Params, agents: int) -> list[int]:
    """Return how many vectors each agent sends for one average, the server's counted with them.

    Along the ring agents 0, ..., N - 2 pass on what is added up, then N - 1, 0, ..., N - 3 the sum.
    """
    if agents == 1:
        return [0]
    if params.average_by == "server":
        return [2] * agents
    return [2] * (agents - 2) + [1, 1]
