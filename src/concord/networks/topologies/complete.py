"""Every two agents are neighbors."""

import numpy as np

from concord.networks.topology import list_pairs
from concord.options import Options as Params


def graph(params: Params, agents: int) -> np.ndarray:
    """Return the edges of the complete graph over agents 0 to N - 1."""
    return list_pairs(agents)
