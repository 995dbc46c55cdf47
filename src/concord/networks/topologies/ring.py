"""A cycle; one or two agents close none: no edge, or a single one."""

import numpy as np

from concord.networks.formula import Formula
from concord.options import Options


class Params(Options):
    """It has no options."""


def graph(params: Params, agents: int) -> Formula:
    """Return the edges."""
    return Formula(agents, beside)


def beside(agents: int, who: np.ndarray) -> np.ndarray:
    """Return the neighbors of these agents, as a ``Formula`` wants them."""
    return np.add.outer(who, (-1, 1)) % agents
