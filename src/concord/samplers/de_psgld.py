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

Source: Islam and Zhu, "Decentralized proximal stochastic gradient Langevin dynamics" (2026,
arXiv:2605.00723), from its authors' released code; the print was not at hand. There agents move one
after another (``update_order: in_place``), and gradients are means over a mini-batch, not scaled up
to the agent's data (``batch_scale: mean``). Arrays have shape (chains, agents, dim).

Price: a vector to every neighbor and a gradient (or mini-batch) of every agent per step.
Needs: a connected network, or no edges at all.
"""

from collections.abc import Callable
from typing import Annotated

import numpy as np

from concord.contracts import Problem, Step
from concord.errors import ConcordError
from concord.networks import mixing
from concord.networks.topology import Topology
from concord.networks.weights import Weights
from concord.options import Kind, Options, Positive
from concord.samplers import de_sgld
from concord.samplers._checks import check_averaging
from concord.samplers._parts import State, gradients
from concord.sampling.gradients import BatchPool, BatchScale, ReplacedSize
from concord.sampling.schedules import Schedule

NAME = "DE-PSGLD"


class Ball(Kind):
    """All x with a distance of at most the radius from the point whose coordinates are center."""

    radius: Annotated[Positive, "radius of the ball"]
    center: Annotated[float, "every coordinate of its center"] = 0.0


class Box(Kind):
    """All x whose coordinates lie between these."""

    lower: Annotated[float, "least value of every coordinate"]
    upper: Annotated[float, "largest value of every coordinate"]


class Params(Options):
    """Options of DE-PSGLD."""

    step_size: Annotated[Schedule, "step size eta_k"]
    constraint: Annotated[Ball | Box, "the set K"]
    smoothing: Annotated[Positive, "gamma of the pull towards K"]
    batch_size: ReplacedSize = None
    batch_scale: BatchScale = "data"
    batch_pool: BatchPool = "all"
    weights: Weights = "metropolis"
    update_order: mixing.UpdateOrder = "simultaneous"


BIASED = "the posterior within a set"


def check(problem: Problem | None, topology: Topology, params: Params) -> None:
    """Refuse a network in parts, unless it is meant, and an empty set."""
    check_averaging(problem, topology, params)
    constraint = params.constraint
    if isinstance(constraint, Box) and not constraint.lower < constraint.upper:
        raise ConcordError(
            f"constraint: nothing lies between lower {constraint.lower:g} and upper "
            f"{constraint.upper:g}; make upper the larger"
        )


def outside(constraint: Ball | Box, x0: np.ndarray) -> Callable[[np.ndarray, np.ndarray], object]:
    """Return ``differ(x, out)``, which writes x - P_K(x) for arrays like x0; out is not x."""
    if isinstance(constraint, Box):

        def differ(x: np.ndarray, out: np.ndarray) -> np.ndarray:
            np.clip(x, constraint.lower, constraint.upper, out=out)
            return np.subtract(x, out, out=out)

        return differ
    share = np.empty_like(x0[..., :1])

    def beyond(x: np.ndarray, out: np.ndarray) -> np.ndarray:
        np.subtract(x, constraint.center, out=out)
        np.einsum("cad,cad->ca", out, out, out=share[..., 0])
        np.sqrt(share, out=share)
        np.maximum(share, constraint.radius, out=share)
        np.divide(constraint.radius, share, out=share)
        np.subtract(1.0, share, out=share)
        return np.multiply(out, share, out=out)

    return beyond


def init(
    problem: Problem, topology: Topology, params: Params, x0: np.ndarray, rng: np.random.Generator
) -> tuple[State, Step]:
    """Return the state at x0 and the step."""
    gradient = gradients(problem, params, x0)
    differ, pull = outside(params.constraint, x0), np.empty_like(x0)
    smoothing = params.smoothing * topology.agents

    def penalized(x: np.ndarray, rng: np.random.Generator, out: np.ndarray) -> np.ndarray:
        gradient(x, rng, out)
        differ(x, pull)
        np.divide(pull, smoothing, out=pull)
        return np.add(out, pull, out=out)

    return de_sgld.along(penalized, topology, params, x0)
