"""2-Wasserstein distance to the exact posterior of a Gaussian problem."""

from collections.abc import Iterator

import numpy as np

from concord.distances import positions
from concord.laws.intervals import LEVEL, REPLICATES
from concord.laws.wasserstein import FLOORS, bootstrap_w2, w2, w2_floor
from concord_studies.contracts import Label
from concord_studies.metrics import Measurement, Row, series
from concord_studies.metrics._references import gaussian
from concord_studies.transport import thinned

METRICS = ("w2", "w2_exact", "w2_floor")
OF_LAW = ("w2_exact",)
EXACT = ("w2_exact",)
LABELS = {
    "w2_exact": Label("exact W2"),
    "w2": Label(head="W2 [95 % interval]"),
}


def rows(m: Measurement) -> Iterator[Row]:
    """Yield W2 between the draws and the posterior, for recorded agents and the average.

    w2: of the Gaussian fitted to the chains, with a bootstrap interval over chains. w2_exact: of
    the exact law, where the sampler states it. w2_floor: what as many exact posterior draws show.
    """
    target = gaussian(m.problem, "w2")
    names, draws = positions(m.trace)
    if m.trace.chains:
        found = bootstrap_w2(draws, target, REPLICATES, m.stream("bootstrap"), LEVEL)
        yield from series(m.trace.draw, names, {"w2": found})
    if (law := m.law) is not None:
        for name in names:
            exact = {"w2_exact": w2(*law.moments_of(name), target)}
            yield from series(law.iterations, name, exact, chance=False)
    if m.trace.chains:
        floor = w2_floor(target, m.trace.chains, m.stream("floor"))
        yield Row(m.iterations, "network", "w2_floor", *floor, trials=FLOORS)


def pooled(m: Measurement, most: int) -> tuple[list[str], np.ndarray]:
    """Return names, and draws (chain, draw, name, dim) of all chains that make one sample.

    The draws are beyond burn-in, thinned evenly to ``most`` in all, at least one of each chain.
    """
    names, draws = positions(m.trace)
    rows = thinned(m.late, max(most // len(draws), 1))
    return names, draws[:, rows]
