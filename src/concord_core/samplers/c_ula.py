r"""C-ULA: the centralized unadjusted Langevin algorithm, one agent that holds all the data.

.. math::
    w^{(k+1)} = w^{(k)} - \alpha_k \tilde\nabla U(w^{(k)}) + \sqrt{2 \alpha_k}\, v^{(k)},
    \qquad v \sim N(0, I)

SGD is the same without noise. Welling and Teh's convention, half the gradient and noise of variance
epsilon_k, is alpha_k = epsilon_k / 2. Arrays have shape (chains, 1, dim).

Source: parayil2020, eq. (5), and section 5.3 for SGD; gurbuzbalaban2021, eq. (2.2).
Price: a gradient (or mini-batch) of all the data per step; no messages.
Needs: a single agent.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from concord_core.networks.network import Network
from concord_core.sampler import Positions, langevin_noise
from concord_core.samplers.checks import check_single_agent
from concord_core.schedules import Schedule, value_at


@dataclass(frozen=True)
class CULA:
    """C-ULA with a step size alpha."""

    name: ClassVar[str] = "C-ULA"

    step_size: Schedule

    def check(self, problem: Any, network: Network) -> None:
        """Refuse a network: a centralized sampler holds all the data."""
        check_single_agent(network, self.name)

    def init(
        self, x0: np.ndarray, problem: Any, network: Network, rng: np.random.Generator
    ) -> Positions:
        """Return the state at x0."""
        return Positions(x0)

    def step(
        self, state: Positions, k: int, problem: Any, network: Network, rng: np.random.Generator
    ) -> Positions:
        """Return w - alpha grad U(w) + sqrt(2 alpha) v."""
        x, alpha = state.x, value_at(self.step_size, k)
        return Positions(x - alpha * problem.gradient(x) + langevin_noise(rng, alpha, x))


@dataclass(frozen=True)
class SGD(CULA):
    """Stochastic gradient descent: C-ULA without noise, which ends at the mode."""

    name: ClassVar[str] = "SGD"

    def step(
        self, state: Positions, k: int, problem: Any, network: Network, rng: np.random.Generator
    ) -> Positions:
        """Return w - alpha grad U(w)."""
        return Positions(state.x - value_at(self.step_size, k) * problem.gradient(state.x))
