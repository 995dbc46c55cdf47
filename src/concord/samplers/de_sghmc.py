r"""DE-SGHMC: decentralized stochastic gradient Hamiltonian Monte Carlo.

.. math::
    v_i^{(k+1)} &= v_i^{(k)} - \eta_k \left( \gamma v_i^{(k)} + \tilde\nabla f_i(x_i^{(k)}) \right)
                   + \sqrt{2 \gamma \eta_k}\, w_i^{(k+1)}, \qquad w_i \sim N(0, I) \\
    x_i^{(k+1)} &= \sum_j W_{ij} x_j^{(k)} + \eta_k v_i^{(k+1)}

W is doubly stochastic; x, v, gradients and noise have shape (chains, agents, dim). Positions are
exchanged, velocities are not.

Source: gurbuzbalaban2021, eqs. (4.1)-(4.2); tzikas2024, eqs. (23)-(24), calls it D-SGHMC.
Price: a vector to every neighbor and a gradient (or mini-batch) of every agent per step.
Needs: a connected network, or no edges at all.
"""

from math import sqrt
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from concord.needs import Needs
from concord.networks.network import Network
from concord.networks.weights import Weights
from concord.options import NonNegative, Positive
from concord.problem import CountedProblem, Problem
from concord.sampler import OrderedSampler
from concord.sampling.schedules import Schedule


class State(NamedTuple):
    """Positions x and velocities v, (chains, agents, dim)."""

    x: np.ndarray
    v: np.ndarray


class DESGHMC(OrderedSampler[State]):
    """DE-SGHMC with step size eta, friction gamma and mixing weights W."""

    name: ClassVar[str] = "DE-SGHMC"
    needs: ClassVar[Needs] = Needs("mixing")
    units: ClassVar[dict[str, int]] = {"step_size": 1, "friction": -1}  # time is a length

    step_size: Annotated[Schedule, "step size eta_k"]
    friction: Annotated[Positive, "friction gamma"]
    weights: Weights = "metropolis"
    initial_velocity_sd: Annotated[
        NonNegative, "standard deviation of the initial velocities v^(0) ~ N(0, . I)"
    ] = 0.0

    def init(self, x0: np.ndarray, problem: Problem, network: Network, rng: Generator) -> State:
        """Return the state at x0 with velocities v ~ N(0, sd^2 I), both (chains, agents, dim)."""
        v = self.initial_velocity_sd * rng.standard_normal(x0.shape)
        return State(x0, v.astype(x0.dtype, copy=False))

    def step(
        self, state: State, k: int, problem: CountedProblem, network: Network, rng: Generator
    ) -> State:
        """Take a Langevin step of the velocities, then mix positions and move by them.

        v' = v - eta (gamma v + grad f(x)) + sqrt(2 gamma eta) w and x' = W x + eta v'
        (gurbuzbalaban2021, eqs. (4.1)-(4.2)).
        """
        (x, v), eta = state, self.step_size(k)
        force = self.friction * v + problem.gradient(x)
        noise = rng.standard_normal(x.shape, dtype=x.dtype.type)
        v = v - eta * force + sqrt(2 * self.friction * eta) * noise
        return State(network.mix(self.weights, x, plus=eta * v), v)
