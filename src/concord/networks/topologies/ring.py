"""A cycle; one or two agents close none: no edge, or a single one."""

import numpy as np

from concord.networks.topology import list_edges
from concord.options import Options as Params


def graph(params: Params, agents: int) -> np.ndarray:
    """Return the edges of a ring over agents 0 to N - 1."""
    return list_edges(np.add.outer(np.arange(agents), (1,)) % agents)
