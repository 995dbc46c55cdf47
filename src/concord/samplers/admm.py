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

Source: tzikas2024, Algorithm 1 by way of eqs. (40)-(41); without noise it is eqs. (4)-(5). Eq. (6)
states the primal step as a proximal operator with the sign of p and the parameter gamma_i wrong.
x, p and w have shape (chains, agents, dim). Without neighbors x_i is the minimizer of f_i.

Price: a vector to every neighbor, and the minimum of f_i plus a quadratic form, per agent and step:
a gradient where it is a closed form, or those of its inner solver.
Needs: a connected network, or no edges at all; a problem with proximal steps (``prox``).
"""

from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from concord.contracts import Counting, Info, Problem, Proximal, Quadratic, Step
from concord.errors import ConcordError
from concord.laws.exact import (
    Affine,
    Arrivals,
    Start,
    Update,
    block_diagonal,
    compose,
    in_place,
    linear,
)
from concord.networks import mixing
from concord.networks.channel import connect
from concord.networks.matrix import AgentMatrix
from concord.networks.topology import Topology
from concord.options import Options, Positive
from concord.samplers._checks import check_arrivals, check_connected
from concord.samplers._parts import to_all_neighbors
from concord.sampling.kick import normal

NAME = "ADMM"  # D-ADMMS draws, C-ADMM optimizes
UNITS = {"penalty": -2}


class Params(Options):
    """Options of D-ADMMS and C-ADMM."""

    penalty: Annotated[Positive, "penalty rho"]
    noise: Annotated[
        bool,
        "noise w_i in the primal step: with it D-ADMMS, a sampler; without it C-ADMM, an optimizer",
    ] = True
    update_order: Annotated[
        mixing.Order,
        "agents take the primal step all at once, or one after another seeing neighbors that have "
        "moved; the dual step follows when all have moved",
    ] = "simultaneous"
    primal_neighbors: Annotated[
        Literal["neighbors", "first_agents"],
        "agents that the primal step of agent i pulls to: its neighbors, or agents 0 ... deg_i - 1 "
        "(as released code does; agent i may be one of them)",
    ] = "neighbors"


BIASED = "D-ADMMS, whose distance from the posterior does not vanish with the penalty"


class State(NamedTuple):
    """Positions x and scaled dual variables u = p / rho, (chains, agents, dim)."""

    x: np.ndarray
    u: np.ndarray


def check(problem: Problem | None, topology: Topology, params: Params) -> None:
    """Refuse a problem without a proximal step, and a network in parts unless it is meant."""
    check_connected(topology)
    check_arrivals(
        topology,
        update_order=(params.update_order, "simultaneous"),
        primal_neighbors=(params.primal_neighbors, "neighbors"),
    )
    if not topology.conditions.perfect and topology.conditions.on_loss != "reuse_last":
        raise ConcordError(
            f"network.on_loss: {topology.conditions.on_loss} gives ADMM no differences to add up; "
            "use reuse_last"
        )
    if (late := topology.conditions.late) is not None:
        raise ConcordError(
            f"network.{late}: ADMM adds up differences of what neighbors have at the same time; "
            "remove it"
        )
    if problem is not None:
        _proximal(problem)


def _proximal(problem: Problem) -> Proximal:
    if not isinstance(problem, Proximal):
        raise ConcordError(
            f"sampler admm minimizes each agent's potential, and {type(problem).__name__} has no "
            "proximal step; choose linear or logistic regression, or another sampler"
        )
    return problem


def _pull(topology: Topology, params: Params) -> AgentMatrix:
    """Return the matrix that acts on the old positions in the primal step."""
    degrees = topology.degrees
    if params.primal_neighbors == "first_agents":
        rows = np.repeat(np.arange(topology.agents), degrees)
        columns = np.concatenate([np.arange(degree) for degree in degrees])
    else:
        adjacency = topology.adjacency()
        rows, columns = adjacency.rows, adjacency.columns
    pull = np.full(len(rows), params.penalty)
    return AgentMatrix.with_diagonal(rows, columns, pull, params.penalty * degrees)


def init(
    problem: Problem, topology: Topology, params: Params, x0: np.ndarray, rng: np.random.Generator
) -> tuple[State, Step]:
    """Return the state at x0 with dual variables zero, and the step."""
    channel = connect(topology, x0)
    pull = channel.mixer(_pull(topology, params), params.update_order, sends=False)
    disagree = channel.mixer(topology.laplacian())
    degrees = topology.degrees
    minimize = _proximal(problem).prox(len(x0), 2 * params.penalty * degrees)
    info = to_all_neighbors(channel)
    if isinstance(minimize, Counting):
        info = info._replace(gradients=minimize.gradients)
    spread = np.sqrt(2) * degrees[:, None]
    dual, noise, linear, apart, spare = (np.empty_like(x0) for _ in range(5))

    def step(state: State, k: int, rng: np.random.Generator) -> tuple[State, Info]:
        nonlocal spare
        (x, u), new = state, spare
        np.multiply(u, params.penalty, out=dual)
        if params.noise:
            normal(rng, spread, noise)
            np.add(dual, noise, out=dual)

        def primal(agent: Any, pulls: np.ndarray, new: np.ndarray) -> None:
            b = np.subtract(pulls, dual[:, agent], out=linear[:, agent])
            minimize(agent, b, x[:, agent], new)

        pull(x, plus=primal, out=new)
        disagree(new, plus=None, out=apart)
        np.add(u, apart, out=u)
        spare = x
        return State(new, u), info

    return State(x0.copy(), np.zeros_like(x0)), channel.through(step)


def affine(problem: Quadratic, topology: Topology, params: Params) -> Update:
    """Return the law of (x, u): the primal step of eq. (40), then the dual step of eq. (41).

    Scaled, the dual variables are of the positions' size whatever the penalty.
    """
    agents, dim = problem.agents, problem.dim
    identity, zero = np.eye(agents * dim), np.zeros((agents * dim, agents * dim))
    degrees = np.repeat(topology.degrees, dim).astype(float)
    solve = block_diagonal(
        np.linalg.inv(
            problem.gram + 2 * params.penalty * topology.degrees[:, None, None] * np.eye(dim)
        )
    )
    pull = solve @ np.kron(_pull(topology, params).dense(), np.eye(dim))
    kick = np.sqrt(2) * solve * degrees if params.noise else zero
    primal = Affine(
        np.block([[pull, -params.penalty * solve], [zero, identity]]),
        np.concatenate([solve @ problem.shift.ravel(), np.zeros(agents * dim)]),
        np.block([[kick @ kick.T, zero], [zero, zero]]),
    )
    if params.update_order == "in_place":
        primal = in_place(primal, agents, dim)
    laplacian = np.kron(topology.laplacian().dense(), np.eye(dim))
    dual = linear(np.block([[identity, zero], [laplacian, identity]]))
    step = compose(primal, dual)
    heard = np.kron(topology.adjacency().inbox(), np.eye(dim))
    pulled = np.concatenate([params.penalty * solve @ heard, np.zeros_like(heard)])
    arrivals = Arrivals(np.concatenate([np.zeros_like(heard), -heard]), dual.matrix @ pulled)
    return Update(lambda k: step, (Start(0.0, 0.0),), lambda k: arrivals)
