r"""D-ULA: the decentralized unadjusted Langevin algorithm.

.. math::
    w_i^{(k+1)} = w_i^{(k)} - \beta_k \sum_{j} a_{ij} (w_i^{(k)} - w_j^{(k)})
                  - \alpha_k N \tilde\nabla f_i(w_i^{(k)}) + \sqrt{2 \alpha_k}\, v_i^{(k)},
    \qquad v_i \sim N(0, N I)

Source: parayil2020, eq. (8), with f_i its U_i; tzikas2024, eq. (25), writes zeta for beta. a_ij
is the adjacency, so the fusion term is beta_k times the graph's Laplacian; arrays have shape
(chains, agents, dim). The options make the variants that released codes compute; without edges, or
with one agent, it is C-ULA with step size N alpha_k on f_i.

Price: a vector to every neighbor and a gradient (or mini-batch) of every agent per step.
Needs: a connected network, or no edges at all.
"""

from collections.abc import Callable
from functools import lru_cache
from math import sqrt
from typing import Annotated, Any, Literal

import numpy as np

from concord.compiled import kernel
from concord.contracts import Gradient, Info, Problem, Quadratic, SeparatePrior, Step
from concord.errors import ConcordError
from concord.laws.exact import Affine, Arrivals, Update, block_diagonal, in_place
from concord.networks import mixing
from concord.networks.channel import Channel, connect
from concord.networks.matrix import AgentMatrix
from concord.networks.mixing import Kick
from concord.networks.topology import Topology
from concord.options import Options
from concord.samplers._checks import check_arrivals, check_connected
from concord.samplers._parts import State, gradients, to_all_neighbors
from concord.sampling.gradients import BatchOrder, BatchSize
from concord.sampling.kick import coming
from concord.sampling.leaps import How, leaping
from concord.sampling.schedules import Schedule

NAME = "D-ULA"

Scale = Literal["agents", "one"]
Fuse = Callable[[np.ndarray, float, np.ndarray | Kick, np.ndarray], None]


class Params(Options):
    """Options of D-ULA."""

    step_size: Annotated[Schedule, "gradient step alpha_k"]
    fusion: Annotated[Schedule, "consensus step beta_k (zeta_k in tzikas2024)"]
    gradient_scale: Annotated[Scale, "factor of the gradient: number of agents, or 1"] = "agents"
    noise_variance: Annotated[Scale, "variance of v_i: number of agents, or 1"] = "agents"
    batch_size: BatchSize = None
    batch_order: BatchOrder = "with_replacement"
    prior_gradient: Annotated[
        Literal["with_likelihood", "after_mixing"],
        "the prior's gradient is taken with the likelihood's, or after mixing, where that has led",
    ] = "with_likelihood"
    neighbors: Annotated[
        Literal["together", "in_turn"],
        "an agent averages with its neighbors together, or in turn, each time from where it is",
    ] = "together"
    update_order: mixing.UpdateOrder = "simultaneous"


def _factors(params: Params, agents: int) -> tuple[int, int]:
    factor = {"agents": agents, "one": 1}
    return factor[params.gradient_scale], factor[params.noise_variance]


def check(problem: Problem | None, topology: Topology, params: Params) -> None:
    """Refuse a network in parts, and options that do not go together."""
    check_connected(topology)
    check_arrivals(
        topology,
        update_order=(params.update_order, "simultaneous"),
        neighbors=(params.neighbors, "together"),
    )
    sequential = params.neighbors == "in_turn" or params.prior_gradient == "after_mixing"
    if sequential and params.update_order != "simultaneous":
        raise ConcordError(
            f"update_order {params.update_order!r} requires neighbors: together and "
            "prior_gradient: with_likelihood; use simultaneous"
        )
    if problem is not None:
        _late_prior(problem, params)


