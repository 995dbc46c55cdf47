r"""FSGLD: a server's Langevin steps along one agent's gradient, corrected by surrogates; and DSGLD.

Every step agent s is drawn with probability p_s, and moves theta n times by

.. math::
    \theta \leftarrow \theta - \gamma_k \Bigl( \frac{1}{p_s} \nabla f_s(\theta)
        + \sum_i \Lambda_i (\theta - m_i) - \frac{1}{p_s} \Lambda_s (\theta - m_s) \Bigr)
        + \sqrt{2 \gamma_k}\, w, \qquad w \sim N(0, I)

where N(m_i, Lambda_i^{-1}) is a surrogate of agent i's exp(-f_i), which all agents know. Over s the
drift is that of the posterior, whatever the surrogates (with n = 1); the better they are, the less
it varies: with those of quadratic potentials not at all. ``surrogates: laplace``, FSGLD, takes the
mode of f_i and its Hessian there; ``surrogates: none``, DSGLD, has Lambda_i = 0.

Source: el Mekkaoui, Mesquita, Blomstedt and Kaski, "Federated stochastic gradient Langevin
dynamics" (2021, arXiv:2004.11231); DSGLD is Ahn, Shahbaba and Welling, "Distributed stochastic
gradient MCMC" (2014). Both are well known, and were not at hand; that surrogates are Laplace's
approximations is our choice, and gradients are those of all of an agent's data. Theta is the same
for all agents, and starts where agent 0 does; arrays have shape (chains, agents, dim).

Price: n gradients of one agent, to whom theta is sent and who sends it back, per step. What
surrogates cost to find, once, is not counted.
Needs: a server, or a single agent; for surrogates proximal steps and Hessians of the potentials.
"""

from collections.abc import Callable
from typing import Annotated, Literal

import numpy as np

from concord.contracts import Info, Problem, Proximal, Quadratic, Step, WithHessians
from concord.errors import ConcordError
from concord.laws.exact import Affine, compose
from concord.laws.switching import Choices
from concord.networks.channel import connect
from concord.networks.topology import Topology
from concord.options import Count, Options, Share, Some
from concord.samplers._checks import check_server, first_flat
from concord.samplers._parts import State
from concord.sampling.gradients import gradient_at
from concord.sampling.kick import kick
from concord.sampling.schedules import Schedule

NAME = "FSGLD"


class Params(Options):
    """Options of FSGLD and DSGLD."""

    step_size: Annotated[Schedule, "step size gamma_k"]
    surrogates: Annotated[
        Literal["none", "laplace"],
        "normal approximations of exp(-f_i): none (DSGLD), or at the modes (FSGLD)",
    ] = "none"
    probabilities: Annotated[
        Some[Share] | None, "chance p_s of each agent to be drawn; none: all equal"
    ] = None
    local_steps: Annotated[Count, "steps n that an agent takes before theta goes back"] = 1


def check(problem: Problem | None, topology: Topology, params: Params) -> None:
    """Refuse a network without a server, chances that are none, and problems without surrogates."""
    check_server(topology, "fsgld")
    chances = params.probabilities
    if chances is not None:
        if len(chances) != topology.agents:
            raise ConcordError(
                f"probabilities: there are {len(chances)} for {topology.agents} agents; give one "
                "of each"
            )
        if abs(sum(chances) - 1) > 1e-9 or min(chances) <= 0:
            raise ConcordError(
                f"probabilities: they add up to {sum(chances):g}, and the least is "
                f"{min(chances):g}; give positive ones that add up to 1"
            )
    if problem is not None and params.surrogates == "laplace":
        _surrogates(problem)


