"""What plain steps and their laws are made of."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import asdict

from concord.contracts import Info, Problem, Quadratic
from concord.laws.exact import Affine, Arrivals, Start, Update, block_diagonal
from concord.networks.channel import Channel
from concord.networks.topology import Topology
from concord.networks.weights import weights_of
from concord.samplers import Biased
from concord.sampling.gradients import Estimator, estimator, expected
from concord.sampling.schedules import Schedule


class State(NamedTuple):
    """Positions x, (chains, agents, dim): the state of a sampler that keeps nothing else."""

    x: np.ndarray


def gradients(problem: Problem, params: Any, x0: np.ndarray) -> Estimator:
    """Return the estimator of the options' mini-batches, in their order, for arrays like x0."""
    names = {"order": "batch_order", "scale": "batch_scale", "pool": "batch_pool"}
    given = asdict(params)
    how = {key: given[name] for key, name in names.items() if name in given}
    return estimator(problem, params.batch_size, len(x0), **how)


def to_all_neighbors(channel: Channel) -> Info:
    """Return the diagnostics of a step in which every agent sends one vector to each neighbor."""
    return Info(channel.unicasts, channel.broadcasts, channel.active)


class Pieces(NamedTuple):
    """What affine updates are made of, (S, S) and (S,) with S = agents * dim.

    The gradient gram x - shift that mini-batches have on average, W, what W makes of vectors that
    arrive, (S, edges * dim), one and zero.
    """

    gram: np.ndarray
    shift: np.ndarray
    mix: np.ndarray
    heard: np.ndarray
    identity: np.ndarray
    zero: np.ndarray


def pieces(problem: Quadratic, topology: Topology, params: Any) -> Pieces:
    """Return them for the weights, and the mini-batches if there are any, of the options."""
    weights, one = weights_of(topology, params.weights), np.eye(problem.dim)
    gram, shift = problem.gram, problem.shift
    if isinstance(params, Biased):
        gram, shift = expected(problem, params.batch_size, params.batch_scale, params.batch_pool)
    mix, heard = np.kron(weights.dense(), one), np.kron(weights.inbox(), one)
    return Pieces(
        block_diagonal(gram), shift.ravel(), mix, heard, np.eye(len(mix)), np.zeros_like(mix)
    )


def by_step(
    update: Callable[[float], Affine],
    step_size: Schedule,
    *auxiliary: Start,
    arrivals: Arrivals | None = None,
) -> Update:
    """Return the law of which an iteration has ``update(eta)``, made once for steps that are equal.

    auxiliary, arrivals: as ``Update`` has them, the same for all iterations.
    """
    made = lru_cache(maxsize=1)(update)
    heard = None if arrivals is None else lambda k: arrivals
    return Update(lambda k: made(step_size(k)), auxiliary, heard)