def _late_prior(problem: Problem, params: Params) -> Gradient | None:
    """Return the prior's gradient if it is taken after mixing."""
    if params.prior_gradient == "with_likelihood":
        return None
    if not isinstance(problem, SeparatePrior):
        raise ConcordError(
            f"{type(problem).__name__} does not give its prior's gradient apart; "
            "take prior_gradient: with_likelihood"
        )
    return problem.prior_gradient


def init(
    problem: Problem, topology: Topology, params: Params, x0: np.ndarray, rng: np.random.Generator
) -> tuple[State, Step]:
    """Return the state at x0 and the step."""
    agents = topology.agents
    gradient = gradients(problem, params, x0)
    channel = connect(topology, x0)
    fuse = _in_turn(channel, x0) if params.neighbors == "in_turn" else _together(channel, params)
    info = to_all_neighbors(channel)
    scale, variance = _factors(params, agents)
    grad, move, spare = np.empty_like(x0), np.empty_like(x0), np.empty_like(x0)
    mixed, early, late = np.empty_like(x0), np.empty_like(x0), np.empty_like(x0)  # for the prior
    prior_gradient = _late_prior(problem, params)
    at_once = params.neighbors == "together" and params.update_order == "simultaneous"

    def step(state: State, k: int, rng: np.random.Generator) -> tuple[State, Info]:
        nonlocal spare
        alpha, x, new = params.step_size(k), state.x, spare
        gradient(x, rng, grad)
        kick = coming(rng, alpha * scale, grad, move, np.float64(sqrt(2 * alpha * variance)))
        more = kick if at_once and prior_gradient is None else kick.array()
        fuse(x, params.fusion(k), more, new)
        if prior_gradient is not None and not isinstance(more, Kick):
            # The gradient has the prior's part at the iterate: exchange it.
            prior_gradient(x, early)
            np.subtract(new, more, out=mixed)
            prior_gradient(mixed, late)
            exchanged = np.subtract(early, late, out=late)
            np.multiply(exchanged, alpha * scale, out=exchanged)
            np.add(new, exchanged, out=new)
        spare = x
        return State(new), info

    def amounts(k: int) -> tuple[float, float, float]:
        alpha = params.step_size(k)
        return alpha * scale, sqrt(2 * alpha * variance), params.fusion(k)

    moves: Step = step
    if (found := _leaps(topology, params, x0)) is not None:
        how, matrix = found
        moves = leaping(step, how, problem, topology, x0, info, amounts, matrix)
    return State(x0.copy()), channel.through(moves)


def _leaps(topology: Topology, params: Params, x0: np.ndarray) -> tuple[How, AgentMatrix] | None:
    """Return the kernel and the matrix of leaps; None where none does what a step does."""
    late = params.prior_gradient == "after_mixing"
    if params.batch_size is not None or late or params.update_order != "simultaneous":
        return None
    if params.neighbors == "in_turn":
        return ("in_turn", topology.adjacency()) if _alike(topology, x0) else None
    laplacian = topology.laplacian()
    return ("move", laplacian) if laplacian.in_order(x0.shape[2]) else None


def _alike(topology: Topology, x0: np.ndarray) -> bool:
    """Whether all agents have as many neighbors, so that a kernel visits them in turn."""
    alike = len(set(topology.degrees)) == 1 and topology.conditions.perfect and x0.dtype == float
    return x0.shape[2] <= 32 and topology.agents > 2 and alike


def _together(channel: Channel, params: Params) -> Fuse:
    """Return ``fuse(x, beta, more, out)``, which writes x - beta L x + more."""
    disagree = channel.mixer(channel.topology.laplacian(), params.update_order)

    def fuse(x: np.ndarray, beta: float, more: np.ndarray | Kick, out: np.ndarray) -> None:
        if isinstance(more, Kick):
            disagree(x, more._replace(fused=True, beta=beta), out)
            return

        def one(agent: Any, apart: np.ndarray, new: np.ndarray) -> None:
            np.multiply(apart, beta, out=apart)
            np.subtract(x[:, agent], apart, out=new)
            np.add(new, more[:, agent], out=new)

        disagree(x, plus=one, out=out)

    return fuse


