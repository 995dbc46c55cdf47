"""Agents whose numbers differ in one binary digit are neighbors: log2 N neighbors each."""

import numpy as np

from concord.errors import ConcordError
from concord.networks.topology import list_edges
from concord.options import Options as Params


def graph(params: Params, agents: int) -> np.ndarray:
    """Return the edges of a hypercube, or refuse a number of agents that is no power of two."""
    digits = agents.bit_length() - 1
    if agents != 2**digits:
        raise ConcordError(
            f"{agents} agents make no hypercube; use a power of two, such as {2**digits}"
        )
    return list_edges(np.arange(agents)[:, None] ^ (1 << np.arange(digits)))
