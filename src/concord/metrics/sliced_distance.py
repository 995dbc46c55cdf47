r"""Sliced W2 between draws and the exact posterior, in any dimension.

.. math::
    SW_2(\mu, \nu)^2 = d \int W_2(\theta_\# \mu, \theta_\# \nu)^2 \, d\theta

over directions theta of the unit sphere, in coordinates divided by their posterior standard
deviations; the factor d makes it the distance of the means where laws differ in nothing else.
Source: N. Bonneel, J. Rabin, G. Peyre and H. Pfister, J. Math. Imaging Vis. 51 (2015) 22-45.
"""

from collections.abc import Iterator

import numpy as np

from concord.laws.intervals import excess_interval, over_chains
from concord.metrics import Measurement, Row
from concord.metrics._references import posterior
from concord.metrics.w2 import pooled

METRICS = ("sliced_w2", "sliced_w2_floor")
RECORDS = ("draws",)

DRAWS, DIRECTIONS, FLOORS, REPLICATES = 1000, 50, 20, 50


def rows(m: Measurement) -> Iterator[Row]:
    """Yield sliced_w2 per recorded agent and for the average, and its floor.

    Draws of all chains beyond burn-in, thinned to 1000, against as many exact ones; 50 random
    directions, the same for all. Interval: chains are resampled. sliced_w2_floor: what as many
    exact draws show against as many others.
    """
    exact, rng = posterior(m.problem, "sliced_distance"), m.stream("sliced")
    names, draws = pooled(m, DRAWS)
    chains, each, _, dim = draws.shape
    directions = rng.standard_normal((dim, DIRECTIONS))
    directions /= np.linalg.norm(directions, axis=0)
    directions *= np.sqrt(dim / exact.monomials()[1][:dim, None])

    def projected(draws: np.ndarray) -> np.ndarray:
        return np.sort(draws.reshape(-1, dim) @ directions, axis=0)

    def distance(draws: np.ndarray) -> float:
        with np.errstate(invalid="ignore"):
            found = np.sqrt(((projected(draws) - target) ** 2).mean())
        return float(found) if np.isfinite(found) else np.inf

    sets = exact.sample((FLOORS + 1) * chains * each, rng).reshape(FLOORS + 1, -1, dim)
    target = projected(sets[0])
    chosen = m.stream("sliced chains").integers(0, chains, (REPLICATES, chains))
    for column, name in enumerate(names):
        own = draws[:, :, column]
        value = distance(own)
        ends: tuple[float | None, float | None] = None, None
        if chains > 1:
            ends = excess_interval(value, np.array([distance(own[pick]) for pick in chosen]))
        yield Row(m.last, name, "sliced_w2", value, *ends)
    floor = over_chains(np.array([distance(s) for s in sets[1:]]))
    yield Row(m.last, "network", "sliced_w2_floor", *floor, trials=FLOORS)
