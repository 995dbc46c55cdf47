r"""EXTRA-SGLD: DE-SGLD that remembers how far agents were from their neighbors, and corrects it.

.. math::
    x_i^{(k+1)} &= \sum_j W_{ij} x_j^{(k)} - \eta_k \tilde\nabla f_i(x_i^{(k)}) - u_i^{(k)}
                  + \sqrt{2 \eta_k}\, w_i^{(k+1)}, \qquad w_i \sim N(0, I) \\
    u_i^{(k+1)} &= u_i^{(k)} + \sum_j (\tilde W - W)_{ij} x_j^{(k)}, \qquad u_i^{(0)} = 0,
        \qquad \tilde W = h I + (1 - h) W

so that :math:`u_i \leftarrow u_i + h (x_i - \sum_j W_{ij} x_j)`. Without noise and with a constant
step it is EXTRA (Shi, Ling, Wu, Yin 2015), :math:`x^{(k+2)} = (I + W) x^{(k+1)} - \tilde W x^{(k)}
- \eta (\nabla f(x^{(k+1)}) - \nabla f(x^{(k)}))`, which gets the noise :math:`\sqrt{2 \eta}
(w^{(k+2)} - w^{(k+1)})`: fresh noise in each step of that form would add up in the network average.

W is doubly stochastic; x, u, gradients and noise have shape (chains, agents, dim). A step conserves
:math:`\sum_i u_i = 0`, by which the network average makes a Langevin step on f, but for where the
gradients are taken. If vectors get lost in one direction alone, that sum is a random walk, which
nothing calls back, and so is the network average.

Source: Gürbüzbalaban, Islam, Wang, Zhu, "Generalized EXTRA stochastic gradient Langevin dynamics",
2024, arXiv 2412.01993, in our form: its abstract and its authors' code were read, its equations
were not. ``form: two_steps`` is what that code computes: it has no memory; one agent after another
makes a step of DE-SGLD by :math:`\tilde W` and at once another by W, each with a gradient and noise
of its own and from where agents are by then. It sums mini-batches unscaled (``batch_scale: none``),
never draws the last point (``batch_pool: all_but_last``), and has twice the prior's gradient in
every agent (the problem's ``prior_share: twice``).

Price: a vector to every neighbor and a gradient (or mini-batch) of every agent per step; with
``form: two_steps`` two gradients, and one vector: neighbors stay where they are between an agent's
two steps, and hear of the second alone.
Needs: a connected network, or no edges at all.
"""

from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from msgspec import Meta

from concord.contracts import Info, Problem, Quadratic, Step
from concord.laws.exact import Affine, Arrivals, Start, Update, compose
from concord.networks.channel import Channel, connect
from concord.networks.topology import Topology
from concord.networks.weights import Weights, weights_of
from concord.options import Options
from concord.samplers._checks import check_arrivals, check_weighted
from concord.samplers._parts import by_step, gradients, pieces, to_all_neighbors
from concord.sampling.gradients import BatchPool, BatchScale, ReplacedSize, estimator_of_agent
from concord.sampling.kick import kick, normal
from concord.sampling.schedules import Schedule

NAME = "EXTRA-SGLD"


class Params(Options):
    """Options of EXTRA-SGLD."""

    step_size: Annotated[Schedule, "step size eta_k"]
    h: Annotated[
        Annotated[float, Meta(gt=0, le=0.5)], "h of W~ = h I + (1 - h) W: how fast u is corrected"
    ] = 0.5
    form: Annotated[
        Literal["memory", "two_steps"],
        "agents remember u; or, without memory, one after another makes two steps of DE-SGLD, by "
        "W~ and by W (as released code does)",
    ] = "memory"
    batch_size: ReplacedSize = None
    batch_scale: BatchScale = "data"
    batch_pool: BatchPool = "all"
    weights: Weights = "metropolis"


class State(NamedTuple):
    """Positions x and corrections u, (chains, agents, dim); u is empty without memory."""

    x: np.ndarray
    u: np.ndarray


def check(problem: Problem | None, topology: Topology, params: Params) -> None:
    """Refuse a network in parts, unless it is meant, and options that do not go together."""
    check_weighted(problem, topology, params)
    check_arrivals(topology, form=(params.form, "memory"))


