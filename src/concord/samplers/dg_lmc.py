r"""DG-LMC: Langevin steps of every agent within a Gibbs sampler, whose other block a server draws.

Every agent has a copy z_i of its own, tied to the common theta by a tolerance rho_i:

.. math::
    z_i &\leftarrow z_i - \gamma_k \Bigl( \nabla f_i(z_i) + \frac{z_i - \theta}{\rho_i} \Bigr)
        + \sqrt{2 \gamma_k}\, w_i, \qquad w_i \sim N(0, I), \qquad \text{n times} \\
    \theta &\sim N \Bigl( \frac{\sum_i z_i / \rho_i}{\sum_i 1 / \rho_i},
        \frac{1}{\sum_i 1 / \rho_i} I \Bigr)

which samples :math:`\exp(-\sum_i (f_i(z_i) + \lVert z_i - \theta \rVert^2 / 2 \rho_i))` but for the
error of the Langevin steps. Of theta this is the product of the agents' laws, each convolved with
N(0, rho_i I): where f_i has the precision P_i, theta's law has :math:`(P_i^{-1} + \rho_i I)^{-1}`
(derived here). That bias stays when the steps get small.

With ``coupling`` the ties are :math:`\lVert A_i (z_i - \theta) \rVert^2 / 2 \rho_i`, and the steps
are taken in the coordinates :math:`A_i z_i`: with :math:`G_i = (A_i^\top A_i)^{-1}` for I,

.. math::
    z_i &\leftarrow z_i - \gamma_k \Bigl( G_i \nabla f_i(z_i) + \frac{z_i - \theta}{\rho_i} \Bigr)
        + \sqrt{2 \gamma_k}\, A_i^{-1} w_i \\
    \theta &\sim N \Bigl( Q^{-1} \sum_i \frac{G_i^{-1} z_i}{\rho_i}, Q^{-1} \Bigr), \qquad
        Q = \sum_i G_i^{-1} / \rho_i

and theta's law has :math:`(P_i^{-1} + \rho_i G_i)^{-1}`.

With ``particles: K`` theta is only proposed so (pseudo-marginal DG-LMC): :math:`\theta'` is
accepted, or else theta stays while z has moved, with the odds

.. math::
    e^{\sum_i f_i(\theta) - f_i(\theta')} \frac{q(\theta', \theta)}{q(\theta, \theta')}, \qquad
    q(s, t) = \frac1K \sum_{k=1}^K \exp \Bigl( -\sum_i
        \frac{\lVert A_i (t - z_i^{(k)}(s)) \rVert^2}{2 \rho_i} \Bigr)

where each :math:`z_i^{(k)}(s)` is one more Langevin step of z_i, tied to s.

Source: Plassier, Vono, Durmus and Moulines, "DG-LMC: a turn-key and scalable synchronous
distributed MCMC algorithm via Langevin Monte Carlo within Gibbs" (2021, arXiv:2106.06300), from its
authors' released code; the print was not at hand. There steps and their number may differ by agent.
x_i is what agent i last heard of theta, so after the first step all x_i are equal; arrays have
shape (chains, agents, dim).

Price: n gradients of every agent, and an average of all by the server, per step; with particles 2K
gradients and two potentials more, and as many messages again for the odds.
Needs: a server, or a single agent.
"""

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np

from concord.contracts import Info, Problem, Quadratic, Step, WithPotential
from concord.errors import ConcordError
from concord.laws.exact import Affine, Start, Update, block_diagonal, compose
from concord.networks.channel import Channel, connect
from concord.networks.matrix import AgentMatrix
from concord.networks.topology import Topology
from concord.options import Count, Options, Positive, Some
from concord.samplers._checks import check_server
from concord.samplers._parts import by_step, to_all_neighbors
from concord.sampling.kick import kick, normal
from concord.sampling.schedules import Schedule

NAME = "DG-LMC"
UNITS = {"step_size": 2, "tolerance": 2}

Move = Callable[[np.ndarray, np.ndarray, float, Any, np.ndarray], None]
Draw = Callable[[np.ndarray, Any, np.ndarray], None]
Odds = Callable[[np.ndarray, np.ndarray, np.ndarray, float, Any], np.ndarray]


class Params(Options):
    """Options of DG-LMC."""

    step_size: Annotated[Schedule, "step size gamma_k of the agents"]
    tolerance: Annotated[Positive | tuple[Positive, ...], "rho of all agents, or of each"]
    local_steps: Annotated[Count, "steps n of every agent between two draws of theta"] = 1
    coupling: Annotated[
        Some[Some[Some[float]]] | None,
        "matrices A_i of the ties, rows of one for all agents or of one for each; none: I",
    ] = None
    particles: Annotated[
        Count | None, "K of the odds by which theta is accepted; none: it always is"
    ] = None


class State(NamedTuple):
    """What agents know of theta, x, and their copies z, (chains, agents, dim)."""

    x: np.ndarray
    z: np.ndarray


