r"""SGD: stochastic gradient descent, which is C-ULA without noise.

.. math::
    w^{(k+1)} = w^{(k)} - \alpha_k \tilde\nabla U(w^{(k)})

Source: parayil2020, section 5.3, where C-ULA and D-ULA are compared with it. Arrays have shape
(chains, 1, dim).

Price: a gradient (or mini-batch) of all the data per step; no messages.
Needs: a single agent.
"""

import numpy as np

from concord.contracts import Problem, Step
from concord.networks.topology import Topology
from concord.samplers import c_ula
from concord.samplers._checks import check_centralized
from concord.samplers._parts import State

NAME = "SGD"


class Params(c_ula.Params):
    """Options of SGD."""


BIASED = "a point, the mode: it adds no noise"


def check(problem: Problem | None, topology: Topology, params: Params) -> None:
    """Refuse a network: there is one agent, which holds all the data."""
    check_centralized(topology, "SGD")


def init(
    problem: Problem, topology: Topology, params: Params, x0: np.ndarray, rng: np.random.Generator
) -> tuple[State, Step]:
    """Return the state at x0 and the step."""
    return c_ula.descent(problem, topology, params, x0, warm=False)
