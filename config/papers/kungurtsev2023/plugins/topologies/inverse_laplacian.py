r"""All agents hear all, with weights that a path would have if it were solved for.

.. math:: W = (I + L)^{-1}

L is the Laplacian of the path 0, 1, ..., N - 1. W is symmetric and doubly stochastic, and none of
its entries is zero: agents that are no neighbors on the path exchange vectors, too, which count.

Source: the released code of kungurtsev2023, which calls it a ring.
"""

import networkx as nx
import numpy as np

from concord.kinds import Declaration
from concord.networks.topologies import complete
from concord.options import Options as Params

DECLARES = Declaration(name="inverse Laplacian of a path")


def graph(params: Params, agents: int) -> np.ndarray:
    """Return the edges between all agents."""
    return complete.graph(params, agents)


def weights(params: Params, agents: int) -> np.ndarray:
    """Return W = (I + L)^{-1}, with the Laplacian L of the path, (agents, agents)."""
    laplacian = nx.laplacian_matrix(nx.path_graph(agents)).toarray()
    inverse: np.ndarray = np.linalg.inv(np.eye(agents) + laplacian)
    return inverse