BIASED = "the product of the agents' laws, each wider by its tolerance"


def check(problem: Problem | None, topology: Topology, params: Params) -> None:
    """Refuse a network without a server, and tolerances of other agents."""
    check_server(topology, "dg_lmc")
    if isinstance(params.tolerance, tuple) and len(params.tolerance) != topology.agents:
        raise ConcordError(
            f"tolerance: there are {len(params.tolerance)} for {topology.agents} agents; give one "
            "for all, or one of each"
        )
    if problem is not None:
        _roots(topology.agents, problem.dim, params)
    if params.particles and problem is not None and not isinstance(problem, WithPotential):
        raise ConcordError(
            f"particles: {type(problem).__name__} states no potentials, by which theta would be "
            "accepted; remove particles"
        )


def _tolerances(agents: int, params: Params) -> np.ndarray:
    return np.broadcast_to(np.asarray(params.tolerance, dtype=float), agents)


def _roots(agents: int, dim: int, params: Params) -> np.ndarray:
    """Return A_i of all agents, (agents, dim, dim); a ConcordError if they are none."""
    given = (np.eye(dim).tolist(),) if params.coupling is None else params.coupling
    sizes = {(len(rows), *map(len, rows)) for rows in given}
    roots = np.array(given) if sizes == {(dim,) * (dim + 1)} else np.zeros((1, dim, dim))
    if len(given) not in (1, agents) or not np.linalg.det(roots).all():
        raise ConcordError(
            f"coupling: give one invertible matrix of {dim} rows of {dim} numbers, or one for each "
            f"of {agents} agents"
        )
    return np.broadcast_to(roots, (agents, dim, dim))


def _tied(agents: int, dim: int, params: Params) -> np.ndarray:
    """Return the precisions of the ties, A_i^T A_i / rho_i, (agents, dim, dim)."""
    roots = _roots(agents, dim, params)
    return roots.swapaxes(1, 2) @ roots / _tolerances(agents, params)[:, None, None]


def _average(shares: np.ndarray) -> AgentMatrix:
    """Return the matrix that makes the same weighted sum, for everybody, of all agents' vectors."""
    agents = len(shares)
    rows, columns = np.divmod(np.arange(agents**2), agents)
    return AgentMatrix.from_entries(agents, rows, columns, shares[columns])


def _langevin(problem: Problem, channel: Channel, params: Params, x0: np.ndarray) -> Move:
    """Return ``move(z, x, gamma, rng, out)``, a Langevin step of the copies z, tied to x."""
    gradient = problem.gradient(len(x0))
    ties = 1 / _tolerances(channel.topology.agents, params)[:, None]
    grad, pull, drift = (np.empty_like(x0) for _ in range(3))

    def move(z: np.ndarray, x: np.ndarray, gamma: float, rng: Any, out: np.ndarray) -> None:
        gradient(z, grad)
        np.subtract(z, x, out=pull)
        np.multiply(pull, ties, out=pull)
        np.add(grad, pull, out=drift)
        kick(rng, gamma, drift, out=out, x=z)

    if params.coupling is None:
        return move
    inverse = np.linalg.inv(_roots(channel.topology.agents, problem.dim, params))
    metric = inverse @ inverse.swapaxes(1, 2)
    turned, white, noise = (np.empty_like(x0) for _ in range(3))

    def coupled(z: np.ndarray, x: np.ndarray, gamma: float, rng: Any, out: np.ndarray) -> None:
        gradient(z, grad)
        np.einsum("cad,ade->cae", grad, metric, out=turned)
        np.subtract(z, x, out=pull)
        np.multiply(pull, ties, out=pull)
        np.add(turned, pull, out=drift)
        normal(rng, np.sqrt(2 * gamma), white)
        np.einsum("cad,aed->cae", white, inverse, out=noise)
        kick(rng, gamma, drift, out=out, x=z, noise=noise)

    return coupled


def _server(problem: Problem, channel: Channel, params: Params, x0: np.ndarray) -> Draw:
    """Return ``draw(z, rng, out)``, which writes theta for every agent, given all copies z."""
    rho, noise = _tolerances(channel.topology.agents, params), np.empty_like(x0[:, :1])
    whole = np.sum(1 / rho)
    if params.coupling is None:
        average = channel.mixer(_average(1 / rho / whole))

        def draw(z: np.ndarray, rng: Any, out: np.ndarray) -> None:
            normal(rng, np.sqrt(1 / whole), noise)
            average(z, plus=noise, out=out)

        return draw
    tied = _tied(channel.topology.agents, problem.dim, params)
    precision = tied.sum(axis=0)
    covariance, root = np.linalg.inv(precision), np.linalg.cholesky(precision).T
    add_up = channel.mixer(_average(np.ones_like(rho)))
    white, weighted, total = np.empty_like(noise), np.empty_like(x0), np.empty_like(x0)

    def coupled(z: np.ndarray, rng: Any, out: np.ndarray) -> None:
        normal(rng, 1.0, white)
        np.matmul(white, root, out=noise)
        np.einsum("cad,ade->cae", z, tied, out=weighted)
        add_up(weighted, plus=noise, out=total)
        np.matmul(total, covariance, out=out)

    return coupled


