r"""DE-SGLD: decentralized stochastic gradient Langevin dynamics.

.. math::
    x_i^{(k+1)} = \sum_j W_{ij} x_j^{(k)} - \eta_k \tilde\nabla f_i(x_i^{(k)})
                  + \sqrt{2 \eta_k}\, w_i^{(k+1)}, \qquad w_i \sim N(0, I)

W is doubly stochastic; x, gradients and noise have shape (chains, agents, dim).

Source: gurbuzbalaban2021, eq. (1.1); tzikas2024, eq. (22), calls it D-SGLD.
Price: a vector to every neighbor and a gradient (or mini-batch) of every agent per step.
Needs: a connected network, or no edges at all.
"""

from typing import Annotated, ClassVar

from numpy.random import Generator

from concord.needs import Needs
from concord.networks.network import Network
from concord.networks.weights import Weights
from concord.problem import CountedProblem
from concord.sampler import OrderedSampler, Positions, langevin_noise
from concord.sampling.schedules import Schedule


class DESGLD(OrderedSampler[Positions]):
    """DE-SGLD with step size eta and doubly stochastic mixing weights W."""

    name: ClassVar[str] = "DE-SGLD"
    needs: ClassVar[Needs] = Needs("mixing")

    step_size: Annotated[Schedule, "step size eta_k"]
    weights: Weights = "metropolis"

    def step(
        self, state: Positions, k: int, problem: CountedProblem, network: Network, rng: Generator
    ) -> Positions:
        """Return W x - eta grad f(x) + sqrt(2 eta) w (gurbuzbalaban2021, eq. (1.1))."""
        x, eta = state.x, self.step_size(k)
        drift = eta * problem.gradient(x)
        return Positions(network.mix(self.weights, x, plus=langevin_noise(rng, eta, x) - drift))
