r"""Sinkhorn distance, and exact W1, between draws and as many exact posterior draws.

.. math::
    \sum_{ij} P_{ij} M_{ij}, \qquad
    P = \arg\min_P \langle P, M \rangle + \lambda \sum_{ij} P_{ij} \log P_{ij}

over couplings P of the two sets of points, M their Euclidean distances, lambda = 0.1. Source:
parayil2020, section 5.1, which states lambda and nothing else; the entropy-regularized problem is
that of POT. Its value does not vanish for equal distributions: the floor, between two exact
samples, is reported with it and is several times the floor of W1.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from concord_studies.contracts import Label
from concord_studies.intervals import mean_over_chains
from concord_studies.metrics import Measurement, Row, yields
from concord_studies.metrics._references import require_posterior
from concord_studies.transport import costs, distances, thin

REGULARIZATION = 0.1
DRAWS = 1500
FLOORS = 10
# Marginals to 1e-6 give the distance to ACCURACY of its value, in single precision too.
TOLERANCE, ACCURACY = 1e-6, 1e-4
# Precision, over-relaxation (which takes a third of the steps, where it converges), most steps.
ATTEMPTS = (np.float32, 1.5, 2000), (np.float64, 1.5, 2000), (np.float64, 1.0, 100_000)
NAMES = ("sinkhorn", "w1_pooled")


@yields(
    (
        *("sinkhorn", "sinkhorn_floor", "sinkhorn_set_[0-9]*"),
        *("w1_pooled", "w1_pooled_floor", "w1_pooled_set_[0-9]*"),
    ),
    records=("draws",),
    labels={
        "sinkhorn": Label("Sinkhorn distance", "Sinkhorn"),
        "sinkhorn_floor": Label(head="floor of Sinkhorn"),
        "w1_pooled": Label(head="exact W1"),
        "w1_pooled_floor": Label(head="floor of W1"),
    },
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield both distances per data set and agent, their means over data sets, and their floors.

    The chains that share a data set are pooled, beyond burn-in and evenly thinned to 1500 draws in
    all. sinkhorn and w1_pooled: mean over data sets with an interval; without an interval
    where there is one. <name>_set_<d>: data set d alone. <name>_floor: two exact samples. Runs of a
    problem with several data sets share the exact draws. The floor of one data set is the mean over
    ten pairs of exact samples.
    """
    last = m.last
    samples, pairs = _pool_draws(m)
    values = np.array(
        [
            [_measure_both(sample[:, column], pair[0]) for column in range(len(m.agents))]
            for sample, pair in zip(samples, pairs, strict=False)
        ]
    )
    floors = np.array([_measure_floor(pair.tobytes(), pair.shape) for pair in pairs])
    for place, name in enumerate(NAMES):
        for column, agent in enumerate(m.agents):
            each = values[:, column, place]
            yield Row(last, agent, name, *mean_over_chains(each), trials=len(each))
            if len(each) > 1:
                for number, value in enumerate(each):
                    yield Row(last, agent, f"{name}_set_{number}", value)
        floor = mean_over_chains(floors[:, place])
        yield Row(last, "network", f"{name}_floor", *floor, trials=len(floors))


def _pool_draws(m: Measurement) -> tuple[list[np.ndarray], Any]:
    """Return the draws of each data set, (draws, agents, dim), and pairs of exact samples.

    The first pairs are those of the data sets, one for each.
    """
    x, recorded = m.trace["x"], m.late
    replicates: Any = m.problem if hasattr(m.problem, "exact_pairs") else None
    sets = 1 if replicates is None else min(len(replicates.sets), len(x))
    chains_by_set = [x[number::sets] for number in range(sets)]
    samples = []
    for chains in chains_by_set:
        chosen = thin(recorded, max(1, DRAWS // len(chains)))
        samples.append(chains[:, chosen].reshape(-1, *x.shape[2:]))
    counts = [len(sample) for sample in samples]
    if replicates is not None:
        return samples, replicates.exact_pairs(counts)
    exact, rng = require_posterior(m.problem, "sinkhorn"), m.stream("sinkhorn")
    return samples, [exact.sample(2 * n, rng).reshape(2, n, -1) for n in FLOORS * counts]


@lru_cache(maxsize=32)  # for runs that share exact draws, and that one process measures
def _measure_floor(pair: bytes, shape: tuple[int, ...]) -> tuple[float, float]:
    """Return both distances between two exact samples of this shape, given as bytes."""
    a, b = np.frombuffer(pair).reshape(shape)
    return _measure_both(a, b)


def _measure_both(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """Return the Sinkhorn cost and the exact distance between two samples (draws, dim)."""
    cost = costs(a, b)
    return sinkhorn(cost, REGULARIZATION), distances(cost, [1])[0]


def sinkhorn(cost: np.ndarray, regularization: float) -> float:
    """Return the transport cost of the entropy-regularized plan between equally weighted points.

    Infinite if a point is not finite, and nan if points are so far apart that no iteration meets
    the marginals to ``TOLERANCE``. It reads all costs in every step: it goes in single precision,
    and in double where points are so far from all others that this does not reach.

    cost: the ``costs`` of the points, (m, n). regularization: lambda.
    """
    if np.isinf(cost[0, 0]):
        return float("inf")
    attempts = (_iterate(cost, regularization, *attempt) for attempt in ATTEMPTS)
    return next((value for value in attempts if value is not None), float("nan"))


def _iterate(
    cost: np.ndarray, regularization: float, kind: type[np.floating], relaxation: float, most: int
) -> float | None:
    """Return the transport cost that Sinkhorn's iteration finds; None if it does not converge.

    Steps are over-relaxed but for the first ten and each tenth, after which the rows' marginals
    are met and those of the columns are checked.
    """
    kernel = np.exp(cost / -regularization).astype(kind)
    row, column = (kind(1 / size) for size in cost.shape)
    u, v = np.full(len(cost), row), np.full(len(kernel.T), column)
    with np.errstate(all="ignore"):
        for step in range(1, most + 1):
            power = kind(relaxation if step > 10 and step % 10 else 1)
            u *= (row / (kernel @ v) / u) ** power
            sums = u @ kernel
            if step % 10 == 0:
                error = np.linalg.norm(v * sums - column)
                if error <= TOLERANCE:
                    return float(u.astype(float) @ (kernel * cost) @ v)
                if not np.isfinite(error):
                    return None
            v *= (column / sums / v) ** power
    return None
