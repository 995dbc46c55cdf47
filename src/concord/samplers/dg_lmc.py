r"""DG-LMC: Langevin steps of every agent within a Gibbs sampler, whose other block a server draws.

Every agent has a copy z_i of its own, tied to the common theta by a tolerance rho_i:

.. math::
    z_i &\leftarrow z_i - \gamma_k \Bigl( \nabla f_i(z_i) + \frac{z_i - \theta}{\rho_i} \Bigr)
        + \sqrt{2 \gamma_k}\, w_i, \qquad w_i \sim N(0, I), \qquad \text{n times} \\
    \theta &\sim N \Bigl( \frac{\sum_i z_i / \rho_i}{\sum_i 1 / \rho_i},
        \frac{1}{\sum_i 1 / \rho_i} I \Bigr)

which samples :math:`\exp(-\sum_i (f_i(z_i) + \lVert z_i - \theta \rVert^2 / 2 \rho_i))` but for the
error of the Langevin steps. Of theta this is the product of the agents' laws, each convolved with
N(0, rho_i I): where f_i has the precision A_i, theta's law has :math:`(A_i^{-1} + \rho_i I)^{-1}`
(derived here). That bias stays when the steps get small.

Source: Plassier, Vono, Durmus and Moulines, "DG-LMC: a turn-key and scalable synchronous
distributed MCMC algorithm via Langevin Monte Carlo within Gibbs" (2021, arXiv:2106.06300), from its
authors' released code; the print was not at hand. There steps and their number may differ by agent.
x_i is what agent i last heard of theta, so after the first step all x_i are equal; arrays have
shape (chains, agents, dim).

Price: n gradients of every agent, and an average of all by the server, per step.
Needs: a server, or a single agent.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from concord.contracts import Info, Problem, Quadratic, Step
from concord.errors import ConcordError
from concord.laws.exact import Affine, Start, Update, block_diagonal, compose
from concord.networks.channel import connect
from concord.networks.matrix import AgentMatrix
from concord.networks.shares import common
from concord.networks.topology import Topology
from concord.options import Count, Options, Positive
from concord.samplers._checks import check_server
from concord.samplers._parts import by_step, to_all_neighbors
from concord.sampling.kick import kick, normal
from concord.sampling.schedules import Schedule

NAME = "DG-LMC"
UNITS = {"step_size": 2, "tolerance": 2}


class Params(Options):
    """Options of DG-LMC."""

    step_size: Annotated[Schedule, "step size gamma_k of the agents"]
    tolerance: Annotated[Positive | tuple[Positive, ...], "rho of all agents, or of each"]
    local_steps: Annotated[Count, "steps n of every agent between two draws of theta"] = 1


class State(NamedTuple):
    """What agents know of theta, x, and their copies z, (chains, agents, dim)."""

    x: np.ndarray
    z: np.ndarray


BIASED = "the product of the agents' laws, each wider by its tolerance"


def check(problem: Problem | None, topology: Topology, params: Params) -> None:
    """Refuse a network without a server, and tolerances of other agents."""
    check_server(topology, "dg_lmc", averages=True)
    if isinstance(params.tolerance, tuple) and len(params.tolerance) != topology.agents:
        raise ConcordError(
            f"tolerance: there are {len(params.tolerance)} for {topology.agents} agents; give one "
            "for all, or one of each"
        )


def _tolerances(agents: int, params: Params) -> np.ndarray:
    return np.broadcast_to(np.asarray(params.tolerance, dtype=float), agents)


def _average(tolerances: np.ndarray) -> AgentMatrix:
    """Return the matrix that makes theta's mean, the same for everybody, of all z."""
    agents = len(tolerances)
    rows, columns = np.divmod(np.arange(agents**2), agents)
    shares = 1 / tolerances / np.sum(1 / tolerances)
    return AgentMatrix.from_entries(agents, rows, columns, shares[columns])


def init(
    problem: Problem, topology: Topology, params: Params, x0: np.ndarray, rng: np.random.Generator
) -> tuple[State, Step]:
    """Return the state at x0, with copies there, and the step."""
    gradient = problem.gradient(len(x0))
    channel = connect(topology, x0)
    rho = _tolerances(topology.agents, params)
    average = channel.mixer(_average(rho))
    counted = np.full(x0.shape[1], params.local_steps)
    info = to_all_neighbors(channel)._replace(gradients=counted)
    width, ties = np.sqrt(1 / np.sum(1 / rho)), 1 / rho[channel.own, None]
    grad, pull, noise = np.empty_like(x0), np.empty_like(x0), np.empty_like(x0[:, :1])

    def step(state: State, k: int, rng: np.random.Generator) -> tuple[State, Info]:
        gamma, (x, z) = params.step_size(k), state
        for _ in range(params.local_steps):
            gradient(z, grad)
            np.subtract(z, x, out=pull)
            np.multiply(pull, ties, out=pull)
            np.add(grad, pull, out=grad)
            kick(rng, gamma, grad, out=z, x=z)
        normal(common(rng), width, noise)
        average(z, plus=noise, out=x)
        return State(x, z), info

    return State(x0.copy(), x0.copy()), channel.through(step)


def affine(problem: Quadratic, topology: Topology, params: Params) -> Update:
    """Return the law of (x, z): the agents' steps, then theta, whose noise is everybody's."""
    agents, dim = problem.agents, problem.dim
    rho = _tolerances(agents, params)
    identity, zero = np.eye(agents * dim), np.zeros((agents * dim, agents * dim))
    pull = np.diag(np.repeat(1 / rho, dim))
    precision, shift = block_diagonal(problem.gram) + pull, problem.shift.ravel()
    mean = np.kron(_average(rho).dense(), np.eye(dim))
    common = np.kron(np.ones((agents, agents)), np.eye(dim)) / np.sum(1 / rho)
    server = Affine(
        np.block([[zero, mean], [zero, identity]]),
        np.zeros(2 * agents * dim),
        np.block([[common, zero], [zero, zero]]),
    )

    def update(gamma: float) -> Affine:
        own = Affine(
            np.block([[identity, zero], [gamma * pull, identity - gamma * precision]]),
            np.concatenate([0 * shift, gamma * shift]),
            np.block([[zero, zero], [zero, 2 * gamma * identity]]),
        )
        return compose(*[own] * params.local_steps, server)

    return by_step(update, params.step_size, Start(0.0, 0.0, identity))
