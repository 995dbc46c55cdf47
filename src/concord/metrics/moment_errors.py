"""Errors of mean and covariance, the two parts of W2, in units of the posterior."""

from collections.abc import Iterator

from concord.laws.gaussian import (
    FLOORS,
    Gaussian,
    bootstrap_w2,
    covariance_error,
    mean_error,
    w2_floor,
)
from concord.laws.intervals import LEVEL, REPLICATES
from concord.laws.law import exact_law
from concord.metrics import Measurement, Row, series
from concord.metrics._references import posterior
from concord.metrics.w2 import of_law, positions

PARTS = {"mean_error": mean_error, "covariance_error": covariance_error}
METRICS = tuple(f"{name}{ending}" for name in PARTS for ending in ("", "_exact", "_floor"))
OF_LAW = ("*_exact",)


def rows(m: Measurement) -> Iterator[Row]:
    """Yield the errors of recorded agents and of the average over iterations.

    mean_error, covariance_error: of mean and covariance over the chains, with an interval
    (``laws.gaussian`` has the formulas). <name>_exact: of the exact law, where the sampler states
    it. <name>_floor: what as many exact draws of a Gaussian show.
    """
    target = Gaussian(*posterior(m.problem, "moment_errors").moments())
    names, draws = positions(m.trace)
    law = exact_law(m)
    for metric, distance in PARTS.items():
        rng = m.stream("bootstrap")
        values = bootstrap_w2(draws, target, REPLICATES, rng, LEVEL, distance)
        yield from series(m.trace.draw, names, {metric: values})
        yield from of_law(law, names, f"{metric}_exact", distance, target)
        floor = w2_floor(target, len(draws), m.stream("floor"), distance=distance)
        yield Row(m.iterations, "network", f"{metric}_floor", *floor, trials=FLOORS)
