"""A ring on which agents average with the next two, as released code has it.

Every agent weighs itself and the next two, one way around, a third each: doubly stochastic, but not
symmetric, and the second next is no neighbor on the ring.
"""

from typing import Any

import numpy as np

from concord.errors import ConcordError
from concord.kinds import Declaration
from concord.networks.topologies import ring
from concord.options import Options as Params

DECLARES = Declaration(name="ring")


def graph(params: Params, agents: int) -> Any:
    """Return the edges of the ring; a ConcordError for fewer than 3 agents."""
    if agents < 3:
        raise ConcordError(f"it goes around a ring of 3 agents or more, not {agents}; use more")
    return ring.graph(params, agents)


def weights(params: Params, agents: int) -> np.ndarray:
    """Return W, with 1/3 for an agent itself and for the next two agents, (agents, agents)."""
    shifted = [np.roll(np.eye(agents), step, axis=1) for step in range(3)]
    total: np.ndarray = np.sum(shifted, axis=0) / 3
    return total
