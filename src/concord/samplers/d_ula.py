r"""D-ULA: decentralized unadjusted Langevin, a consensus step and a gradient step at once.

.. math::
    w_i^{(k+1)} = w_i^{(k)} - \beta_k \sum_{j \in N_i} (w_i^{(k)} - w_j^{(k)})
                  - \alpha_k s \tilde\nabla f_i(w_i^{(k)}) + \sqrt{2 \alpha_k}\, v_i^{(k)},
    \qquad v_i \sim N(0, \sigma^2 I)

with the gradient's factor s and the noise's variance the number of agents N, or one. The prior's
gradient may be taken after the rest of the step, where that has led (``prior_gradient``). Arrays
have shape (chains, agents, dim).

Source: parayil2020, eq. (8), which has s = N and variance N; tzikas2024, eq. (25), has both one.
Price: a vector to every neighbor and a gradient (or mini-batch) of every agent per step.
Needs: a connected network, or no edges at all.
"""

from typing import Annotated, ClassVar, Literal

from numpy.random import Generator

from concord.needs import Needs, require
from concord.networks.graph import Matrix
from concord.networks.network import Network
from concord.problem import CountedProblem, Problem
from concord.sampler import OrderedSampler, Positions, langevin_noise
from concord.sampling.schedules import Schedule

Scale = Literal["agents", "one"]


class DULA(OrderedSampler[Positions]):
    """D-ULA with gradient steps alpha and consensus steps beta."""

    name: ClassVar[str] = "D-ULA"
    needs: ClassVar[Needs] = Needs("connected")

    step_size: Annotated[Schedule, "gradient step alpha_k"]
    fusion: Annotated[Schedule, "consensus step beta_k (zeta_k in tzikas2024)"]
    gradient_scale: Annotated[Scale, "factor s of the gradient: number of agents, or 1"] = "agents"
    noise_variance: Annotated[Scale, "variance of v_i: number of agents, or 1"] = "agents"
    prior_gradient: Annotated[
        Literal["with_likelihood", "after_mixing"],
        "the prior's gradient is taken with the likelihood's, or after mixing, where that has led",
    ] = "with_likelihood"

    def check(self, problem: Problem | None, network: Network) -> None:
        """Also refuse a prior that cannot be taken after mixing."""
        super().check(problem, network)
        if self.prior_gradient == "after_mixing":
            require(problem, "prior_gradient", "take prior_gradient: with_likelihood")

    def fusion_matrix(self, beta: float, network: Network) -> Matrix:
        """Return I - beta L, (agents, agents), with L the graph's Laplacian."""
        return network.matrix(beta)

    def step(
        self, state: Positions, k: int, problem: CountedProblem, network: Network, rng: Generator
    ) -> Positions:
        """Return w - beta L w - alpha s grad f(w) + sqrt(2 alpha) v (parayil2020, eq. (8)).

        With ``prior_gradient: after_mixing`` the prior's part of grad f is taken after mixing.
        """
        x, alpha, factor = state.x, self.step_size(k), {"agents": network.agents, "one": 1}
        gain, variance = alpha * factor[self.gradient_scale], alpha * factor[self.noise_variance]
        move = -gain * problem.gradient(x) + langevin_noise(rng, variance, x)
        new = network.mix(self.fusion_matrix(self.fusion(k), network), x, plus=move)
        if self.prior_gradient == "after_mixing":
            # The gradient has the prior's part at x: exchange it.
            new = new + gain * (problem.prior_gradient(x) - problem.prior_gradient(new - move))
        return Positions(new)