def _odds(problem: Problem, params: Params, x0: np.ndarray, move: Move) -> Odds:
    """Return ``log_odds(s, t, z, gamma, rng)``, the log of K q(s, t) of each chain."""
    agents, particle = x0.shape[1], np.empty_like(x0)
    halves, tied = 0.5 / _tolerances(agents, params), _tied(agents, problem.dim, params) / 2

    def log_odds(s: np.ndarray, t: np.ndarray, z: np.ndarray, gamma: float, rng: Any) -> np.ndarray:
        total = np.full(len(x0), -np.inf)
        for _ in range(params.particles or 0):
            move(z, s, gamma, rng, particle)
            np.subtract(t, particle, out=particle)
            if params.coupling is None:
                square = np.einsum("cad,cad,a->c", particle, particle, halves)
            else:
                square = np.einsum("cad,ade,cae->c", particle, tied, particle)
            np.logaddexp(total, -square, out=total)
        return total

    return log_odds


def init(
    problem: Problem, topology: Topology, params: Params, x0: np.ndarray, rng: np.random.Generator
) -> tuple[State, Step]:
    """Return the state at x0, with copies there, and the step."""
    channel = connect(topology, x0)
    move, draw = _langevin(problem, channel, params, x0), _server(problem, channel, params, x0)
    counted = np.full(x0.shape[1], params.local_steps + 2 * (params.particles or 0))
    info = to_all_neighbors(channel)._replace(gradients=counted)

    def step(state: State, k: int, rng: np.random.Generator) -> tuple[State, Info]:
        gamma, (x, z) = params.step_size(k), state
        for _ in range(params.local_steps):
            move(z, x, gamma, rng, z)
        draw(z, rng, x)
        return State(x, z), info

    if not params.particles:
        return State(x0.copy(), x0.copy()), channel.through(step)
    proposed, log_odds = np.empty_like(x0), _odds(problem, params, x0, move)
    potential: Any = problem.potential  # type: ignore[attr-defined]  # which check has asked for

    def corrected(state: State, k: int, rng: np.random.Generator) -> tuple[State, Info]:
        gamma, (x, z) = params.step_size(k), state
        for _ in range(params.local_steps):
            move(z, x, gamma, rng, z)
        draw(z, rng, proposed)
        odds = (potential(x) - potential(proposed)).sum(axis=1)
        odds += log_odds(proposed, x, z, gamma, rng) - log_odds(x, proposed, z, gamma, rng)
        accepted = np.log(rng.random(len(x0))) < odds
        np.copyto(x, proposed, where=accepted[:, None, None])
        active = np.repeat(accepted[:, None].astype(np.int64), topology.agents, axis=1)
        return State(x, z), asked._replace(active=active)

    asked = Info(2 * info.unicasts, 2 * info.broadcasts, None, counted)
    start = x0.copy()
    start[:] = x0[:, :1]  # one theta, which may stay
    return State(start, start.copy()), channel.through(corrected)


def affine(problem: Quadratic, topology: Topology, params: Params) -> Update | None:
    """Return the law of (x, z): the agents' steps, then theta, whose noise is everybody's.

    None with particles, which make it no affine update.
    """
    if params.particles:
        return None
    agents, dim = problem.agents, problem.dim
    rho, roots = _tolerances(agents, params), _roots(agents, dim, params)
    identity, zero = np.eye(agents * dim), np.zeros((agents * dim, agents * dim))
    metric, tied = np.linalg.inv(roots.swapaxes(1, 2) @ roots), _tied(agents, dim, params)
    pull, theta = np.diag(np.repeat(1 / rho, dim)), np.linalg.inv(tied.sum(axis=0))
    precision = block_diagonal(metric @ problem.gram) + pull
    shift = np.matvec(metric, problem.shift).ravel()
    mean = np.tile(np.concatenate(theta @ tied, axis=1), (agents, 1))
    server = Affine(
        np.block([[zero, mean], [zero, identity]]),
        np.zeros(2 * agents * dim),
        np.block([[np.kron(np.ones((agents, agents)), theta), zero], [zero, zero]]),
    )

    def update(gamma: float) -> Affine:
        own = Affine(
            np.block([[identity, zero], [gamma * pull, identity - gamma * precision]]),
            np.concatenate([0 * shift, gamma * shift]),
            np.block([[zero, zero], [zero, 2 * gamma * block_diagonal(metric)]]),
        )
        return compose(*[own] * params.local_steps, server)

    return by_step(update, params.step_size, Start(0.0, 0.0, identity))
