r"""Consensus Monte Carlo: every agent samples by itself, and the draws are averaged in the end.

.. math::
    x_i^{(k+1)} &= x_i^{(k)} - \eta_k \nabla f_i(x_i^{(k)}) + \sqrt{2 \eta_k}\, w_i^{(k+1)},
        \qquad w_i \sim N(0, I) \\
    \theta^{(k)} &= \Bigl( \sum_i \Lambda_i \Bigr)^{-1} \sum_i \Lambda_i x_i^{(k)},
        \qquad \Lambda_i = \bigl( \text{sample covariance of } x_i^{(1)}, \dots, x_i^{(k)}
        \bigr)^{-1}

Of agent i this is Langevin for exp(-f_i), the likelihood of its data times the prior to the power
1/N (``prior_share: split``). Where the f_i are quadratic and the draws exact (without
``step_size``), theta is exact but for the error of the covariances, of order 1/k; elsewhere the
average of draws is an approximation. ``combine: gaussian`` draws theta from the product of the
Gaussians that have the agents' sample moments,

.. math::
    \theta \sim N \Bigl( \bigl( \sum_i \Lambda_i \bigr)^{-1} \sum_i \Lambda_i m_i,
        \bigl( \sum_i \Lambda_i \bigr)^{-1} \Bigr).

Theta is what is read (``read``), the same for all agents: what a network that stops at iteration k
would answer. The x_i are of no use by themselves, and are not recorded. Before there are more draws
than dimensions theta is the plain average.

Source: Scott, Blocker, Bonassi, Chipman, George and McCulloch, "Bayes and big data: the consensus
Monte Carlo algorithm" (2016); the product of Gaussians is the parametric estimator of Neiswanger,
Wang and Xing, "Asymptotically exact, embarrassingly parallel MCMC" (2013, arXiv:1311.4780). Both
are well known, and were not at hand; that covariances are those of the draws so far is our form.
Arrays have shape (chains, agents, dim).

Price: a gradient of every agent per step (an exact draw counts as one), and a vector of every
agent: draws are sent once, all together in the end. The Lambda_i are sent with them and not
counted.
Needs: a server, or a single agent; potentials that are densities by themselves.
"""

from typing import Annotated, Literal, NamedTuple

import numpy as np

from concord.contracts import Info, Problem, Quadratic, Step
from concord.errors import ConcordError
from concord.networks.channel import connect
from concord.networks.topology import Topology
from concord.options import Index, Options
from concord.samplers._checks import check_server, first_flat
from concord.sampling.kick import kick
from concord.sampling.schedules import Schedule

NAME = "Consensus Monte Carlo"

# The largest dimension whose covariances are kept, of every chain and agent.
LARGEST = 1000


class Params(Options):
    """Options of consensus Monte Carlo."""

    step_size: Annotated[
        Schedule | None,
        "step size eta_k of the agents; none: they draw exp(-f_i) exactly, if it is Gaussian",
    ] = None
    combine: Annotated[
        Literal["draws", "gaussian"],
        "average the agents' draws by their inverse covariances, or draw from the product of "
        "Gaussians with their moments",
    ] = "draws"
    burn_in: Annotated[Index, "iterations that do not enter the moments"] = 0


class State(NamedTuple):
    """Draws x and their running mean, (chains, agents, dim), and what theta is made of besides.

    squares: sums of squared deviations, (chains, agents, dim, dim). draws: their number, (1,).
    z: theta's own noise, (chains, dim), if it has one.
    """

    x: np.ndarray
    mean: np.ndarray
    squares: np.ndarray
    draws: np.ndarray
    z: np.ndarray


def check(problem: Problem | None, topology: Topology, params: Params) -> None:
    """Refuse a network without a server, and agents without a density of their own."""
    check_server(topology, "consensus_mc")
    if problem is None:
        return
    if problem.dim > LARGEST:
        raise ConcordError(
            f"sampler consensus_mc keeps covariances of {problem.dim} dimensions for every agent; "
            f"use at most {LARGEST}"
        )
    if isinstance(problem, Quadratic):
        if (flat := first_flat(problem.gram)) is not None:
            raise ConcordError(
                f"agent {flat} has too few points or no prior, so that exp(-f_{flat}) is no "
                "density that it could sample; give it a share of the prior"
            )
    elif params.step_size is None:
        raise ConcordError(
            f"step_size: it is missing, and {type(problem).__name__} has no exact draws, which "
            "quadratic problems have; give one"
        )


def init(
    problem: Problem, topology: Topology, params: Params, x0: np.ndarray, rng: np.random.Generator
) -> tuple[State, Step]:
    """Return the state at x0, with moments of no draws, and the step."""
    channel, (chains, agents, dim) = connect(topology, x0), x0.shape
    sent = np.minimum(channel.broadcasts, 1)
    info = Info(sent, sent)
    apart, share = np.empty_like(x0), np.empty_like(x0)
    outer = np.empty((chains, agents, dim, dim), x0.dtype)
    schedule = params.step_size
    if schedule is None:
        assert isinstance(problem, Quadratic)  # see check
        noise = np.empty_like(x0)
        roots = np.linalg.cholesky(np.linalg.inv(problem.gram)).swapaxes(1, 2)
        centers = np.linalg.solve(problem.gram, problem.shift[..., None])[..., 0]
    else:
        gradient, grad = problem.gradient(chains), np.empty_like(x0)

    def step(state: State, k: int, rng: np.random.Generator) -> tuple[State, Info]:
        x, mean, squares, draws, z = state
        if schedule is None:
            rng.standard_normal(out=noise, dtype=noise.dtype)
            np.matmul(noise.swapaxes(0, 1), roots, out=x.swapaxes(0, 1))
            np.add(x, centers, out=x)
        else:
            gradient(x, grad)
            kick(rng, schedule(k), grad, out=x, x=x)
        if k >= params.burn_in:
            draws += 1
            np.subtract(x, mean, out=apart)
            np.divide(apart, draws[0], out=share)
            np.add(mean, share, out=mean)
            np.multiply(apart[..., None], apart[..., None, :], out=outer)
            np.multiply(outer, 1 - 1 / draws[0], out=outer)
            np.add(squares, outer, out=squares)
        if params.combine == "gaussian":
            rng.standard_normal(out=z, dtype=z.dtype)
        return State(x, mean, squares, draws, z), info

    z0 = np.zeros((chains, dim) if params.combine == "gaussian" else 0, x0.dtype)
    start = State(x0.copy(), np.zeros_like(x0), np.zeros_like(outer), np.zeros(1), z0)
    return start, channel.through(step)


def read(state: State, params: Params) -> np.ndarray:
    """Return theta for every agent; not a number where a chain has diverged."""
    x, mean, squares, draws, z = state
    if draws[0] <= x.shape[2]:
        return np.broadcast_to(x.mean(axis=1, keepdims=True), x.shape)
    theta = np.full((len(x), x.shape[2]), np.nan)
    sound = np.isfinite(squares).all(axis=(1, 2, 3)) & np.isfinite(x).all(axis=(1, 2))
    weights = np.linalg.pinv(squares[sound] / (draws[0] - 1), hermitian=True)
    cov = np.linalg.inv(weights.sum(axis=1))
    centers = (x if params.combine == "draws" else mean)[sound]
    theta[sound] = np.einsum("cij,cajk,cak->ci", cov, weights, centers)
    if params.combine == "gaussian":
        theta[sound] += np.einsum("cij,cj->ci", np.linalg.cholesky(cov), z[sound])
    return np.broadcast_to(theta[:, None], x.shape)
