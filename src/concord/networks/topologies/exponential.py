"""Agents 1, 2, 4, 8, ... apart around a circle are neighbors: about 2 log2 N neighbors each.

Source: Ying, Yuan, Chen, Hu, Pan and Yin, "Exponential graph is provably efficient for
decentralized deep training" (2021, arXiv:2110.13363), where edges have a direction; not here.
"""

import numpy as np

from concord.networks.topology import list_edges
from concord.options import Options as Params


def graph(params: Params, agents: int) -> np.ndarray:
    """Return the edges of the exponential graph over agents 0 to N - 1."""
    apart = 1 << np.arange((agents - 1).bit_length())
    return list_edges(np.add.outer(np.arange(agents), apart) % agents)
