"""2-Wasserstein distance to the exact posterior of a Gaussian problem."""

from collections.abc import Iterator

import numpy as np

from concord.distances import positions
from concord.laws.gaussian import Gaussian, matrix_root
from concord.laws.intervals import LEVEL, REPLICATES
from concord.laws.wasserstein import FLOORS, bootstrap_w2, fit, w2
from concord_studies.contracts import Label
from concord_studies.metrics import Measurement, Row, final_rows, series, yields
from concord_studies.metrics._references import group_by_law


@yields(
    ("w2", "w2_exact", "w2_floor", "w2_point"),
    exact=("w2_exact", "w2_point"),
    of_law=("w2_exact",),
    averaged=("w2", "w2_exact"),
    labels={
        "w2_exact": Label("exact W2"),
        "w2": Label(head="W2 [95 % interval]"),
    },
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield W2 between the draws and the posterior, for recorded agents and the average.

    w2: of the Gaussian fitted to the chains, with a bootstrap interval over chains, from 0 to
    infinity where these are heavy-tailed. w2_exact: of the exact law, where the sampler states it.
    w2_floor: what as many exact posterior draws show. w2_point: of a point at the posterior's mean,
    sqrt(tr V), V the covariance; a law farther away says less of the posterior than its mean alone.

    Where agents hold local coordinates each is compared with the posterior of what it holds, and
    w2_floor and w2_point are of the widest of these.
    """
    names, draws = positions(m.trace)
    groups = group_by_law(m.problem, "w2", names)
    for places, target in groups:
        own = [names[place] for place in places]
        if m.trace.chains:
            arguments = draws[:, :, places], target, REPLICATES, m.stream("bootstrap"), LEVEL
            yield from series(m.trace.draw, own, {"w2": bootstrap_w2(*arguments)})
        if (law := m.law) is not None:
            for name in own:
                exact = {"w2_exact": w2(*law.moments_of(name), target)}
                yield from series(law.iterations, name, exact, chance=False)
    widest = max((target for _, target in groups), key=lambda law: float(np.trace(law.cov)))
    if m.trace.chains:
        floor = w2_floor(widest, m.trace.chains, m.stream("floor"))
        yield Row(m.iterations, "network", "w2_floor", *floor, trials=FLOORS)
    yield from final_rows(m, {"w2_point": np.sqrt(np.trace(widest.cov))})


def w2_floor(
    target: Gaussian,
    draws: int,
    rng: np.random.Generator,
    replicates: int = FLOORS,
    level: float = 0.95,
) -> tuple[float, float, float]:
    """Return the mean W2 that a perfect sampler would show, and its central interval.

    It is the distance from the target of Gaussians fitted to exact draws.

    target: the law drawn from, and compared with.
    draws: number of exact draws each Gaussian is fitted to (the number of chains of a run).
    rng: source of the draws.
    replicates: number of fits.
    level: share of the fits whose distance lies in the interval.
    Returns mean distance, and the lower and upper end of the interval.
    """
    root = matrix_root(target.cov)
    dim = len(target.mean)
    distances = np.empty(replicates)
    block = max(1, 2_000_000 // (draws * dim))
    for start in range(0, replicates, block):
        count = min(block, replicates - start)
        exact = rng.standard_normal((count, draws, dim)) @ root + target.mean
        distances[start : start + count] = w2(*fit(exact, axis=1), target)
    tail = (1 - level) / 2
    low, high = np.quantile(distances, [tail, 1 - tail])
    return float(distances.mean()), float(low), float(high)
