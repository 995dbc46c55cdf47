"""Points of shards, draws of a chain after the first update of visits, and their errors so far."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from concord_studies.contracts import Label
from concord_studies.metrics import Measurement, Row, series, unmet_need, yields

from ..theory import THIN, Visits


@yields(
    ("shard_[xy]", "chain_[xy]", "exact_[xy]", "square_so_far*", "distance_so_far",
     "mean_error_so_far*"),
    records=("draws",),
    labels={
        "square_so_far": Label("mean of |theta - mean|^2 over draws so far"),
        "distance_so_far": Label("mean of |theta - mean| over draws so far"),
        "mean_error_so_far": Label("squared error of the mean of draws so far"),
    },
)  # fmt: skip
def rows(m: Measurement) -> Iterator[Row]:
    """Yield points and draws for pictures, and how far draws and their mean are from the mean.

    shard_x, shard_y: points of each shard, the agent, numbered by iterations. chain_x, chain_y: of
    chain 0 beyond burn-in, numbered from 1, one more update on from the ends of visits that are
    recorded. exact_x, exact_y: as many independent draws of the posterior. *_so_far: over the first
    k draws of the chain, at iteration k; with _exact, expected by the law of the draws.
    """
    problem: Any = m.problem
    sampler: Any = m.sampler
    if not hasattr(problem, "surrogate_gradients") or not hasattr(sampler, "surrogates"):
        raise unmet_need("shard_draws", "fsgld on the problem shards_of_means")
    target = problem.posterior
    for shard, points in enumerate(problem.data.features):
        yield from _pairs("shard", str(shard), points)
    draws = update_once(problem, sampler, m.trace["x"][0, m.late, 0], m.stream("first update"))
    yield from _pairs("chain", "0", draws)
    root = np.linalg.cholesky(target.cov)
    normal = m.stream("exact draws").standard_normal(draws.shape)
    yield from _pairs("exact", "network", target.mean + normal @ root.T)
    visits, k = Visits.of(problem, sampler), np.arange(1, len(draws) + 1)
    away = draws - target.mean
    variance = np.trace(visits.cov(1))
    squares = (away**2).sum(axis=1)
    numbers = {
        "square_so_far": squares.cumsum() / k,
        "distance_so_far": np.sqrt(squares).cumsum() / k,
        "mean_error_so_far": ((away.cumsum(axis=0) / k[:, None]) ** 2).sum(axis=1),
    }
    yield from series(k.tolist(), "0", numbers)
    exact = {
        "square_so_far_exact": np.full(len(k), variance),
        "mean_error_so_far_exact": visits.mean_error(1, THIN // visits.updates, k),
    }
    yield from series(k.tolist(), "0", exact, chance=False)


def update_once(
    problem: Any, sampler: Any, theta: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Return theta, (draws, 2), after one update at a shard drawn for each."""
    shards, count, dim = problem.data.features.shape
    gamma, drawn = sampler.step_size(0), rng.integers(shards, size=len(theta))
    rows = rng.integers(count, size=(len(theta), sampler.batch_size))
    batch = problem.data.features[drawn[:, None], rows].mean(axis=1)
    gradient = shards * count * (batch - theta) - theta
    if sampler.surrogates != "none":
        slopes = problem.surrogate_gradients(theta)
        gradient += slopes.sum(axis=1) - shards * slopes[np.arange(len(theta)), drawn]
    noise = np.sqrt(2 * gamma) * rng.standard_normal((len(theta), dim))
    return theta + gamma * gradient + noise


def _pairs(name: str, agent: str, points: np.ndarray) -> Iterator[Row]:
    """Yield two coordinates of points, (points, 2), numbered from 1."""
    numbers = {f"{name}_{axis}": points[:, n] for n, axis in enumerate("xy")}
    yield from series(range(1, len(points) + 1), agent, numbers)
