r"""C-ULA: the centralized unadjusted Langevin algorithm, one agent that holds all the data.

.. math::
    w^{(k+1)} = w^{(k)} - \alpha_k \tilde\nabla U(w^{(k)}) + \sqrt{2 \alpha_k}\, v^{(k)},
    \qquad v \sim N(0, I)

Welling and Teh's convention, half the gradient and noise of variance
epsilon_k, is alpha_k = epsilon_k / 2. Arrays have shape (chains, 1, dim).

Source: parayil2020, eq. (5); gurbuzbalaban2021, eq. (2.2).
Price: a gradient (or mini-batch) of all the data per step; no messages.
Needs: a single agent.
"""

from typing import Annotated, ClassVar

from numpy.random import Generator

from concord.needs import Needs
from concord.networks.network import Network
from concord.problem import CountedProblem
from concord.sampler import Positions, Sampler, langevin_noise
from concord.sampling.schedules import Schedule


class CULA(Sampler[Positions]):
    """C-ULA, unadjusted Langevin steps of size alpha by one agent that has all the data."""

    name: ClassVar[str] = "C-ULA"
    needs: ClassVar[Needs] = Needs("alone")

    step_size: Annotated[Schedule, "step size alpha_k"]

    def step(
        self, state: Positions, k: int, problem: CountedProblem, network: Network, rng: Generator
    ) -> Positions:
        """Return w - alpha_k grad U(w) + sqrt(2 alpha_k) v (parayil2020, eq. (5))."""
        x, alpha = state.x, self.step_size(k)
        moved = x - alpha * problem.gradient(x)
        return Positions(moved + langevin_noise(rng, alpha, x))
