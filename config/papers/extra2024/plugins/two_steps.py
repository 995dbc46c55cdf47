r"""EXTRA-SGLD as released: two steps of DE-SGLD without a memory, one agent after another.

With :math:`\tilde W = h I + (1 - h) W` agent i moves, from where all agents are by then,

.. math::
    y_i &= \sum_j \tilde W_{ij} x_j - \eta_k \tilde\nabla f_i(x_i) + \sqrt{2 \eta_k}\, w_i \\
    x_i &\leftarrow W_{ii} y_i + \sum_{j \ne i} W_{ij} x_j - \eta_k \tilde\nabla f_i(y_i)
        + \sqrt{2 \eta_k}\, w_i'

Source: the released code of extra2024, which remembers nothing from step to step.
Price: a vector to every neighbor, and two gradients (or mini-batches) of every agent, per step.
Needs: a connected network on which everything arrives.
"""

from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from concord.networks.graph import as_dense
from concord.networks.network import Network
from concord.networks.weights import Weights
from concord.sampler import Positions, Sampler, langevin_noise
from concord.samplers.checks import check_lossless, check_mixing
from concord.sampling.schedules import Schedule


class TwoSteps(Sampler):
    """Two steps of DE-SGLD with step size eta, by W~ and by W, one agent after another."""

    name = "EXTRA-SGLD, two steps"

    step_size: Annotated[Schedule, "step size eta_k"]
    h: Annotated[Annotated[float, Meta(gt=0, le=0.5)], "h of W~ = h I + (1 - h) W"] = 0.5
    weights: Weights = "metropolis"

    def check(self, problem: Any, network: Network) -> None:
        """Refuse a network in parts, and one on which something gets lost."""
        check_mixing(network, self.weights)
        check_lossless(network, "two_steps takes agents one after another, with all they have said")

    def step(
        self, state: Positions, k: int, problem: Any, network: Network, rng: np.random.Generator
    ) -> Positions:
        """Return the positions after two steps of each agent in its turn."""
        x, eta, h = state.x, self.step_size(k), self.h
        weights = as_dense(network.matrix(self.weights))
        first = langevin_noise(rng, eta, x) - eta * problem.gradient(x)
        second = langevin_noise(rng, eta, x)
        new = x.copy()
        for agent, row in enumerate(weights):
            heard = row @ new
            own = new[:, agent]
            between = h * own + (1 - h) * heard + first[:, agent]
            who = np.full((len(x), 1), agent)
            gradient = problem.gradient_of(who, between[:, None])[:, 0]
            moved = heard + row[agent] * (between - own)
            new[:, agent] = moved - eta * gradient + second[:, agent]
        network.announce(np.ones(network.agents, dtype=np.int64))
        return Positions(new)
