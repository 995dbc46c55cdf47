r"""Six agents whose sum is N(0, 1): small enough to be worked out by hand.

.. math::
    f_i(x) = h_i x^2 / 2 - b_i x, \qquad \sum_i h_i = 1, \qquad \sum_i b_i = 0

with h = (0.10, 0.20, 0.10, 0.25, 0.15, 0.20) and b = (1, -0.5, 0.3, -0.8, 0.6, -0.6).
"""

from __future__ import annotations

import numpy as np

from concord.contracts import DataSets, Stream
from concord.errors import ConcordError
from concord.options import Options
from concord.problem import Problem
from concord.problems.quadratic_problem import quadratic
from concord.sampling.partition import Partition

CURVATURES = np.array([0.10, 0.20, 0.10, 0.25, 0.15, 0.20])
SHIFTS = np.array([1, -0.5, 0.3, -0.8, 0.6, -0.6])


class Params(Options):
    """Nothing is left open."""


def check(params: Params, agents: int) -> None:
    """Refuse another number of agents."""
    if agents != 6:
        raise ConcordError(f"there are six of these agents, not {agents}; set agents to 6")


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, data_sets: DataSets
) -> Problem:
    """Return the problem: nothing is drawn."""
    return quadratic(CURVATURES[:, None, None], SHIFTS[:, None])
