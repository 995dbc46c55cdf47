"""A server averages over all agents: one vector up and one down for each of them.

Every agent weighs the same for every other, W = J/N with J the matrix of ones. Agents send nothing
to each other.
"""

import numpy as np

from concord.networks.topology import list_pairs
from concord.options import Options as Params


def graph(params: Params, agents: int) -> np.ndarray:
    """Return all pairs of agents, (edges, 2), so that the Metropolis weights are J/N."""
    return list_pairs(agents)


def messages(params: Params, agents: int) -> list[int]:
    """Return the numbers of vectors that each agent sends and receives for one average."""
    return [0] if agents == 1 else [2] * agents
