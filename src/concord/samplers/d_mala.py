r"""D-MALA: Langevin steps along tracked gradients, which each agent accepts or not.

.. math::
    \hat g_i^{(k)} &= \sum_j W_{ij} \bigl( \hat g_j^{(k-1)} + g_j^{(k)} - g_j^{(k-1)} \bigr),
        \qquad g_j^{(k)} = -\nabla f_j(x_j^{(k)}), \qquad \hat g^{(-1)} = g^{(-1)} = 0 \\
    x_i' &= x_i^{(k)} + \epsilon z_i + c\, \epsilon^2 \hat g_i^{(k)}, \qquad z_i \sim N(0, I) \\
    x_i^{(k+1)} &= \sum_j W_{ij} \tilde x_j, \qquad
        \tilde x_j = x_j' \text{ with probability } \min(1, e^{a_j}), \text{ else } x_j^{(k)}

with c = 1 (``drift: whole``) or 1/2 (``half``). Tracked like the gradients are the average
aleph_i of all agents' z_j^T H_j z_j, or v_i of all H_j (x_j' - x_j), with H_j the Hessian of f_j
at x_j, and ``correction`` is one of

``none``
    every move is accepted;
``released``
    :math:`a_i = -\tfrac12 \epsilon^2 (\aleph_i + \lVert \hat g_i \rVert^2)`, with the whole drift;
``energy``
    :math:`a_i = -\tfrac12 \epsilon^2 (\aleph_i - \lVert \hat g_i \rVert^2)`, less the change of the
    energy :math:`U(x) + \lVert z \rVert^2 / 2`, to second order, in the move with the whole drift;
``mala``
    :math:`a_i = \tfrac18 \epsilon^2 (2 \hat g_i^\top v_i - \lVert v_i \rVert^2)`, with half the
    drift: for one agent and quadratic f the acceptance of MALA, so that the posterior is sampled
    exactly, whatever epsilon.

The noise of a step has the variance epsilon^2, and so half the drift is that of Langevin for the
posterior: with the whole drift the posterior's square is sampled as epsilon gets small, variances
half as large, whether moves are corrected or not, since rejections vanish with epsilon and depend
on z^2 alone (derived here). With several agents no correction is exact: each accepts by itself.

Source: Kungurtsev, Cobb, Javidi and Jalaian, "Decentralized Bayesian learning with
Metropolis-adjusted Hamiltonian Monte Carlo" (2021, arXiv:2107.07211), from its authors' released
code, which is ``drift: whole, correction: released``; the print was not at hand, and whether it has
the sign of ``energy`` we do not know. There several rounds of averaging may follow a step; ``half``
and ``mala`` are ours. Arrays have shape (chains, agents, dim).

Price: a gradient of every agent, and with a correction a product with its Hessian (two gradients);
x and the gradients to every neighbor, with ``mala`` a third vector, with the others a number.
Needs: a connected network, or no edges at all, on which everything arrives; for corrections
Hessians of the potentials.
"""

from collections.abc import Callable
from typing import Annotated, Literal, NamedTuple

import numpy as np

from concord.contracts import Info, Problem, Quadratic, Step, WithHessians
from concord.errors import ConcordError
from concord.laws.exact import Affine, Start, Update
from concord.networks.channel import connect
from concord.networks.mixing import Mixer
from concord.networks.topology import Topology
from concord.networks.weights import Weights, weights_of
from concord.options import Options
from concord.samplers._checks import check_mixing, check_perfect
from concord.samplers._parts import by_step, pieces
from concord.sampling.kick import kick
from concord.sampling.schedules import Schedule

NAME = "D-MALA"
UNITS = {"step_size": 1}

SHARES = {"whole": 1.0, "half": 0.5}


class Params(Options):
    """Options of D-MALA."""

    step_size: Annotated[Schedule, "epsilon_k, the standard deviation of a step's noise"]
    drift: Annotated[
        Literal["half", "whole"],
        "weight of the gradients over epsilon^2: 1/2, as in Langevin steps, or 1, as released code",
    ]
    correction: Annotated[
        Literal["none", "mala", "energy", "released"],
        "which moves are accepted: all; as by MALA (drift: half); by the change of the energy, or "
        "with the sign of released code (drift: whole)",
    ]
    weights: Weights = "metropolis"


class State(NamedTuple):
    """Positions x, and tracked quantities less an agent's own, (chains, agents, dim).

    rest: of the gradients. remainder: of what the correction tracks, empty without one.
    """

    x: np.ndarray
    rest: np.ndarray
    remainder: np.ndarray


def check(problem: Problem | None, topology: Topology, params: Params) -> None:
    """Refuse corrections of another move, and a network on which what is tracked gets lost."""
    check_mixing(topology, params.weights)
    fits = {"none": params.drift, "mala": "half"}.get(params.correction, "whole")
    if params.drift != fits:
        raise ConcordError(
            f"correction: {params.correction} is of moves with drift: {fits}, not {params.drift}; "
            f"use drift: {fits}, or correction: none"
        )
    check_perfect(
        topology,
        "d_mala sends positions, gradients and curvatures, of which network does not say what "
        "arrives",
    )
    if problem is not None and params.correction != "none":
        _curved(problem)


