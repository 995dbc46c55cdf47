r"""Read-outs: which output of an entry is scored, and what it costs.

``agents``
    each agent's own position, for nothing;
a number T
    :math:`\sum_j (W^T)_{ij} x_j` with Metropolis weights W: the positions after T more rounds of
    averaging, each a vector to every neighbor;
``average``
    the network average, which everybody has after a sum up a spanning tree and back down,
    :math:`2 (N - 1)` vectors; with a server, after one round.

Every draw is read, so that each iteration pays for one read-out. Sources of the numbers: counted.
"""

import numpy as np

from concord.contracts import dtype_of
from concord.errors import ConcordError
from concord.networks.graph import as_dense
from concord.networks.network import Network
from concord.problem import Problem


def read_out(read: str | int, network: Network) -> tuple[np.ndarray | None, float]:
    """Return the matrix of a read-out, (agents, agents), and its cost in vectors per agent.

    read: "agents", a number of rounds of averaging, or "average". The matrix is None for "agents":
    the answers are the positions. A ConcordError if the network does not allow the read-out.
    """
    if read == "agents":
        return None, 0.0
    graph = network.graph
    eventful = network.keeps_time or not network.is_lossless
    if eventful or graph.directed or not graph.is_connected:
        raise ConcordError(
            f"arena.read: {read} takes a connected network without directions on which everything "
            "arrives, and no clock; use agents"
        )
    size, messages = network.agents, graph.server_messages
    round_ = float(np.mean(graph.degrees if messages is None else messages))
    if read == "average":
        tree = 2 * (size - 1) / size if messages is None else round_
        return np.full((size, size), 1 / size), tree
    weights = as_dense(network.matrix("metropolis"))
    return np.linalg.matrix_power(weights, int(read)), int(read) * round_


def bytes_of(vectors: float, problem: Problem) -> float:
    """Return the bytes of a number of position vectors."""
    return vectors * problem.dim * dtype_of(problem).itemsize
