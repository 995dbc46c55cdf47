"""Agents whose numbers differ in one binary digit are neighbors: log2 N neighbors each."""

import numpy as np

from concord.errors import ConcordError
from concord.networks.formula import Formula
from concord.options import Options


class Params(Options):
    """It has no options."""


def graph(params: Params, agents: int) -> Formula:
    """Return the edges, or refuse a number that is no power of two."""
    digits = agents.bit_length() - 1
    if agents != 2**digits:
        raise ConcordError(
            f"{agents} agents make no hypercube; use a power of two, such as {2**digits}"
        )
    return Formula(agents, beside)


def beside(agents: int, who: np.ndarray) -> np.ndarray:
    """Return the neighbors of these agents, as a ``Formula`` wants them."""
    return who[:, None] ^ (1 << np.arange(agents.bit_length() - 1))
