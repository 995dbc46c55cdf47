r"""D-ULA as released: an agent moves towards its neighbors one after another.

From :math:`y = w_i`, for each neighbor j in increasing order,

.. math:: y \leftarrow y - \beta_k (y - w_j)

with the old :math:`w_j`; then the gradient step and the noise of D-ULA. Later neighbors weigh
more than earlier ones, so that the weights are not symmetric; where the numbering wraps around a
ring their columns do not sum to one, and the plain average of the agents is not kept.

Source: what the released code of parayil2020 computes.
Price: a vector to every neighbor and a gradient (or mini-batch) of every agent per step.
Needs: a connected network on which everything arrives.
"""

from functools import lru_cache
from typing import Annotated, ClassVar, Literal

import numpy as np

from concord.needs import Needs
from concord.networks.graph import Graph, as_dense
from concord.networks.network import Network
from concord.samplers.d_ula import DULA


class DULAInTurn(DULA, kw_only=True):
    """D-ULA in which an agent moves towards its neighbors one after another."""

    needs: ClassVar[Needs] = Needs(
        "connected",
        peers=True,
        arrival="in turn needs one neighbor after another, and all of them",
        local="in turn weighs agents unequally, which their own coordinates do not follow",
    )

    update_order: Annotated[Literal["simultaneous"], "agents move all at once"] = "simultaneous"

    def fusion_matrix(self, beta: float, network: Network) -> np.ndarray:
        """Return the matrix by which moves towards all neighbors act, (agents, agents)."""
        return in_turn_weights(network.graph, beta)


def in_turn_weights(graph: Graph, beta: float) -> np.ndarray:
    """Return the weights of moves towards neighbors in turn, (agents, agents); rows sum to one.

    An agent's weight shrinks by the factor 1 - beta with each neighbor that it moves towards
    afterwards. beta: the weight of a move.
    """
    once, later = _count_moves(graph)
    return (beta * once + np.eye(graph.agents)) * (1 - beta) ** later


@lru_cache(maxsize=4)
def _count_moves(graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    """Return the adjacency, and how many neighbors an agent moves towards after each neighbor.

    Both are (agents, agents). The diagonal of the second has the number of neighbors.
    """
    once = as_dense(graph.adjacency)
    later = np.cumsum(once[:, ::-1], axis=1)[:, ::-1] - once
    np.fill_diagonal(later, graph.in_degrees)
    return once, later
