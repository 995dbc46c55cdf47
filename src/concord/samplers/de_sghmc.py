r"""DE-SGHMC: decentralized stochastic gradient Hamiltonian Monte Carlo.

.. math::
    v_i^{(k+1)} &= v_i^{(k)} - \eta_k \left( \gamma v_i^{(k)} + \tilde\nabla f_i(x_i^{(k)}) \right)
                   + \sqrt{2 \gamma \eta_k}\, w_i^{(k+1)}, \qquad w_i \sim N(0, I) \\
    x_i^{(k+1)} &= \sum_j W_{ij} x_j^{(k)} + \eta_k v_i^{(k+1)}

Source: gurbuzbalaban2021, eqs. (4.1)-(4.2); tzikas2024, eqs. (23)-(24), calls it D-SGHMC.
W is doubly stochastic, and symmetric but for ``weights: next_two``; x, v, gradients and noise have
shape (chains, agents, dim). Positions are exchanged, velocities are not.

Price: a vector to every neighbor and a gradient (or mini-batch) of every agent per step.
Needs: a connected network, or no edges at all.
"""

from typing import Annotated, NamedTuple

import numpy as np

from concord.contracts import Info, Problem, Quadratic, Step
from concord.laws.exact import Affine, Arrivals, Start, Update, compose, in_place, linear
from concord.networks import mixing
from concord.networks.channel import connect
from concord.networks.topology import Topology
from concord.networks.weights import Weights, weights_of
from concord.options import NonNegative, Options, Positive
from concord.samplers._checks import check_averaging
from concord.samplers._parts import by_step, gradients, pieces, to_all_neighbors
from concord.sampling.gradients import BatchPool, BatchScale, ReplacedSize
from concord.sampling.kick import kick
from concord.sampling.schedules import Schedule

NAME = "DE-SGHMC"
UNITS = {"step_size": 1, "friction": -1}  # time is a length here


class Params(Options):
    """Options of DE-SGHMC."""

    step_size: Annotated[Schedule, "step size eta_k"]
    friction: Annotated[Positive, "friction gamma"]
    batch_size: ReplacedSize = None
    batch_scale: BatchScale = "data"
    batch_pool: BatchPool = "all"
    weights: Weights = "metropolis"
    initial_velocity_sd: Annotated[
        NonNegative, "standard deviation of the initial velocities v^(0) ~ N(0, . I)"
    ] = 0.0
    update_order: mixing.UpdateOrder = "simultaneous"


class State(NamedTuple):
    """Positions x and velocities v, (chains, agents, dim)."""

    x: np.ndarray
    v: np.ndarray


check = check_averaging


def init(
    problem: Problem, topology: Topology, params: Params, x0: np.ndarray, rng: np.random.Generator
) -> tuple[State, Step]:
    """Return the state at x0, with velocities drawn from rng, and the step."""
    gradient = gradients(problem, params, x0)
    channel = connect(topology, x0)
    weights = weights_of(topology, params.weights)
    mix = channel.mixer(weights, params.update_order)
    info = to_all_neighbors(channel)
    grad, move, spare = np.empty_like(x0), np.empty_like(x0), np.empty_like(x0)
    gamma = params.friction

    def step(state: State, k: int, rng: np.random.Generator) -> tuple[State, Info]:
        nonlocal spare
        eta, (x, v), new = params.step_size(k), state, spare
        gradient(x, rng, grad)
        np.multiply(v, 1 - eta * gamma, out=v)
        kick(rng, eta, grad, out=v, x=v, sd=np.sqrt(2 * gamma * eta))
        np.multiply(v, eta, out=move)
        mix(x, plus=move, out=new)
        spare = x
        return State(new, v), info

    v0 = params.initial_velocity_sd * rng.standard_normal(x0.shape)
    return State(x0.copy(), v0), channel.through(step)


def affine(problem: Quadratic, topology: Topology, params: Params) -> Update:
    """Return the law of (x, v): velocities move first, eq. (4.3), then positions, eq. (4.4)."""
    gram, shift, mix, heard, identity, zero = pieces(problem, topology, params)

    def update(eta: float) -> Affine:
        gamma = params.friction
        velocities = Affine(
            np.block([[identity, zero], [-eta * gram, (1 - eta * gamma) * identity]]),
            np.concatenate([np.zeros_like(shift), eta * shift]),
            np.block([[zero, zero], [zero, 2 * gamma * eta * identity]]),
            np.concatenate([zero, -eta * identity]),
        )
        positions = linear(np.block([[mix, eta * identity], [zero, identity]]))
        if params.update_order == "in_place":
            positions = in_place(positions, problem.agents, problem.dim)
        return compose(velocities, positions)

    start = Start(0.0, params.initial_velocity_sd)
    arrivals = Arrivals(np.concatenate([heard, np.zeros_like(heard)]))
    return by_step(update, params.step_size, start, arrivals=arrivals)
