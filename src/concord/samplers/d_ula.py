r"""D-ULA: the decentralized unadjusted Langevin algorithm.

.. math::
    w_i^{(k+1)} = w_i^{(k)} - \beta_k \sum_{j} a_{ij} (w_i^{(k)} - w_j^{(k)})
                  - \alpha_k N \tilde\nabla f_i(w_i^{(k)}) + \sqrt{2 \alpha_k}\, v_i^{(k)},
    \qquad v_i \sim N(0, N I)

Source: parayil2020, eq. (8), with f_i its U_i; tzikas2024, eq. (25), writes zeta for beta. a_ij
is the adjacency, so the fusion term is beta_k times the graph's Laplacian; arrays have shape
(chains, agents, dim).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from concord import mixing
from concord.exact import Affine, Update, block_diagonal, in_place
from concord.gradients import estimator
from concord.parameters import param
from concord.problems import Problem
from concord.samplers import Info, Step
from concord.samplers.de_sgld import check as check
from concord.schedules import Schedule
from concord.topology import Topology

SCALES = ("agents", "one")


@dataclass(frozen=True)
class Params:
    """Options of D-ULA."""

    step_size: Schedule = param("gradient step alpha_k")
    fusion: Schedule = param("consensus step beta_k (zeta_k in tzikas2024)")
    gradient_scale: str = param(
        "factor of the gradient: the number of agents N, or one", default="agents", choices=SCALES
    )
    noise_variance: str = param(
        "variance of v_i: the number of agents N, or one", default="agents", choices=SCALES
    )
    batch_size: int | None = param(
        "points per mini-batch, drawn with replacement; none: full gradients",
        default=None,
        minimum=1,
    )
    update_order: str = param(
        "agents move all at once, or one after another seeing neighbors that have moved",
        default="simultaneous",
        choices=mixing.ORDERS,
    )


class State(NamedTuple):
    """Positions x, (chains, agents, dim)."""

    x: np.ndarray


def _factors(params: Params, agents: int) -> tuple[int, int]:
    factor = {"agents": agents, "one": 1}
    return factor[params.gradient_scale], factor[params.noise_variance]


def init(
    problem: Problem, topology: Topology, params: Params, x0: np.ndarray, rng: np.random.Generator
) -> tuple[State, Step]:
    """Return the state at x0 and the step."""
    chains, agents, dim = x0.shape
    gradient = estimator(problem, params.batch_size, chains)
    diffuse = mixing.diffuser(topology.laplacian(), chains, dim, params.update_order)
    info = Info(sent=topology.degrees)
    scale, variance = _factors(params, agents)
    grad, residual, spare = np.empty_like(x0), np.empty_like(x0), np.empty_like(x0)

    def step(state: State, k: int, rng: np.random.Generator) -> tuple[State, Info]:
        nonlocal spare
        alpha = params.step_size(k)
        gradient(state.x, rng, grad)
        rng.standard_normal(out=residual)
        np.multiply(residual, np.sqrt(2 * alpha * variance), out=residual)
        np.multiply(grad, alpha * scale, out=grad)
        np.subtract(residual, grad, out=residual)
        x = spare
        diffuse(state.x, residual, x, params.fusion(k))
        spare = state.x
        return State(x), info

    return State(x0.copy()), step


def affine(problem: Any, topology: Topology, params: Params) -> Update:
    """Return the law, for gradients gram x - shift and the Laplacian acting on whole agents."""
    agents, dim = problem.agents, problem.dim
    laplacian = np.kron(topology.laplacian().dense(), np.eye(dim))
    gram, shift = block_diagonal(problem.gram), problem.shift.ravel()
    identity = np.eye(agents * dim)
    scale, variance = _factors(params, agents)

    @lru_cache(maxsize=1)
    def update(alpha: float, beta: float) -> Affine:
        gain = alpha * scale
        stage = Affine(
            identity - beta * laplacian - gain * gram,
            gain * shift,
            2 * alpha * variance * identity,
            -gain * identity,
        )
        return in_place(stage, agents, dim) if params.update_order == "in_place" else stage

    return Update(lambda k: update(params.step_size(k), params.fusion(k)))
