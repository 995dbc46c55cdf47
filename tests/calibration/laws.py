"""Exact laws on Gaussian problems, given what a sampler draws beside its normal numbers.

Given who gossips, or which points make the mini-batches, a step is affine with matrices that are
the chain's own, and positions are Gaussian. Taken over those choices their law is a mixture of
Gaussians, of which ``concord.laws.exact`` knows the moments only.
"""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from msgspec.structs import replace

from concord.laws import exact
from concord.samplers import c_ula
from concord.sampling.schedules import Schedule
from concord.testing.calibration import (
    ITERATIONS,
    NETWORKS,
    START,
    START_SD,
    positions,
    within,
)
from variants import EXACT, SAMPLERS, allowed, problem, variants

FUSION = Schedule(0.3)


class Watched:
    """A problem that keeps the rows of the mini-batch last drawn."""

    def __init__(self, problem: Any) -> None:
        self._problem = problem

    def __getattr__(self, name: str) -> Any:
        return getattr(self._problem, name)

    def batch_gradient(self, chains: int, batch_size: int) -> Any:
        inner = self._problem.batch_gradient(chains, batch_size)

        def gradient(x: np.ndarray, rows: np.ndarray, out: np.ndarray) -> np.ndarray:
            self.rows = rows.copy()
            return inner(x, rows, out)

        return gradient


# A, c and Q of step k, shapes (S, S), (S,), (S, S), or one of each for every chain.
Matrices = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Law:
    """The matrices of step k from what it drew, and how auxiliaries start.

    chosen: where the distribution function of what was drawn jumps from and to, (chains,) each.
    """

    at: Callable[[int, Watched, Any], Matrices]
    auxiliary: tuple[exact.Start, ...] = ()
    chosen: Callable[[Any], tuple[np.ndarray, np.ndarray]] | None = None


def law_of(kind: str, prob: Any, graph: Any, params: Any) -> Law | None:
    """Return the law of a sampler; None if its step is not affine even given what it drew."""
    if kind == "gossip_ula":
        return _gossip(prob, graph, params) if params.communication != "triggered" else None
    full = params
    if hasattr(params, "batch_size"):
        full = replace(params, batch_size=None)
    if kind == "sgd":  # C-ULA without noise, as its file says
        update = c_ula.affine(prob, graph, c_ula.Params(full.step_size))
    elif kind in EXACT:
        update = EXACT[kind].affine(prob, graph, full)
    else:
        update = None
    if update is None or (full != params and update.at(0).gradient_gain is None):
        return None
    size = prob.agents * prob.dim

    def at(k: int, watched: Watched, info: Any) -> Matrices:
        step = update.at(k)
        matrix, offset = step.matrix, step.offset
        if getattr(params, "batch_size", None) is not None:
            gram, shift = _batch(prob, watched.rows, getattr(params, "batch_scale", "data"))
            errors = np.array([exact.block_diagonal(one) for one in gram - prob.gram])
            matrix = np.broadcast_to(matrix, (len(gram), *matrix.shape)).copy()
            matrix[:, :, :size] += step.gradient_gain @ errors
            offset = offset - (shift - prob.shift).reshape(len(gram), -1) @ step.gradient_gain.T
        return matrix, offset, 0.0 * step.noise if kind == "sgd" else step.noise

    return Law(at, update.auxiliary)


def _batch(prob: Any, rows: np.ndarray, scale: str) -> tuple[np.ndarray, np.ndarray]:
    """Return gram (chains, agents, dim, dim) and shift (chains, agents, dim) of the batches.

    scale: whether a batch stands for all of an agent's points, for its own, or for one.
    """
    own = np.arange(prob.agents)[:, None]
    features, targets = prob.data.features[own, rows], prob.data.targets[own, rows]
    size = rows.shape[2]
    points = {"data": prob.counts, "none": size, "mean": 1}[scale]
    share = np.broadcast_to(np.divide(points, size), prob.counts.shape)[:, None]
    gram = np.einsum("cabd,cabe->cade", features, features) * share[..., None]
    shift = np.einsum("cabd,cab->cad", features, targets) * share
    return gram + prob.prior_precision * np.eye(prob.dim), shift