def init(
    problem: Problem, topology: Topology, params: Params, x0: np.ndarray, rng: np.random.Generator
) -> tuple[State, Step]:
    """Return the state at x0, without corrections, and the step."""
    channel = connect(topology, x0)
    if params.form == "two_steps":
        return State(x0.copy(), np.empty(0)), _two_steps(channel, problem, params, x0)
    gradient = gradients(problem, params, x0)
    mix = channel.mixer(weights_of(topology, params.weights))
    info = to_all_neighbors(channel)
    grad, move, spare = np.empty_like(x0), np.empty_like(x0), np.empty_like(x0)

    def step(state: State, k: int, rng: np.random.Generator) -> tuple[State, Info]:
        nonlocal spare
        (x, u), new = state, spare
        gradient(x, rng, grad)
        kick(rng, params.step_size(k), grad, out=move)
        mix(x, plus=None, out=new)
        np.subtract(new, u, out=new)
        # u + h (x - W x), with new = W x - u
        np.multiply(u, 1 - params.h, out=u)
        apart = np.subtract(x, new, out=x)
        np.multiply(apart, params.h, out=apart)
        np.add(u, apart, out=u)
        np.add(new, move, out=new)
        spare = x
        return State(new, u), info

    return State(x0.copy(), np.zeros_like(x0)), channel.through(step)


def _two_steps(channel: Channel, problem: Problem, params: Params, x0: np.ndarray) -> Step:
    """Return the step in which one agent after another moves by W~ and then by W."""
    gradient, how = gradients(problem, params, x0), (params.batch_scale, params.batch_pool)
    second = estimator_of_agent(problem, params.batch_size, len(x0), scale=how[0], pool=how[1])
    weights, h = weights_of(channel.topology, params.weights), params.h
    own, move = weights.diagonal, channel.mixer(weights, "in_place", sends=False)
    info = to_all_neighbors(channel)._replace(gradients=np.full(channel.topology.agents, 2))
    grad, first, noise, spare = (np.empty_like(x0) for _ in range(4))
    once, pull = (np.empty_like(x0[:, 0]) for _ in range(2))  # an agent after its first step

    def step(state: State, k: int, rng: np.random.Generator) -> tuple[State, Info]:
        nonlocal spare
        eta, x, new = params.step_size(k), state.x, spare
        gradient(x, rng, grad)
        kick(rng, eta, grad, out=first)
        normal(rng, np.sqrt(2 * eta), noise)

        def twice(agent: Any, total: np.ndarray, new: np.ndarray) -> None:
            np.multiply(total, 1 - h, out=once)
            np.add(once, h * x[:, agent], out=once)
            np.add(once, first[:, agent], out=once)
            second(agent, once, rng, pull)
            np.subtract(once, x[:, agent], out=new)
            np.multiply(new, own[agent], out=new)
            np.add(new, total, out=new)
            kick(rng, eta, pull, out=new, x=new, noise=noise[:, agent])

        move(x, twice, new)
        spare = x
        return State(new, state.u), info

    return channel.through(step)


def affine(problem: Quadratic, topology: Topology, params: Params) -> Update | None:
    """Return the law of (x, u) for gradients gram x - shift, or of x alone by two steps.

    None for mini-batches by two steps, whose second errors depend on the first.
    """
    if params.form == "two_steps":
        return _law_of_two_steps(problem, topology, params)
    gram, shift, mix, heard, identity, zero = pieces(problem, topology, params)
    apart = params.h * (identity - mix)  # W~ - W

    def update(eta: float) -> Affine:
        return Affine(
            np.block([[mix - eta * gram, -identity], [apart, identity]]),
            np.concatenate([eta * shift, np.zeros_like(shift)]),
            np.block([[2 * eta * identity, zero], [zero, zero]]),
            np.concatenate([-eta * identity, zero]),
        )

    arrivals = Arrivals(np.concatenate([heard, -params.h * heard]))
    return by_step(update, params.step_size, Start(0.0, 0.0), arrivals=arrivals)


def _law_of_two_steps(problem: Quadratic, topology: Topology, params: Params) -> Update | None:
    """Return the product of the agents' steps, each of which changes one agent's entries."""
    if params.batch_size is not None:
        return None
    gram, shift, mix, _, identity, _ = pieces(problem, topology, params)
    each = np.repeat(np.arange(problem.agents), problem.dim)

    def update(eta: float) -> Affine:
        stages = []
        for agent in range(problem.agents):
            for matrix in (params.h * identity + (1 - params.h) * mix, mix):
                moves = (each == agent)[:, None]
                stages.append(
                    Affine(
                        np.where(moves, matrix - eta * gram, identity),
                        np.where(moves[:, 0], eta * shift, 0.0),
                        2 * eta * identity * moves,
                    )
                )
        return compose(*stages)

    return by_step(update, params.step_size)
