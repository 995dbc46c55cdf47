"""Effective sample size and R-hat of a run's own draws, by ArviZ: diagnostics, no distances.

They see whether chains mix and agree with each other, and no bias: a sampler whose stationary law
is wrong may have perfect ones.
"""

from collections.abc import Iterator

import numpy as np

from concord.metrics import Measurement, Row, series
from concord.metrics.w2 import positions
from concord.sampling.arviz_by_numpy import arviz_by_numpy, dataset

METRICS = ("ess_bulk", "ess_tail", "r_hat")
RECORDS = ("draws",)


def rows(m: Measurement) -> Iterator[Row]:
    """Yield them per recorded agent and for the average, of the draws beyond burn-in.

    ess_bulk, ess_tail: the least over coordinates, of all chains together. r_hat: the largest over
    coordinates, rank-normalized and split. Source: A. Vehtari, A. Gelman, D. Simpson, B. Carpenter
    and P.-C. Buerkner, Bayesian Analysis 16 (2021) 667-718. No numbers (nan) of fewer than four
    draws a chain. They have no intervals.
    """
    arviz = arviz_by_numpy()
    names, draws = positions(m.trace)
    late = draws[:, m.late]
    data = dataset(late, "agent", "dim") if late.shape[1] >= 4 else None
    found = {
        "ess_bulk": (lambda: arviz.ess(data).x, np.min),
        "ess_tail": (lambda: arviz.ess(data, method="tail").x, np.min),
        "r_hat": (lambda: arviz.rhat(data).x, np.max),
    }
    for metric, (compute, worst) in found.items():
        values = np.full(len(names), np.nan) if data is None else worst(compute().data, axis=1)
        yield from series([m.last], names, {metric: values})