def _gossip(prob: Any, graph: Any, params: Any) -> Law:
    """Return the law given who was active, from bhar2023, eq. (6), or without its fusion."""
    agents, dim = prob.agents, prob.dim
    pairs = np.zeros((agents, agents))  # probabilities, at [i, j] with i < j
    for i, around in enumerate(graph.neighbors):
        for j in around:
            pairs[min(i, j), max(i, j)] += 1 / agents / len(around)
    chance = pairs.sum(axis=0) + pairs.sum(axis=1)
    ends = np.cumsum(pairs)
    drift = {"half": 1 / 2, "whole": 1}[params.drift]
    fuse = {"always": 1.0, "never": 0.0}[params.communication]
    one = np.eye(dim)

    def active(info: Any) -> np.ndarray:
        return np.nonzero(info.active)[1].reshape(-1, 2)

    def chosen(info: Any) -> tuple[np.ndarray, np.ndarray]:
        number = active(info) @ [agents, 1]
        return ends[number] - pairs.ravel()[number], ends[number]

    def at(k: int, watched: Watched, info: Any) -> Matrices:
        alpha, beta = params.step_size(k), fuse * params.fusion(k)
        pair = active(info)
        chains = len(pair)
        each = np.arange(chains)
        matrix = np.zeros((chains, agents, dim, agents, dim))
        matrix[:, np.arange(agents), :, np.arange(agents), :] = one
        offset, noise = np.zeros((chains, agents, dim)), np.zeros_like(matrix)
        for a, b in (pair.T, pair.T[::-1]):
            pull = (drift * agents * alpha / chance[a])[:, None]
            matrix[each, a, :, a, :] = (1 - beta) * one - pull[..., None] * prob.gram[a]
            matrix[each, a, :, b, :] = beta * one
            offset[each, a] = pull * prob.shift[a]
            noise[each, a, :, a, :] = alpha * agents**2 * one
        square = chains, agents * dim, agents * dim
        return matrix.reshape(square), offset.reshape(chains, -1), noise.reshape(square)

    return Law(at, chosen=chosen)


def combinations(kind: str) -> Iterator[tuple[Any, Any, Any]]:
    """Yield network, problem and options of a sampler's tests: all it accepts, with its law.

    Every choice of every option, constant and falling steps, full gradients and mini-batches of
    two points.
    """
    module = SAMPLERS[kind]
    for graph in NETWORKS:
        prob = problem(graph.agents, 2)
        for params in variants(module):
            if getattr(params, "batch_size", None) is not None:
                continue  # every option is tried with them below
            batches = [None, 2] if hasattr(params, "batch_size") else [None]
            for size in batches:
                if size is None and getattr(params, "batch_order", None) == "epochs":
                    continue  # the same as in any other order
                changes = {"fusion": FUSION} if hasattr(params, "fusion") else {}
                if size is not None:
                    changes["batch_size"] = size
                chosen = replace(params, **changes)
                if allowed(module, prob, graph, chosen) and law_of(kind, prob, graph, chosen):
                    yield graph, prob, chosen


def ranks(
    kind: str, prob: Any, graph: Any, params: Any, chains: int, rng: Any, network: Any = None
) -> dict[str, np.ndarray]:
    """Run a sampler and return the ranks of its last positions in their law, shape (chains,) each.

    As ``within`` has them, and of what the last step chose.

    ``network`` is what the sampler sees, if not the graph of the law.
    """
    law = law_of(kind, prob, graph, params)
    watched = Watched(prob)
    agents, dim = prob.agents, prob.dim
    start = START[:agents]
    mean, cov = exact.initial(agents, dim, (start, START_SD), *law.auxiliary)
    mean = mean[None]
    x0 = positions(chains, agents, rng)
    state, step = SAMPLERS[kind].init(watched, network or graph, params, x0, rng)
    for k in range(ITERATIONS):
        state, info = step(state, k, rng)
        matrix, offset, noise = law.at(k, watched, info)
        mean = (matrix @ mean[..., None])[..., 0] + offset
        cov = matrix @ cov @ matrix.swapaxes(-1, -2) + noise
    size = agents * dim
    found = within(state.x, mean[:, :size], cov[..., :size, :size])
    if law.chosen:
        low, high = law.chosen(info)
        found["choice"] = low + (high - low) * rng.random(chains)
    return found
