"""Every two agents are neighbors."""

import numpy as np

from concord.networks.topology import list_pairs
from concord.options import Options as Params


def graph(params: Params, agents: int) -> np.ndarray:
    """Return all pairs of agents, (edges, 2)."""
    return list_pairs(agents)
