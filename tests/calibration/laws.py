"""Exact laws on Gaussian problems, given what a sampler draws beside its normal numbers.

Given who gossips, or which points make the mini-batches, a step is affine with matrices that are
the chain's own, and positions are Gaussian. Taken over those choices their law is a mixture of
Gaussians, of which ``concord.laws`` knows the moments only.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from msgspec.structs import replace

from calibration.ranks import ITERATIONS, START, START_SD, positions, within
from concord.batch_gradients import MiniBatches
from concord.errors import ConcordError
from concord.laws import exact
from concord.laws.read_off import StepReader
from concord.loop import run
from concord.minibatches import Batches, batches_of
from concord.networks.construction import network
from concord.networks.network import Network
from concord.sampling.schedules import Schedule
from variants import SAMPLERS, problem, variants

# Ring, star, an irregular graph, one agent, a server: agents have one to four neighbors.
NETWORKS = [
    network("ring", 5),
    network("star", 4),
    network("edge_list", 5, edges=[[0, 1], [0, 4], [1, 2], [2, 3], [1, 4]]),
    network("no_edges", 1),
    network("server", 4),
]
FUSION = Schedule(0.3)
Combination = tuple[Network, Any, Any]  # network, problem, sampler


class Watched:
    """A problem that keeps the rows of the mini-batch last drawn."""

    def __init__(self, problem: Any) -> None:
        self.problem, self.rows = problem, np.empty(0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.problem, name)

    def batch_gradient(self, x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        self.rows = rows.copy()
        return self.problem.batch_gradient(x, rows)


class Choosing:
    """A generator that keeps the outcomes of a step's choices, and what chances they had."""

    def __init__(self, rng: Any) -> None:
        self._rng, self.chosen = rng, []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rng, name)

    def choose(self, probability: np.ndarray, chains: int) -> np.ndarray:
        ends = np.cumsum(probability)[:-1]
        outcomes = (self._rng.random(chains)[:, None] >= ends).sum(axis=1)
        self.chosen.append((probability, outcomes))
        return outcomes


@cache
def reader_of(net: Network, prob: Any, sampler: Any) -> StepReader | None:
    """Return what reads the law of a sampler; None if its step is not affine given what it drew."""
    drawn, given = prob, sampler
    if batches := batches_of(sampler):
        drawn = MiniBatches(prob, batches, 1, np.random.default_rng(0))
        # Given the rows it does not matter in which order they are drawn.
        given = replace(sampler, batch_order="with_replacement")
    try:
        sampler.check(drawn, net)
        reader = StepReader(given, prob, net)
        reader.read_step(0), reader.start
    except ConcordError:
        return None
    return reader


def batch_errors(prob: Any, rows: np.ndarray, batches: Batches) -> tuple[np.ndarray, np.ndarray]:
    """Return by how much a batch's gram, (chains, S, S), and shift, (chains, S), miss their mean.

    A batch stands for all of an agent's points, for its own, or for one.
    """
    own, scale, size = np.arange(prob.agents)[:, None], batches.batch_scale, rows.shape[2]
    features, targets = prob.data.features[own, rows], prob.data.targets[own, rows]
    points = {"data": prob.counts, "none": size, "mean": 1}[scale]
    share = np.broadcast_to(np.divide(points, size), prob.counts.shape)[:, None]
    mean, center = prob.batch_mean(replace(batches, batch_pool="all"))
    gram = np.einsum("cabd,cabe->cade", features, features) * share[..., None]
    gram += prob.prior_precision * np.eye(prob.dim) - mean
    shift = np.einsum("cabd,cab->cad", features, targets) * share - center
    agents, wide = np.arange(prob.agents), np.zeros((len(rows), *[prob.agents, prob.dim] * 2))
    wide[:, agents, :, agents] = gram.swapaxes(0, 1)
    return wide.reshape(len(rows), shift[0].size, -1), shift.reshape(len(rows), -1)


def combinations(kind: str) -> Iterator[Combination]:
    """Yield network, problem and sampler of all that it accepts, with its law.

    Every choice of every option, constant and falling steps, full gradients and mini-batches of
    two points.
    """
    ways: list[dict[str, Any]] = [{}]
    if issubclass(SAMPLERS[kind], Batches):
        ways += [{"batch_size": 2, "batch_scale": scale} for scale in ("data", "none", "mean")]
        ways += [{"batch_size": 2, "batch_order": order} for order in ("epochs", "whole_batches")]
    for net in NETWORKS:
        prob = regression(net.agents)
        for sampler in variants(SAMPLERS[kind]):
            if hasattr(sampler, "fusion"):  # as strong as averages are elsewhere
                sampler = replace(sampler, fusion=FUSION)
            for chosen in (replace(sampler, **batches) for batches in ways):
                if reader_of(net, prob, chosen) is not None:
                    yield net, prob, chosen


@cache
def regression(agents: int) -> Any:
    """Return the problem of so many agents."""
    return problem(agents, 2)


def ranks(
    combination: Combination, chains: int, rng: Any, other: Network | None = None
) -> dict[str, np.ndarray]:
    """Run a sampler and return the ranks of its last positions in their law, shape (chains,) each.

    As ``within`` has them, and of what the last step chose. other: what the sampler sees, if not
    the network of the law.
    """
    net, prob, sampler = combination
    batches = batches_of(sampler)
    reader = reader_of(*combination)
    assert reader is not None
    agents, size, watched, choosing = prob.agents, prob.agents * 2, Watched(prob), Choosing(rng)
    moments = exact.initial_moments(agents, 2, (START[:agents], START_SD), reader.start)
    mean, cov = moments[0][None], moments[1]
    x0 = positions(chains, agents, rng)

    last: list[Any] = []

    def follow(k: int, state: Any) -> None:
        nonlocal mean, cov
        if k == 0:
            return
        reading, which = reader.read_step(k - 1), np.zeros(chains, dtype=int)
        for probability, outcomes in choosing.chosen:
            which = which * len(probability) + outcomes
        last[:] = choosing.chosen[-1:]
        choosing.chosen.clear()
        names = ["matrix", "offset", "noise", *["gradient_gain"] * (batches is not None)]
        parts = [getattr(reading.choices, name) for name in names]
        matrix, offset, noise, *gain = [p[which] if len(p) > 1 else p[0] for p in parts]
        if batches is not None:
            gram, shift = batch_errors(prob, watched.rows, batches)
            matrix = np.broadcast_to(matrix, (chains, *matrix.shape[-2:])).copy()
            matrix[:, :, :size] += gain[0] @ gram
            offset = offset - (gain[0] @ shift[..., None])[..., 0]
        mean = (matrix @ mean[..., None])[..., 0] + offset
        cov = matrix @ cov @ matrix.swapaxes(-1, -2) + noise

    drawn = watched
    if batches is not None:
        drawn = MiniBatches(watched, batches, chains, rng)
    started, noise = (other or net).start(x0), choosing if reader.chooses else rng
    state = run(sampler, drawn, started, x0, ITERATIONS, noise, [follow])
    found = within(state.x, mean[:, :size], cov[..., :size, :size])
    if last:
        probability, outcomes = last[0]
        ends = np.cumsum(probability)
        found["choice"] = ends[outcomes] - probability[outcomes] * rng.random(chains)
    return found
