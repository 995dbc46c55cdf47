r"""DE-SGLD: decentralized stochastic gradient Langevin dynamics.

.. math::
    x_i^{(k+1)} = \sum_j W_{ij} x_j^{(k)} - \eta_k \tilde\nabla f_i(x_i^{(k)})
                  + \sqrt{2 \eta_k}\, w_i^{(k+1)}, \qquad w_i \sim N(0, I)

Source: gurbuzbalaban2021, eq. (1.1), in matrix form (3.3); tzikas2024, eq. (22), calls it D-SGLD.
W is doubly stochastic, and symmetric but for ``weights: next_two``; x, gradients and noise have
shape (chains, agents, dim).

Price: a vector to every neighbor and a gradient (or mini-batch) of every agent per step.
Needs: a connected network, or no edges at all.
"""

from typing import Annotated, Any

import numpy as np

from concord.contracts import Info, Problem, Quadratic, Step
from concord.laws.exact import Affine, Arrivals, Update, in_place
from concord.networks import mixing
from concord.networks.channel import connect
from concord.networks.topology import Topology
from concord.networks.weights import Weights, weights_of
from concord.options import Options
from concord.samplers._checks import check_averaging
from concord.samplers._parts import State, by_step, gradients, pieces, to_all_neighbors
from concord.sampling.gradients import BatchPool, BatchScale, Estimator, ReplacedSize
from concord.sampling.kick import coming
from concord.sampling.schedules import Schedule

NAME = "DE-SGLD"


class Params(Options):
    """Options of DE-SGLD."""

    step_size: Annotated[Schedule, "step size eta_k"]
    batch_size: ReplacedSize = None
    batch_scale: BatchScale = "data"
    batch_pool: BatchPool = "all"
    weights: Weights = "metropolis"
    update_order: mixing.UpdateOrder = "simultaneous"


check = check_averaging


def init(
    problem: Problem, topology: Topology, params: Params, x0: np.ndarray, rng: np.random.Generator
) -> tuple[State, Step]:
    """Return the state at x0 and the step."""
    return along(gradients(problem, params, x0), topology, params, x0)


def along(
    gradient: Estimator, topology: Topology, params: Any, x0: np.ndarray
) -> tuple[State, Step]:
    """Return the state at x0 and the step along these gradients."""
    channel = connect(topology, x0)
    mix = channel.mixer(weights_of(topology, params.weights), params.update_order)
    info = to_all_neighbors(channel)
    grad, move, spare = np.empty_like(x0), np.empty_like(x0), np.empty_like(x0)

    def step(state: State, k: int, rng: np.random.Generator) -> tuple[State, Info]:
        nonlocal spare
        x, new = state.x, spare
        gradient(x, rng, grad)
        mix(x, plus=coming(rng, params.step_size(k), grad, out=move), out=new)
        spare = x
        return State(new), info

    return State(x0.copy()), channel.through(step)


def affine(problem: Quadratic, topology: Topology, params: Params) -> Update:
    """Return the law: eq. (3.3) with gradient gram x - shift, W acting on whole agents."""
    gram, shift, mix, heard, identity, _ = pieces(problem, topology, params)

    def update(eta: float) -> Affine:
        stage = Affine(mix - eta * gram, eta * shift, 2 * eta * identity, -eta * identity)
        shape = problem.agents, problem.dim
        return in_place(stage, *shape) if params.update_order == "in_place" else stage

    return by_step(update, params.step_size, arrivals=Arrivals(heard))