def _surrogates(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Return Lambda_i, (agents, dim, dim), and Lambda_i m_i, (agents, dim)."""
    if not isinstance(problem, Proximal) or not isinstance(problem, WithHessians):
        raise ConcordError(
            f"surrogates: laplace needs modes and Hessians of the potentials, which "
            f"{type(problem).__name__} has not; use none"
        )
    agents, dim = problem.agents, problem.dim
    zero, modes = np.zeros((1, agents, dim)), np.zeros((1, agents, dim))
    problem.prox(1, np.zeros(agents))(slice(None), zero.copy(), zero, modes)
    units = np.broadcast_to(np.eye(dim)[:, None], (dim, agents, dim)).copy()
    at, columns = np.broadcast_to(modes, units.shape).copy(), np.empty_like(units)
    problem.hessian_product(dim)(at, units, columns)
    precisions = columns.transpose(1, 2, 0)
    if (flat := first_flat(precisions)) is not None:
        raise ConcordError(
            f"surrogates: that of agent {flat} is not positive definite, for want of points or "
            "of a prior; give it a share of the prior, or use none"
        )
    return precisions, np.einsum("aij,aj->ai", precisions, modes[0])


def _chances(agents: int, params: Params) -> np.ndarray:
    return np.array(params.probabilities or [1 / agents] * agents)


def init(
    problem: Problem, topology: Topology, params: Params, x0: np.ndarray, rng: np.random.Generator
) -> tuple[State, Step]:
    """Return the state at x0 and the step."""
    chains, agents, dim = x0.shape
    gradient, channel = gradient_at(problem, chains, 1), connect(topology, x0)
    chances, corrected = _chances(agents, params), params.surrogates == "laplace"
    bounds, chain = np.cumsum(chances)[:-1], np.arange(chains)
    weights = (1 / chances)[:, None]
    grad = np.empty((chains, 1, dim))
    uniform, beyond = np.empty(chains), np.empty((chains, agents - 1), dtype=bool)
    drawn, scale = np.empty((chains, 1), dtype=np.intp), np.empty((chains, 1, 1))
    sent, taken = (np.zeros((chains, agents), dtype=np.int64) for _ in range(2))
    info = Info(sent, sent, gradients=taken)
    if corrected:
        precisions, shifts = _surrogates(problem)
        excess = precisions.sum(axis=0) - weights[..., None] * precisions
        beside = shifts.sum(axis=0) - weights * shifts
        matrix, offset = np.empty((chains, dim, dim)), np.empty((chains, 1, dim))
        pull = np.empty((chains, 1, dim))

    def step(state: State, k: int, rng: np.random.Generator) -> tuple[State, Info]:
        gamma, x = params.step_size(k), state.x
        rng.random(out=uniform)
        np.greater_equal(uniform[:, None], bounds, out=beyond)
        np.sum(beyond, axis=1, keepdims=True, out=drawn)
        theta = x[:, :1]
        weights.take(drawn, 0, scale, "clip")
        if corrected:
            excess.take(drawn[:, 0], 0, matrix, "clip")
            beside.take(drawn, 0, offset, "clip")
        for _ in range(params.local_steps):
            gradient(theta, drawn, grad)
            np.multiply(grad, scale, out=grad)
            if corrected:
                np.matmul(theta, matrix, out=pull)
                np.subtract(pull, offset, out=pull)
                np.add(grad, pull, out=grad)
            kick(rng, gamma, grad, out=theta, x=theta)
        np.copyto(x, theta)
        sent.fill(0)
        sent[chain, drawn[:, 0]] = 2 if agents > 1 else 0
        taken.fill(0)
        taken[chain, drawn[:, 0]] = params.local_steps
        return State(x), info

    return State(x0.copy()), channel.through(step)


def choices(
    problem: Quadratic, topology: Topology, params: Params
) -> Callable[[int], Choices] | None:
    """Return the updates that step k chooses from: one per agent."""
    agents, dim = problem.agents, problem.dim
    chances = _chances(agents, params)
    gram = problem.gram / chances[:, None, None]
    shift = problem.shift / chances[:, None]
    if params.surrogates == "laplace":
        precisions, shifts = _surrogates(problem)  # type: ignore[arg-type]
        gram = gram + precisions.sum(axis=0) - precisions / chances[:, None, None]
        shift = shift + shifts.sum(axis=0) - shifts / chances[:, None]
    first, everybody = np.eye(agents)[:1], np.ones((agents, 1))

    def at(k: int) -> Choices:
        gamma, found = params.step_size(k), []
        for own, aim in zip(gram, shift, strict=True):
            once = Affine(np.eye(dim) - gamma * own, gamma * aim, 2 * gamma * np.eye(dim))
            found.append(compose(*[once] * params.local_steps))
        return Choices(
            chances,
            np.array([np.kron(everybody @ first, one.matrix) for one in found]),
            np.array([np.tile(one.offset, agents) for one in found]),
            np.array([np.kron(everybody @ everybody.T, one.noise) for one in found]),
        )

    return at
