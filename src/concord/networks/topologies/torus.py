"""A grid whose ends meet: each agent has four neighbors, where there are enough agents."""

import numpy as np

from concord.networks.topologies import grid
from concord.networks.topologies.grid import Params


def graph(params: Params, agents: int) -> np.ndarray:
    """Return the edges of a torus, or refuse rows that are not equally long."""
    return grid.rectangle(params.rows, agents, periodic=True)
