r"""D-ADMMS, the sampler based on decentralized ADMM, and C-ADMM, the optimizer it comes from.

.. math::
    x_i^{(k+1)} &= \arg\min_x \Big\{ f_i(x) + p_i^{(k)\top} x + \rho \sum_{j \in N_i}
        \Big\lVert x - \frac{x_i^{(k)} + x_j^{(k)}}{2}
        + \frac{\sqrt 2}{2 \rho} w_i^{(k+1)} \Big\rVert^2 \Big\}, \qquad w_i \sim N(0, I) \\
    p_i^{(k+1)} &= p_i^{(k)} + \rho \sum_{j \in N_i} (x_i^{(k+1)} - x_j^{(k+1)}),
        \qquad p_i^{(0)} = 0

so that with deg_i neighbors and the same w_i in all their terms

.. math::
    \nabla f_i(x_i^{(k+1)}) + 2 \rho \deg_i x_i^{(k+1)} = \rho \Big( \deg_i x_i^{(k)}
        + \sum_{j \in N_i} x_j^{(k)} \Big) - p_i^{(k)} - \sqrt 2 \deg_i w_i^{(k+1)}.

Its distance from the posterior does not vanish with the penalty. The state has u = p / rho; x, u
and w have shape (chains, agents, dim). Without neighbors x_i is the minimizer of f_i.

Source: tzikas2024, Algorithm 1 by way of eqs. (40)-(41); without noise eqs. (4)-(5). Eq. (6) states
the primal step as a proximal operator with the sign of p and the parameter gamma_i wrong.
Price: a vector to every neighbor, and the minimum of f_i plus a quadratic form, per agent and step:
a gradient where it is a closed form, or those of its inner solver.
Needs: a connected network, or no edges at all; a problem with ``minimize``.
"""

from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from concord.errors import ConcordError
from concord.needs import Needs
from concord.networks.network import Network
from concord.options import Positive
from concord.problem import CountedProblem, Problem
from concord.sampler import FullGradientSampler


class State(NamedTuple):
    """Positions x and scaled dual variables u = p / rho, (chains, agents, dim)."""

    x: np.ndarray
    u: np.ndarray


class ADMM(FullGradientSampler[State]):
    """D-ADMMS with penalty rho, a sampler; without noise C-ADMM, an optimizer."""

    name: ClassVar[str] = "ADMM"
    needs: ClassVar[Needs] = Needs(
        "connected", problem=("minimize",), local="ties each coordinate to the neighbors'"
    )
    biased: ClassVar[str] = (
        "D-ADMMS, whose distance from the posterior does not vanish with the penalty"
    )
    units: ClassVar[dict[str, int]] = {"penalty": -2}

    penalty: Annotated[Positive, "penalty rho"]
    noise: Annotated[
        bool,
        "noise w_i in the primal step: with it D-ADMMS, a sampler; without it C-ADMM, an optimizer",
    ] = True

    def check(self, problem: Problem | None, network: Network) -> None:
        """Also refuse networks on which both ends of a link may know different vectors.

        Receivers must reuse the last vector where one is lost, with a barrier and without delays.
        """
        super().check(problem, network)
        options = network.conditions
        if not network.is_lossless and (options.late_option or options.on_loss != "reuse_last"):
            raise ConcordError(
                "network: ADMM adds up differences of what neighbors have at the same time; use "
                "on_loss: reuse_last, a barrier and no delay, or remove network"
            )

    def init(self, x0: np.ndarray, problem: Problem, network: Network, rng: Generator) -> State:
        """Return the state at x0, (chains, agents, dim), with dual variables u = 0."""
        return State(x0, np.zeros_like(x0))

    def step(
        self, state: State, k: int, problem: CountedProblem, network: Network, rng: Generator
    ) -> State:
        """Take a primal and a dual step of all agents, with u = p / rho.

        The primal step solves, for x', grad f_i(x_i') + 2 rho deg_i x_i' = rho (deg_i x_i + sum_j
        x_j - u_i) - sqrt(2) deg_i w_i; the dual step is u_i' = u_i + sum_j (x_i' - x_j'), with sums
        over the neighbors (tzikas2024, eqs. (40)-(41); without noise (4)-(5)).
        """
        (x, u), rho, degrees = state, self.penalty, network.graph.degrees
        linear = rho * (network.mix_known(network.graph.signless_laplacian, x) - u)
        if self.noise:
            w = rng.standard_normal(x.shape, dtype=x.dtype.type)
            linear = linear - np.sqrt(2) * degrees[:, None] * w
        x = problem.minimize(linear, 2 * rho * degrees, x)[0]
        return State(x, u + network.mix(network.graph.laplacian, x))
