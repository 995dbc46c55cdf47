r"""DE-SGLD: decentralized stochastic gradient Langevin dynamics.

.. math::
    x_i^{(k+1)} = \sum_j W_{ij} x_j^{(k)} - \eta_k \tilde\nabla f_i(x_i^{(k)})
                  + \sqrt{2 \eta_k}\, w_i^{(k+1)}, \qquad w_i \sim N(0, I)

W is doubly stochastic; x, gradients and noise have shape (chains, agents, dim).

Source: gurbuzbalaban2021, eq. (1.1); tzikas2024, eq. (22), calls it D-SGLD.
Price: a vector to every neighbor and a gradient (or mini-batch) of every agent per step.
Needs: a connected network, or no edges at all.
"""

from typing import Annotated, Any, ClassVar

import numpy as np

from concord.needs import Needs
from concord.networks.network import Network
from concord.networks.weights import Weights
from concord.sampler import Coefficients, OrderedSampler, Positions
from concord.sampling.schedules import Schedule


class DESGLD(OrderedSampler[Positions]):
    """DE-SGLD with step size eta and doubly stochastic mixing weights W."""

    name: ClassVar[str] = "DE-SGLD"
    needs: ClassVar[Needs] = Needs("mixing")

    step_size: Annotated[Schedule, "step size eta_k"]
    weights: Weights = "metropolis"

    def coefficients(self, k: Any, network: Network) -> Coefficients:
        """Return the coefficients of x' = W x - eta_k grad f(x) + sqrt(2 eta_k) w.

        k: an iteration, or an array of iterations.
        """
        eta = self.step_size(k)
        return Coefficients(network.matrix(self.weights), eta, (2 * eta) ** 0.5)

    def step(
        self, state: Positions, k: int, problem: Any, network: Network, rng: np.random.Generator
    ) -> Positions:
        """Return W x - eta grad f(x) + sqrt(2 eta) w (gurbuzbalaban2021, eq. (1.1))."""
        x, (weights, eta, sd) = state.x, self.coefficients(k, network)
        drift = eta * problem.gradient(x)
        move = sd * rng.standard_normal(x.shape, dtype=x.dtype.type) - drift
        return Positions(network.mix(weights, x, plus=move))
