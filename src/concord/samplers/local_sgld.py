r"""Local SGLD: agents make several steps by themselves, and average then (FALD, VR-FALD).

One iteration is :math:`T` local steps, ``period``, of every agent,

.. math::
    x_i \leftarrow x_i - \gamma_k \, g_i + \sqrt{2 \gamma_k} \Bigl( \sqrt{\tau / N}\, \xi
        + \sqrt{1 - \tau}\, \xi_i \Bigr), \qquad \xi, \xi_i \sim N(0, I), \qquad
    g_i = \tilde\nabla f_i(x_i)

with the share :math:`\tau` of the noise common to all agents, and then, with probability
``communication``, :math:`x_i \leftarrow \sum_j W_{ij} x_j`. With ``renewal`` the gradients are
those of variance reduction,

.. math::
    g_i = \tilde\nabla f_i(x_i) - \tilde\nabla f_i(r_i) + c_i, \qquad
    r_i = \sum_j W_{ij} x_j, \qquad c_i = \sum_j W_{ij} \nabla f_j(r_j)

where both estimates are of the same mini-batch, and r and c are renewed at the start of an
iteration with that probability (of the first one always). Chains communicate and renew
independently of each other; arrays have shape (chains, agents, dim).

Where W = J/N, as on the topologies ``server`` and ``complete``, agents take the mean of all: FALD,
with T local steps or with ``period: 1`` and communication at random; VR-FALD with renewal. Mixing
by the weights of a network is our generalization, local DE-SGLD; there agents' c_i differ, so that
variance reduction leaves some bias. As W is doubly stochastic, the network average moves by the
average of the agents' gradients and noise alone: the c_i less the gradients at r add up to zero.

Source: Deng, Zhang, Ma, Song, Lin, "On Convergence of Federated Averaging Langevin Dynamics", 2021,
arXiv 2112.05120 (abstract read); Plassier, Durmus, Moulines, "Federated Averaging Langevin
Dynamics: Toward a unified theory and new algorithms", AISTATS 2023, of which the authors' code was
read, not the print: it has a period of 1, and uses a renewed reference from the next step on.

Price: an average, which takes a vector to every neighbor, and T gradients (or mini-batches) per
agent and iteration. A renewal is two averages, of positions and of gradients, and a full gradient;
variance reduction of mini-batches takes two of them for each step.
Needs: a connected network, or no edges at all; with renewal or communication at random one on which
everything arrives.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, NamedTuple

import numpy as np
from msgspec import Meta

from concord.contracts import Batched, Info, Problem, Quadratic, Step
from concord.errors import ConcordError
from concord.laws.exact import Affine, Arrivals, Start, Update, compose, linear
from concord.laws.switching import Choices
from concord.networks.channel import Channel, connect
from concord.networks.mixing import Mixer
from concord.networks.topology import Topology
from concord.networks.weights import Weights, weights_of
from concord.options import Count, Options, Share
from concord.samplers._checks import check_mixing
from concord.samplers._parts import pieces
from concord.sampling.gradients import ReplacedSize, differences, estimator
from concord.sampling.kick import kick, normal
from concord.sampling.schedules import Schedule

NAME = "Local SGLD"

Probability = Annotated[float, Meta(gt=0, le=1)]


class Params(Options):
    """Options of local SGLD."""

    step_size: Annotated[Schedule, "step size gamma_k of the local steps of iteration k"]
    period: Annotated[Count, "local steps T of an iteration"] = 1
    communication: Annotated[Probability, "probability p_c that agents average after them"] = 1.0
    common_noise: Annotated[Share, "share tau of the noise that all agents have in common"] = 0.0
    renewal: Annotated[
        Probability | None,
        "variance reduction, with the probability q that references are renewed in an iteration; "
        "none: plain gradients",
    ] = None
    batch_size: ReplacedSize = None
    weights: Weights = "metropolis"


class State(NamedTuple):
    """Positions x, references r and their gradients, (chains, agents, dim); else empty.

    ``control`` is c; with full gradients c less the agents' own gradients at r, which itself is not
    kept.
    """

    x: np.ndarray
    reference: np.ndarray
    control: np.ndarray


Gradients = Callable[[State, np.random.Generator, np.ndarray], np.ndarray]


def check(problem: Problem | None, topology: Topology, params: Params) -> None:
    """Refuse a network in parts, unless it is meant, and losses of what is sent now and then."""
    check_mixing(topology, params.weights)
    if not topology.conditions.perfect:
        if params.renewal is not None:
            raise ConcordError(
                f"renewal: {params.renewal} sends references and gradients besides x, of which "
                "network does not say what arrives; remove it, or remove network"
            )
        if params.communication < 1:
            raise ConcordError(
                f"communication: {params.communication} sends nothing in some iterations, of which "
                "network does not say what arrives; use 1.0, or remove network"
            )


def init(
    problem: Problem, topology: Topology, params: Params, x0: np.ndarray, rng: np.random.Generator
) -> tuple[State, Step]:
    """Return the state at x0 and the step."""
    tau, reduced, shared = params.common_noise, params.renewal is not None, params.common_noise > 0
    chains, _, dim = x0.shape
    channel = connect(topology, x0)
    mix = channel.mixer(weights_of(topology, params.weights))
    gradient = _gradients(problem, params, chains)
    renew = _renewing(problem, params, mix, x0) if reduced else None
    told = _telling(problem, params, channel)
    grad, noise, spare = np.empty_like(x0), np.empty_like(x0), np.empty_like(x0)
    together = np.empty((chains, 1, dim), x0.dtype)
    none, all_chains = np.zeros(chains, dtype=bool), np.ones(chains, dtype=bool)

    def step(state: State, k: int, rng: np.random.Generator) -> tuple[State, Info]:
        nonlocal spare
        gamma, x, new = params.step_size(k), state.x, spare
        renewed = none if renew is None else renew(state, k, rng)
        for _ in range(params.period):
            gradient(state, rng, grad)
            if shared:
                normal(rng, np.sqrt(2 * gamma * (1 - tau)), noise)
                sd = np.sqrt(2 * gamma * tau / topology.agents)
                np.add(noise, normal(rng, sd, together), out=noise)
            kick(rng, gamma, grad, out=x, x=x, noise=noise if shared else None)
        mix(x, plus=None, out=new)
        averaging = all_chains
        if params.communication < 1:
            averaging = np.less(rng.random(chains), params.communication)
            np.copyto(new, x, where=~averaging[:, None, None])
        spare = x
        return State(new, state.reference, state.control), told(renewed, averaging)

    reference = np.zeros_like(x0) if reduced and params.batch_size is not None else np.empty(0)
    control = np.zeros_like(x0) if reduced else np.empty(0)
    return State(x0.copy(), reference, control), channel.through(step)


def _gradients(problem: Problem, params: Params, chains: int) -> Gradients:
    """Return ``gradient(state, rng, out)``, which writes g: plain, or with variance reduction."""
    size = params.batch_size
    if params.renewal is None:
        plain = estimator(problem, size, chains)
        return lambda state, rng, out: plain(state.x, rng, out)
    if size is None:
        full = problem.gradient(chains)
    else:
        differ = differences(problem, size, chains)

    def reduced(state: State, rng: np.random.Generator, out: np.ndarray) -> np.ndarray:
        if size is None:
            full(state.x, out)
        else:
            differ(state.x, state.reference, rng, out)
        return np.add(out, state.control, out=out)

    return reduced


def _renewing(
    problem: Problem, params: Params, mix: Mixer, x0: np.ndarray
) -> Callable[[State, int, np.random.Generator], np.ndarray]:
    """Return ``renew(state, k, rng)``: some chains take new references, and average gradients.

    It returns which, (chains,).
    """
    full, probability = problem.gradient(len(x0)), params.renewal or 0.0
    reference, own, control = np.empty_like(x0), np.empty_like(x0), np.empty_like(x0)

    def renew(state: State, k: int, rng: np.random.Generator) -> np.ndarray:
        if k == 0 or probability >= 1:
            renewed = np.ones(len(x0), dtype=bool)
        else:
            renewed = rng.random(len(x0)) < probability
        if not renewed.any():
            return renewed
        where = renewed[:, None, None]
        mix(state.x, plus=None, out=reference)
        full(reference, own)
        mix(own, plus=None, out=control)
        if params.batch_size is None:
            np.subtract(control, own, out=control)
        else:
            np.copyto(state.reference, reference, where=where)
        np.copyto(state.control, control, where=where)
        return renewed

    return renew


def _telling(
    problem: Problem, params: Params, channel: Channel
) -> Callable[[np.ndarray, np.ndarray], Info]:
    """Return ``told(renewed, averaging)``: what a step costs chains that do so, (chains,)."""
    agents, period, size = problem.agents, params.period, params.batch_size
    if params.communication >= 1 and params.renewal is None:
        active = channel.active
        each = np.full(agents, period) if active is None else np.empty(active.shape, dtype=np.int64)
        plain = Info(channel.unicasts, channel.broadcasts, active, each)

        def of_awake(renewed: np.ndarray, averaging: np.ndarray) -> Info:
            if active is not None:
                np.multiply(active, period, out=each)
            return plain

        return of_awake
    taken = period  # in gradients or mini-batches
    renewing = np.ones(agents, dtype=np.int64)
    if size is not None and params.renewal is not None and isinstance(problem, Batched):
        taken, renewing = 2 * period, -(-problem.counts // size)
    counts = np.zeros((3, channel.chains, agents), dtype=np.int64)
    info, averages = Info(counts[0], counts[1], None, counts[2]), np.empty((channel.chains, 1), int)

    def of_chains(renewed: np.ndarray, averaging: np.ndarray) -> Info:
        np.add(2 * renewed, averaging, out=averages[:, 0])
        np.multiply(averages, channel.unicasts, out=info.unicasts)
        np.multiply(averages, channel.broadcasts, out=info.broadcasts)
        np.multiply(renewed[:, None], renewing, out=counts[2])
        counts[2] += taken
        return info

    return of_chains


def _stages(
    problem: Quadratic, topology: Topology, params: Params
) -> Callable[[float], tuple[Affine, Affine, Affine]]:
    """Return, by step size, a renewal, a local step and an average, of (x, control) or x alone."""
    agents, reduced = problem.agents, params.renewal is not None
    gram, shift, weights, _, identity, zero = pieces(problem, topology, params)
    kept = len(shift) * (1 + reduced)
    shares = np.kron(np.full((agents, agents), params.common_noise / agents), np.eye(problem.dim))
    shares += (1 - params.common_noise) * identity

    def stage(matrix: list[list[np.ndarray]], offset: np.ndarray, noise: np.ndarray) -> Affine:
        whole = np.block([[noise, zero], [zero, zero]])
        return Affine(np.block(matrix)[:kept, :kept], offset[:kept], whole[:kept, :kept])

    apart, rest = weights - identity, np.zeros_like(shift)
    renewal = stage(
        [[identity, zero], [apart @ gram @ weights, zero]],
        np.concatenate([rest, -apart @ shift]),
        zero,
    )
    average = linear(np.block([[weights, zero], [zero, identity]])[:kept, :kept])

    @lru_cache(maxsize=1)
    def at(gamma: float) -> tuple[Affine, Affine, Affine]:
        local = stage(
            [[identity - gamma * gram, -gamma * identity], [zero, identity]],
            np.concatenate([gamma * shift, rest]),
            2 * gamma * shares,
        )
        return renewal, local, average

    return at


def affine(problem: Quadratic, topology: Topology, params: Params) -> Update | None:
    """Return the law of x, and of ``control`` with variance reduction: stage after stage.

    None where something is drawn besides noise: when to communicate or renew (``choices``), or
    mini-batches at more than one step.
    """
    reduced = params.renewal is not None
    if params.communication < 1 or (params.renewal or 1) < 1:
        return None
    if params.batch_size is not None and (params.period > 1 or reduced):
        return None
    stages = _stages(problem, topology, params)

    heard = pieces(problem, topology, params).heard

    @lru_cache(maxsize=1)
    def parts(gamma: float) -> tuple[Affine, Arrivals]:
        renewal, local, average = stages(gamma)
        before = compose(*[renewal] * reduced, *[local] * params.period)
        whole, gain = compose(before, average), None
        if params.period == 1 and not reduced:
            gain = -gamma * average.matrix
        step = Affine(whole.matrix, whole.offset, whole.noise, gain)
        return step, Arrivals(heard, stages=(before, average.matrix))

    return Update(
        lambda k: parts(params.step_size(k))[0],
        (Start(0.0, 0.0),) * reduced,
        lambda k: parts(params.step_size(k))[1],
    )


def choices(
    problem: Quadratic, topology: Topology, params: Params
) -> Callable[[int], Choices] | None:
    """Return the updates that iteration k chooses from: whether agents renew, and communicate.

    None where nothing is chosen (``affine``), and for mini-batches.
    """
    chance, renewing = params.communication, params.renewal or 1.0
    if (chance == 1 and renewing == 1) or params.batch_size is not None:
        return None
    stages, reduced = _stages(problem, topology, params), params.renewal is not None

    def at(k: int) -> Choices:
        renewal, local, average = stages(params.step_size(k))
        renewed = 1.0 if k == 0 else renewing
        found = [
            (p * q, compose(*[renewal] * (new and reduced), *[local] * params.period, *mixed))
            for p, mixed in ((chance, [average]), (1 - chance, []))
            for q, new in ((renewed, True), (1 - renewed, False))
        ]
        return Choices(
            np.array([p for p, _ in found]),
            np.array([u.matrix for _, u in found]),
            np.array([u.offset for _, u in found]),
            np.array([u.noise for _, u in found]),
        )

    return at
