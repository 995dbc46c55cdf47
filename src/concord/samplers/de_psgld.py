r"""DE-PSGLD: DE-SGLD within a convex set, which agents are pulled back to where they leave it.

.. math::
    x_i^{(k+1)} = \sum_j W_{ij} x_j^{(k)} - \eta_k \Bigl( \tilde\nabla f_i(x_i^{(k)})
        + \frac{x_i^{(k)} - P_K(x_i^{(k)})}{\gamma N} \Bigr) + \sqrt{2 \eta_k}\, w_i^{(k+1)},
        \qquad w_i \sim N(0, I)

with P_K the projection on the set K. The pulls of all N agents add up to the gradient of
:math:`d_K(x)^2 / 2 \gamma`, the Moreau-Yosida envelope of the constraint, d_K the distance to K.
For small steps the network average has the law :math:`\exp(-\sum_i f_i - d_K^2 / 2 \gamma)`, which
is the posterior on K for small gamma, and the same for any number of agents. Draws may lie outside
of K, by about :math:`\sqrt{\gamma}`; steps need about :math:`\eta < 2 \gamma N` to be stable there.
Arrays have shape (chains, agents, dim).

Source: Islam and Zhu, "Decentralized proximal stochastic gradient Langevin dynamics" (2026,
arXiv:2605.00723), from its authors' released code; the print was not at hand.
Price: a vector to every neighbor and a gradient (or mini-batch) of every agent per step.
Needs: a connected network, or no edges at all.
"""

from typing import Annotated, ClassVar

import numpy as np
from numpy.random import Generator

from concord.errors import ConcordError
from concord.needs import Needs
from concord.networks.network import Network
from concord.networks.weights import Weights
from concord.options import Kind, Positive
from concord.problem import CountedProblem, Problem
from concord.sampler import OrderedSampler, Positions, langevin_noise
from concord.sampling.schedules import Schedule


class Ball(Kind):
    """The ball of a given radius around the point with all coordinates ``center``."""

    radius: Annotated[Positive, "radius of the ball"]
    center: Annotated[float, "every coordinate of its center"] = 0.0

    def project(self, x: np.ndarray) -> np.ndarray:
        """Return the point of the ball nearest to each x, (..., dim)."""
        offset = x - self.center
        length = np.sqrt(np.einsum("...d,...d->...", offset, offset))[..., None]
        return self.center + offset * (self.radius / np.maximum(length, self.radius))


class Box(Kind):
    """The box of all x whose coordinates lie between ``lower`` and ``upper``."""

    lower: Annotated[float, "least value of every coordinate"]
    upper: Annotated[float, "largest value of every coordinate"]

    def project(self, x: np.ndarray) -> np.ndarray:
        """Return the point of the box nearest to each x, (..., dim)."""
        return np.clip(x, self.lower, self.upper)


class DEPSGLD(OrderedSampler[Positions]):
    """DE-PSGLD with step size eta, a convex set K, smoothing gamma and mixing weights W."""

    name: ClassVar[str] = "DE-PSGLD"
    needs: ClassVar[Needs] = Needs(
        "mixing",
        local="pulls agents into the set by an N-th each, which is all of the pull only of "
        "coordinates that they share",
    )
    biased: ClassVar[str] = "the posterior within a set"

    step_size: Annotated[Schedule, "step size eta_k"]
    constraint: Annotated[Ball | Box, "the set K"]
    smoothing: Annotated[Positive, "gamma of the pull towards K"]
    weights: Weights = "metropolis"

    def check(self, problem: Problem | None, network: Network) -> None:
        """Also refuse an empty box."""
        super().check(problem, network)
        box = self.constraint
        if isinstance(box, Box) and not box.lower < box.upper:
            raise ConcordError(
                f"constraint: nothing lies between lower {box.lower:g} and upper {box.upper:g}; "
                "make upper the larger"
            )

    def step(
        self, state: Positions, k: int, problem: CountedProblem, network: Network, rng: Generator
    ) -> Positions:
        """Return W x - eta (grad f(x) + (x - P_K(x)) / (gamma N)) + sqrt(2 eta) w."""
        x, eta = state.x, self.step_size(k)
        pull = (x - self.constraint.project(x)) / (self.smoothing * network.agents)
        move = -eta * (problem.gradient(x) + pull) + langevin_noise(rng, eta, x)
        return Positions(network.mix(self.weights, x, plus=move))
