r"""SGD: stochastic gradient descent, which is C-ULA without noise.

.. math::
    w^{(k+1)} = w^{(k)} - \alpha_k \tilde\nabla U(w^{(k)})

Arrays have shape (chains, 1, dim).

Source: parayil2020, section 5.3, where C-ULA and D-ULA are compared with it.
Price: a gradient (or mini-batch) of all the data per step; no messages.
Needs: a single agent.
"""

from typing import ClassVar

from numpy.random import Generator

from concord.networks.network import Network
from concord.problem import CountedProblem
from concord.sampler import Positions
from concord.samplers.c_ula import CULA


class SGD(CULA):
    r"""Stochastic gradient descent with step size alpha, which ends at the posterior's mode.

    .. math::
        w^{(k+1)} = w^{(k)} - \alpha_k \tilde\nabla U(w^{(k)})
    """

    name: ClassVar[str] = "SGD"
    biased: ClassVar[str] = "a point, the mode: it adds no noise"

    def step(
        self, state: Positions, k: int, problem: CountedProblem, network: Network, rng: Generator
    ) -> Positions:
        """Return w - alpha_k grad U(w) (parayil2020, section 5.3)."""
        return Positions(state.x - self.step_size(k) * problem.gradient(state.x))
