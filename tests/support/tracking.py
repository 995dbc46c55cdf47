r"""A sampler that no paper here has: Langevin steps along tracked gradients.

.. math::
    x' = W x - \eta y + \sqrt{2 \eta} w, \qquad y' = W y + \nabla f(x') - \nabla f(x)

from y = grad f(x^(0)). The sum of y less that of the gradients is conserved, so a spectral radius
of 1 says nothing of its stability, and y starts from the positions.
"""

from typing import NamedTuple

import numpy as np

import concord
from concord.sampling.schedules import Schedule


class State(NamedTuple):
    x: np.ndarray
    y: np.ndarray


class Tracking(concord.Sampler):
    """Langevin steps along tracked gradients, which start at those of x^(0), or at zero."""

    step_size: Schedule
    start: str = "gradient"

    def init(self, x0, problem, network, rng):
        return State(x0, problem.gradient(x0) if self.start == "gradient" else np.zeros_like(x0))

    def step(self, state, k, problem, network, rng):
        (x, y), eta = state, self.step_size(k)
        noise = rng.standard_normal(x.shape)
        new = network.mix("metropolis", x) - eta * y + np.sqrt(2 * eta) * noise
        mixed = network.mix("metropolis", y)
        return State(new, mixed + problem.gradient(new) - problem.gradient(x))
