r"""D-ULA as released: an agent moves towards its neighbors one after another.

From :math:`y = w_i`, for each neighbor j in increasing order :math:`y \leftarrow y - \beta (y -
w_j)` with the old :math:`w_j`; then the gradient step and the noise of D-ULA. Later neighbors weigh
more than earlier ones, so that the weights are not symmetric; where the numbering wraps around a
ring their columns do not sum to one, and the plain average of the agents is not kept.

Source: what the released code of parayil2020 computes.
Price: a vector to every neighbor and a gradient (or mini-batch) of every agent per step.
Needs: a connected network on which everything arrives.
"""

import numpy as np

from concord.networks.graph import Graph
from concord.networks.network import Network
from concord.samplers.checks import check_lossless
from concord.samplers.d_ula import DULA


class DULAInTurn(DULA):
    """D-ULA whose agents average with their neighbors in turn."""

    takes_order = False

    def check(self, problem: object, network: Network) -> None:
        """Refuse what D-ULA does, and a network on which something gets lost."""
        super().check(problem, network)
        check_lossless(network, "d_ula_in_turn takes all neighbors' vectors one by one")

    def fusion_matrix(self, beta: float | np.ndarray, network: Network) -> np.ndarray:
        """Return the matrix of the moves towards all neighbors, of one beta or several."""
        return in_turn_weights(network.graph, np.asarray(beta))


def in_turn_weights(graph: Graph, beta: np.ndarray) -> np.ndarray:
    """Return the matrices of neighbors in turn, (..., agents, agents), whose rows sum to one."""
    weights = np.tile(np.eye(graph.agents), (*beta.shape, 1, 1))
    for agent, neighbors in enumerate(graph.neighbors):
        for neighbor in neighbors:
            weights[..., agent, :] *= 1 - beta[..., None]
            weights[..., agent, neighbor] += beta
    return weights
