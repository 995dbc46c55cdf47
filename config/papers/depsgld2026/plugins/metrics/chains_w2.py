r"""W2 between the draws that all chains have at an iteration and the exact marginals.

.. math:: W^2 = \sum_d \frac1n \sum_{k=1}^n \bigl( x_{(k), d} - q_d((k - 1/2) / n) \bigr)^2

with the sorted draws of coordinate d of n chains, and the posterior's quantiles q_d: of one
parameter it is the distance itself (depsgld2026's released code measures by it), of more the
distance of the marginals.
"""

from collections.abc import Iterator

import numpy as np

from concord.distances import positions
from concord.laws.intervals import LEVEL, REPLICATES
from concord.laws.reference_laws import WithQuantiles
from concord.laws.wasserstein import correct_interval
from concord_studies.contracts import Label
from concord_studies.intervals import mean_over_chains
from concord_studies.metrics import Measurement, Row, series, unmet_need, yields
from concord_studies.metrics._references import require_posterior

FLOORS = 100


@yields(
    ("chains_w2", "chains_w2_floor"),
    labels={
        "chains_w2": Label("W2 of the marginals of all chains at an iteration", "W2"),
        "chains_w2_floor": Label(head="floor of W2"),
    },
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield chains_w2 of agents and average with a bootstrap interval, and chains_w2_floor.

    The floor is what as many independent exact draws show.
    """
    target = require_posterior(m.problem, "chains_w2")
    if not isinstance(target, WithQuantiles):
        raise unmet_need("chains_w2", "a problem whose posterior has quantiles")
    names, draws = positions(m.trace)
    chains = len(draws)
    exact = target.quantiles((np.arange(chains) + 0.5) / chains)  # (chains, dim)

    def distance(sorted_draws: np.ndarray) -> np.ndarray:
        """Return W2 over chains between sorted draws and exact quantiles."""
        aim = exact.reshape(chains, *[1] * (sorted_draws.ndim - 2), -1)
        return np.sqrt(((sorted_draws - aim) ** 2).mean(axis=0).sum(axis=-1))

    value = distance(np.sort(draws, axis=0))
    squares, rng = np.empty((REPLICATES, *value.shape)), m.stream("bootstrap")
    with np.errstate(invalid="ignore"):
        for square in squares:
            chosen = rng.integers(0, chains, chains)
            square[...] = distance(np.sort(draws[chosen], axis=0)) ** 2
        lo, hi = correct_interval(squares, value, LEVEL)
    lost = ~np.isfinite(value)
    value[lost], lo[lost], hi[lost] = np.inf, np.inf, np.inf
    yield from series(m.trace.draw, names, {"chains_w2": (value, lo, hi)})
    sets = np.sort(target.sample(FLOORS * chains, m.stream("floor")).reshape(chains, FLOORS, -1), 0)
    yield Row(
        m.iterations, "network", "chains_w2_floor", *mean_over_chains(distance(sets)), trials=FLOORS
    )
