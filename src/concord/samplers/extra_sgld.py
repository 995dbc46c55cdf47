r"""EXTRA-SGLD: DE-SGLD that remembers how far agents were from their neighbors, and corrects it.

.. math::
    x_i^{(k+1)} &= \sum_j W_{ij} x_j^{(k)} - \eta_k \tilde\nabla f_i(x_i^{(k)}) - u_i^{(k)}
                  + \sqrt{2 \eta_k}\, w_i^{(k+1)}, \qquad w_i \sim N(0, I) \\
    u_i^{(k+1)} &= u_i^{(k)} + \sum_j (\tilde W - W)_{ij} x_j^{(k)}, \qquad u_i^{(0)} = 0,
        \qquad \tilde W = h I + (1 - h) W

so that :math:`u_i \leftarrow u_i + h (x_i - \sum_j W_{ij} x_j)`. Without noise and with a constant
step it is EXTRA (Shi, Ling, Wu, Yin 2015), :math:`x^{(k+2)} = (I + W) x^{(k+1)} - \tilde W x^{(k)}
- \eta (\nabla f(x^{(k+1)}) - \nabla f(x^{(k)}))`, which gets the noise :math:`\sqrt{2 \eta}
(w^{(k+2)} - w^{(k+1)})`: fresh noise in each step of that form would add up in the network average.

W is doubly stochastic; x, u, gradients and noise have shape (chains, agents, dim). A step conserves
:math:`\sum_i u_i = 0`, by which the network average makes a Langevin step on f, but for where the
gradients are taken. If vectors get lost in one direction alone, that sum is a random walk, which
nothing calls back, and so is the network average.

Source: Gürbüzbalaban, Islam, Wang, Zhu, "Generalized EXTRA stochastic gradient Langevin dynamics",
2024, arXiv 2412.01993, in our form: its abstract and its authors' code were read, its equations
were not.
Price: a vector to every neighbor and a gradient (or mini-batch) of every agent per step.
Needs: a connected network, or no edges at all.
"""

from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from msgspec import Meta
from numpy.random import Generator

from concord.needs import Needs
from concord.networks.network import Network
from concord.networks.weights import Weights
from concord.problem import CountedProblem, Problem
from concord.sampler import Sampler, langevin_noise
from concord.sampling.schedules import Schedule


class State(NamedTuple):
    """Positions x and corrections u, (chains, agents, dim)."""

    x: np.ndarray
    u: np.ndarray


class EXTRASGLD(Sampler[State]):
    """EXTRA-SGLD with step size eta, mixing weights W, and rate h of the corrections u."""

    name: ClassVar[str] = "EXTRA-SGLD"
    needs: ClassVar[Needs] = Needs("mixing")

    step_size: Annotated[Schedule, "step size eta_k"]
    h: Annotated[
        Annotated[float, Meta(gt=0, le=0.5)], "h of W~ = h I + (1 - h) W: how fast u is corrected"
    ] = 0.5
    weights: Weights = "metropolis"

    def init(self, x0: np.ndarray, problem: Problem, network: Network, rng: Generator) -> State:
        """Return the state at x0, (chains, agents, dim), with corrections u = 0."""
        return State(x0, np.zeros_like(x0))

    def step(
        self, state: State, k: int, problem: CountedProblem, network: Network, rng: Generator
    ) -> State:
        """Mix and move positions, and correct for their distance from the neighbors.

        x' = W x - eta grad f(x) - u + sqrt(2 eta) w and u' = u + h (x - W x).
        """
        (x, u), eta = state, self.step_size(k)
        move = -eta * problem.gradient(x) + langevin_noise(rng, eta, x)
        mixed = network.mix(self.weights, x)
        return State(mixed - u + move, u + self.h * (x - mixed))
