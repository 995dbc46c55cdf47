r"""D-ULA: decentralized unadjusted Langevin, a consensus step and a gradient step at once.

.. math::
    w_i^{(k+1)} = w_i^{(k)} - \beta_k \sum_{j \in N_i} (w_i^{(k)} - w_j^{(k)})
                  - \alpha_k s \tilde\nabla f_i(w_i^{(k)}) + \sqrt{2 \alpha_k}\, v_i^{(k)},
    \qquad v_i \sim N(0, \sigma^2 I)

with the gradient's factor s and the noise's variance the number of agents N, or one. The prior's
gradient may be taken after the rest of the step, where that has led (``late_prior``). Arrays have
shape (chains, agents, dim).

Source: parayil2020, eq. (8), which has s = N and variance N; tzikas2024, eq. (25), has both one.
Price: a vector to every neighbor and a gradient (or mini-batch) of every agent per step.
Needs: a connected network, or no edges at all.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar, Literal

import numpy as np

from concord_core.errors import ConcordError
from concord_core.networks.network import Network
from concord_core.sampler import Positions
from concord_core.samplers.checks import check_connected
from concord_core.schedules import Schedule, value_at

Scale = Literal["agents", "one"]


@dataclass(frozen=True)
class DULA:
    """D-ULA with gradient steps alpha and consensus steps beta.

    gradient_scale, noise_variance: s and the variance of v.
    late_prior: take the prior's gradient after mixing.
    """

    name: ClassVar[str] = "D-ULA"

    step_size: Schedule
    fusion: Schedule
    gradient_scale: Scale = "agents"
    noise_variance: Scale = "agents"
    late_prior: bool = False

    def check(self, problem: Any, network: Network) -> None:
        """Refuse a network in parts, and a problem that does not give its prior apart."""
        check_connected(network)
        if self.late_prior and problem is not None and not hasattr(problem, "prior_gradient"):
            raise ConcordError(
                f"{type(problem).__name__} does not give its prior's gradient apart; "
                "take prior_gradient: with_likelihood"
            )

    def init(
        self, x0: np.ndarray, problem: Any, network: Network, rng: np.random.Generator
    ) -> Positions:
        """Return the state at x0."""
        return Positions(x0)

    def step(
        self, state: Positions, k: int, problem: Any, network: Network, rng: np.random.Generator
    ) -> Positions:
        """Return w - beta L w - alpha s grad f(w) + sqrt(2 alpha) v."""
        x, alpha = state.x, value_at(self.step_size, k)
        factor = {"agents": network.agents, "one": 1}
        gain = alpha * factor[self.gradient_scale]
        sd = sqrt(2 * alpha * factor[self.noise_variance])
        gradient = problem.gradient(x)
        move = sd * rng.standard_normal(x.shape, dtype=x.dtype.type) - gain * gradient
        new = self.fuse(x, value_at(self.fusion, k), move, network)
        if self.late_prior:  # the gradient has the prior's part at x: exchange it
            new = new + gain * (problem.prior_gradient(x) - problem.prior_gradient(new - move))
        return Positions(new)

    def fuse(self, x: np.ndarray, beta: float, move: np.ndarray, network: Network) -> np.ndarray:
        """Return x - beta L x + move."""
        return network.mix(network.fusion(beta), x, plus=move)
