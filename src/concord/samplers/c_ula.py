r"""C-ULA: the centralized unadjusted Langevin algorithm, one agent that holds all the data.

.. math::
    w^{(k+1)} = w^{(k)} - \alpha_k \tilde\nabla U(w^{(k)}) + \sqrt{2 \alpha_k}\, v^{(k)},
    \qquad v \sim N(0, I)

Source: parayil2020, eq. (5); gurbuzbalaban2021, eq. (2.2). Arrays have shape (chains, 1, dim).
Welling and Teh's convention, half the gradient and noise of variance epsilon_k, is
alpha_k = epsilon_k / 2.

Price: a gradient (or mini-batch) of all the data per step; no messages.
Needs: a single agent.
"""

from math import sqrt
from typing import Annotated

import numpy as np

from concord.contracts import Info, Problem, Quadratic, Step
from concord.laws.exact import Affine, Update
from concord.networks.channel import connect
from concord.networks.topology import Topology
from concord.options import Options
from concord.samplers._checks import check_centralized
from concord.samplers._parts import State, by_step, gradients, to_all_neighbors
from concord.sampling.gradients import BatchOrder, BatchSize
from concord.sampling.kick import kick
from concord.sampling.leaps import leaping
from concord.sampling.schedules import Schedule

NAME = "C-ULA"


class Params(Options):
    """Options of C-ULA."""

    step_size: Annotated[Schedule, "step size alpha_k"]
    batch_size: BatchSize = None
    batch_order: BatchOrder = "with_replacement"


def check(problem: Problem | None, topology: Topology, params: Params) -> None:
    """Refuse a network: a centralized sampler holds all the data."""
    check_centralized(topology, "C-ULA")


def init(
    problem: Problem, topology: Topology, params: Params, x0: np.ndarray, rng: np.random.Generator
) -> tuple[State, Step]:
    """Return the state at x0 and the step."""
    return descent(problem, topology, params, x0, warm=True)


def descent(
    problem: Problem, topology: Topology, params: Params, x0: np.ndarray, warm: bool
) -> tuple[State, Step]:
    """Return the state at x0 and the step along the gradient; with noise where it is ``warm``."""
    gradient = gradients(problem, params, x0)
    channel = connect(topology, x0)
    info = to_all_neighbors(channel)
    grad = np.empty_like(x0)

    def step(state: State, k: int, rng: np.random.Generator) -> tuple[State, Info]:
        alpha, x = params.step_size(k), state.x
        gradient(x, rng, grad)
        if warm:
            kick(rng, alpha, grad, out=x, x=x)
        else:
            x -= np.multiply(grad, alpha, out=grad)
        return State(x), info

    def amounts(k: int) -> tuple[float, float, float]:
        alpha = params.step_size(k)
        return alpha, sqrt(2 * alpha), 0.0

    moves: Step = step
    if warm and params.batch_size is None:
        moves = leaping(step, "kick", problem, topology, x0, info, amounts)
    return State(x0.copy()), channel.through(moves)


def affine(problem: Quadratic, topology: Topology, params: Params) -> Update | None:
    """Return the law, for the one agent's gradient gram x - shift.

    None for mini-batches in epochs: their errors depend on those of the steps before.
    """
    if params.batch_size is not None and params.batch_order != "with_replacement":
        return None
    gram, shift, identity = problem.gram[0], problem.shift[0], np.eye(problem.dim)

    def update(alpha: float) -> Affine:
        noise = 2 * alpha * identity
        return Affine(identity - alpha * gram, alpha * shift, noise, -alpha * identity)

    return by_step(update, params.step_size)
