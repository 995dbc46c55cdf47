r"""D-ADMMS and C-ADMM as released: agents move in turn, and are pulled to the first agents.

Agent i takes the primal step of ADMM after agents 0, ..., i - 1, sees where they have moved, and is
pulled to agents 0, ..., deg_i - 1 in the place of its neighbors; it may be one of them:

.. math::
    \nabla f_i(x_i^{(k+1)}) + 2 \rho \deg_i x_i^{(k+1)} = \rho \Big( \deg_i x_i^{(k)}
        + \sum_{j < \deg_i} x_j \Big) - p_i^{(k)} - \sqrt 2 \deg_i w_i^{(k+1)}

with :math:`x_j = x_j^{(k+1)}` for j < i, else :math:`x_j^{(k)}`. The dual step follows when all
have moved, and has the neighbors.

Source: the released code of tzikas2024.
Price: as ADMM's; what it would take to learn of the first agents is not counted.
Needs: a connected network on which everything arrives, or no edges; a problem with
``minimize``.
"""

from typing import Any, ClassVar

import numpy as np

from concord.needs import Needs
from concord.networks.network import Network
from concord.samplers.admm import ADMM, State


class ADMMInPlace(ADMM):
    """ADMM samplers (D-ADMMS, and C-ADMM without noise) whose agents move one after another."""

    needs: ClassVar[Needs] = Needs(
        "connected",
        peers=True,
        arrival="moves one agent after another, and all must be heard",
        problem=("minimize",),
        local=ADMM.needs.local,
    )

    def step(
        self, state: State, k: int, problem: Any, network: Network, rng: np.random.Generator
    ) -> State:
        """Return the state after primal steps of the agents in turn, and then all dual steps."""
        (x, u), rho, degrees = state, self.penalty, network.graph.degrees
        push = rho * (degrees[:, None] * x - u)
        if self.noise:
            w = rng.standard_normal(x.shape, dtype=x.dtype.type)
            push = push - np.sqrt(2) * degrees[:, None] * w
        moved, curvature = x.swapaxes(0, 1).copy(), 2 * rho * degrees  # agents first: fast sums
        for agent, degree in enumerate(degrees):
            one, linear = [agent], rho * moved[:degree].sum(axis=0) + push[:, agent]
            position, _ = problem.minimize(linear[:, None], curvature, x[:, one], one)
            moved[agent] = position[:, 0]
        new = np.ascontiguousarray(moved.swapaxes(0, 1))
        return State(new, u + network.mix(network.graph.laplacian, new))