def _curved(problem: Problem) -> WithHessians:
    if not isinstance(problem, WithHessians):
        raise ConcordError(
            f"sampler d_mala corrects by Hessians of the potentials, which "
            f"{type(problem).__name__} has not; use correction: none"
        )
    problem.hessian_product(1)  # refuses a problem whose options have none
    return problem


def init(
    problem: Problem, topology: Topology, params: Params, x0: np.ndarray, rng: np.random.Generator
) -> tuple[State, Step]:
    """Return the state at x0, with nothing tracked yet, and the step."""
    chains, agents, dim = x0.shape
    gradient, vectors = problem.gradient(chains), 3 if params.correction == "mala" else 2
    channel = connect(topology, x0, vectors=vectors)
    mix = channel.mixer(weights_of(topology, params.weights))
    grad, tracked, drift, z, move, moved = (np.empty_like(x0) for _ in range(6))
    accept = _acceptance(problem, params, mix, z, move, tracked)
    uniform, rejected = np.empty((chains, agents)), np.empty((chains, agents), dtype=bool)
    paid, share = np.full(agents, 1 if accept is None else 3), SHARES[params.drift]
    # Curvatures that are tracked are one number, which takes one over dim of a vector.
    more = 1 + 1 / (2 * dim) if params.correction in ("energy", "released") else 1
    info = Info(channel.unicasts * more, channel.broadcasts * more, None, paid)

    def step(state: State, k: int, rng: np.random.Generator) -> tuple[State, Info]:
        epsilon, (x, rest, remainder) = params.step_size(k), state
        gradient(x, grad)  # -g
        np.subtract(rest, grad, out=rest)
        mix(rest, plus=None, out=tracked)
        np.add(tracked, grad, out=rest)
        rng.standard_normal(out=z, dtype=z.dtype)
        np.multiply(z, epsilon, out=move)
        kick(rng, -share * epsilon**2, tracked, out=move, noise=move, drift=drift)
        if accept is not None:
            probability = accept(x, remainder, epsilon)
            rng.random(out=uniform)
            np.greater_equal(uniform, probability, out=rejected)
            np.copyto(move, 0.0, where=rejected[..., None])
        np.add(x, move, out=moved)
        mix(moved, plus=None, out=x)
        return State(x, rest, remainder), info

    nothing = np.empty(0) if accept is None else np.zeros_like(x0)
    return State(x0.copy(), np.zeros_like(x0), nothing), channel.through(step)


def _track(mix: Mixer, own: np.ndarray, rest: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Write the tracked average W (rest + own) of what agents have; the new rest is without it."""
    np.add(rest, own, out=rest)
    mix(rest, plus=None, out=out)
    np.subtract(out, own, out=rest)
    return out


def _acceptance(
    problem: Problem,
    params: Params,
    mix: Mixer,
    z: np.ndarray,
    move: np.ndarray,
    tracked: np.ndarray,
) -> Callable[[np.ndarray, np.ndarray, float], np.ndarray] | None:
    """Return ``accept(x, remainder, epsilon)``: the probabilities min(1, e^a), (chains, agents).

    They are of what z, move and tracked hold then. None where every move is accepted.
    """
    if params.correction == "none":
        return None
    product = _curved(problem).hessian_product(len(z))
    own, average, apart, a = *(np.empty_like(z) for _ in range(3)), np.empty(z.shape[:2])
    sign = 1.0 if params.correction == "energy" else -1.0

    def by_curvature(x: np.ndarray, rest: np.ndarray, epsilon: float) -> np.ndarray:
        product(x, move, own)
        v = _track(mix, own, rest, average)
        np.multiply(tracked, 2.0, out=apart)
        np.subtract(apart, v, out=apart)
        np.einsum("cad,cad->ca", apart, v, out=a)
        np.multiply(a, epsilon**2 / 8, out=a)
        return np.exp(np.minimum(a, 0.0, out=a), out=a)

    def by_energy(x: np.ndarray, rest: np.ndarray, epsilon: float) -> np.ndarray:
        product(x, z, own)
        np.einsum("cad,cad->ca", z, own, out=a)
        np.copyto(own, a[..., None])
        aleph = _track(mix, own, rest, average)[..., 0]
        np.einsum("cad,cad->ca", tracked, tracked, out=a)
        np.multiply(a, sign, out=a)
        np.subtract(a, aleph, out=a)
        np.multiply(a, epsilon**2 / 2, out=a)
        return np.exp(np.minimum(a, 0.0, out=a), out=a)

    return by_curvature if params.correction == "mala" else by_energy


def affine(problem: Quadratic, topology: Topology, params: Params) -> Update | None:
    """Return the law of (x, rest) where every move is accepted; None elsewhere."""
    if params.correction != "none":
        return None
    gram, shift, mix, _, identity, zero = pieces(problem, topology, params)
    share, apart = SHARES[params.drift], identity - mix

    def update(epsilon: float) -> Affine:
        drift = share * epsilon**2 * mix @ mix
        noise = epsilon**2 * mix @ mix.T
        return Affine(
            np.block([[mix - drift @ gram, drift], [apart @ gram, mix]]),
            np.concatenate([drift @ shift, -apart @ shift]),
            np.block([[noise, zero], [zero, zero]]),
            np.concatenate([-drift @ identity, apart]),
        )

    return by_step(update, params.step_size, Start(0.0, 0.0))
