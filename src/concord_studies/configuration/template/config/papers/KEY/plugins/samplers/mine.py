r"""DE-SGLD that averages last: every agent moves, then mixes what all have reached.

.. math::
    x_i^{(k+1)} = \sum_j W_{ij} \bigl(x_j^{(k)} - \eta_k \nabla f_j(x_j^{(k)})
                  + \sqrt{2 \eta_k}\, w_j^{(k+1)}\bigr), \qquad w_j \sim N(0, I)

x has shape (chains, agents, dim).

Source: "adapt then combine" of decentralized optimization.
Price: a vector to every neighbor and a full gradient of every agent per step.
Needs: gradients, and a connected network.
"""

from typing import Annotated

from concord.needs import Needs
from concord.sampler import Sampler, langevin_noise
from concord.sampling.schedules import Schedule


class AverageLast(Sampler):
    """DE-SGLD that averages last, with a step size eta."""

    name = "DE-SGLD, average last"
    needs = Needs("mixing")

    step_size: Annotated[Schedule, "step size eta_k"]

    def step(self, state, k, problem, network, rng):
        """Return the state with x = W (x - eta grad f(x) + sqrt(2 eta) w).

        x: positions, (chains, agents, dim). W: Metropolis weights. w: standard normal noise.
        """
        x, eta = state.x, self.step_size(k)
        moved = x - eta * problem.gradient(x) + langevin_noise(rng, eta, x)
        return state._replace(x=network.mix("metropolis", moved))
