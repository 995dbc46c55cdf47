r"""EXTRA-SGLD as released: two steps of DE-SGLD without a memory, one agent after another.

With :math:`\tilde W = h I + (1 - h) W` agent i moves, from where all agents are by then,

.. math::
    y_i &= \sum_j \tilde W_{ij} x_j - \eta_k \tilde\nabla f_i(x_i) + \sqrt{2 \eta_k}\, w_i \\
    x_i &\leftarrow W_{ii} y_i + \sum_{j \ne i} W_{ij} x_j - \eta_k \tilde\nabla f_i(y_i)
        + \sqrt{2 \eta_k}\, w_i'

Neighbors stay where they are between the two steps of an agent, and hear of the second alone.

Source: the released code of extra2024, which remembers nothing from step to step.
Price: a vector to every neighbor, and two gradients (or mini-batches) of every agent, per step.
Needs: a connected network on which everything arrives.
"""

from typing import Any, ClassVar

import numpy as np

from concord.needs import Needs
from concord.networks.graph import as_dense
from concord.networks.network import Network
from concord.sampler import Positions, langevin_noise
from concord.samplers.extra_sgld import EXTRASGLD


class TwoSteps(EXTRASGLD):
    """A sampler that takes two steps of DE-SGLD, by W~ and by W, for one agent after another."""

    needs: ClassVar[Needs] = Needs(
        "mixing",
        peers=True,
        arrival="moves one agent after another, and all must be heard",
        local="in two steps mixes all that neighbors have",
    )

    # The state of this reading has no memory.
    def init(  # type: ignore[override]
        self, x0: np.ndarray, problem: Any, network: Network, rng: np.random.Generator
    ) -> Positions:
        """Return the state with positions x0, (chains, agents, dim)."""
        return Positions(x0)

    def step(  # type: ignore[override]
        self, state: Positions, k: int, problem: Any, network: Network, rng: np.random.Generator
    ) -> Positions:
        """Return the positions after two steps of each agent in turn, (chains, agents, dim)."""
        x, eta, h = state.x, self.step_size(k), self.h
        weights = as_dense(network.matrix(self.weights))
        gradient = problem.gradient(x)
        first = langevin_noise(rng, eta, x) - eta * gradient
        second = langevin_noise(rng, eta, x)
        new = x.copy()
        for agent, row in enumerate(weights):
            average = row @ new
            y = h * x[:, agent] + (1 - h) * average + first[:, agent]
            gradient = problem.gradient_of(np.array([agent]), y[:, None])[:, 0]
            mixed = average + row[agent] * (y - x[:, agent])
            new[:, agent] = mixed - eta * gradient + second[:, agent]
        network.announce(np.ones(network.agents, dtype=np.int64))
        return Positions(new)