def _in_turn(channel: Channel, x0: np.ndarray) -> Fuse:
    r"""Return a ``fuse`` in which an agent moves towards its neighbors one after another.

    From :math:`y = x_i`, for each neighbor j in increasing order
    :math:`y \leftarrow y - \beta (y - x_j)` with the old :math:`x_j`; then y + more.
    Source: what the released code of parayil2020 computes.
    """
    topology, ranks, pull = channel.topology, [], np.empty(x0.shape)
    adjacency = topology.adjacency().by_row
    compiled = kernel("in_turn", x0.shape[2]) if _alike(topology, x0) else None
    for rank in range(int(topology.degrees.max(initial=0))):
        has = topology.degrees > rank
        agents = np.flatnonzero(has)
        columns = np.array([topology.neighbors[agent][rank] for agent in agents])
        pick = AgentMatrix.from_entries(topology.agents, agents, columns, np.ones(len(agents)))
        own = has[:, None].astype(float)
        ranks.append((channel.mixer(pick), 1.0 if has.all() else own))

    def fuse(x: np.ndarray, beta: float, more: np.ndarray | Kick, out: np.ndarray) -> None:
        assert isinstance(more, np.ndarray)
        if compiled is not None:
            compiled(x, *adjacency[:2], beta, more, out)
            return
        np.copyto(out, x)
        for pick, has in ranks:
            pick(x, plus=None, out=pull)
            np.subtract(pull, out, out=pull)
            np.multiply(pull, beta * has, out=pull)
            np.add(out, pull, out=out)
        np.add(out, more, out=out)

    return fuse


def in_turn_weights(topology: Topology, coefficient: float) -> np.ndarray:
    """Return the matrix W (agents, agents) of neighbors in turn: its rows sum to one.

    Later neighbors weigh more than earlier ones, W is not symmetric, and where the numbering wraps
    around a ring its columns do not sum to one: the plain average of the agents is not kept.
    """
    weights = np.zeros((topology.agents, topology.agents))
    for agent, neighbors in enumerate(topology.neighbors):
        weights[agent, agent] = 1.0
        for neighbor in neighbors:
            weights[agent] *= 1 - coefficient
            weights[agent, neighbor] += coefficient
    return weights


def affine(problem: Quadratic, topology: Topology, params: Params) -> Update | None:
    """Return the law, for gradients gram x - shift and the mixing acting on whole agents.

    None for mini-batches in epochs, whose errors depend on those of the steps before, and for a
    prior's gradient after mixing, which ``gram`` does not hold apart.
    """
    epochs = params.batch_size is not None and params.batch_order != "with_replacement"
    if epochs or params.prior_gradient == "after_mixing":
        return None
    agents, dim = problem.agents, problem.dim
    laplacian = topology.laplacian().dense()
    gram, shift = block_diagonal(problem.gram), problem.shift.ravel()
    identity = np.eye(agents * dim)
    scale, variance = _factors(params, agents)

    def weights(beta: float) -> np.ndarray:
        if params.neighbors == "in_turn":
            return in_turn_weights(topology, beta)
        return np.eye(agents) - beta * laplacian

    @lru_cache(maxsize=1)
    def update(alpha: float, beta: float) -> Affine:
        gain = alpha * scale
        stage = Affine(
            np.kron(weights(beta), np.eye(dim)) - gain * gram,
            gain * shift,
            2 * alpha * variance * identity,
            -gain * identity,
        )
        return in_place(stage, agents, dim) if params.update_order == "in_place" else stage

    heard = np.kron(topology.adjacency().inbox(), np.eye(dim))
    return Update(
        lambda k: update(params.step_size(k), params.fusion(k)),
        arrivals=lambda k: Arrivals(params.fusion(k) * heard),
    )
