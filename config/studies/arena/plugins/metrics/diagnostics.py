"""Effective sample size and R-hat of a run's own draws, by ArviZ: diagnostics, no distances.

They see whether chains mix and agree with each other, and no bias: a sampler whose stationary law
is wrong may have perfect ones.
"""

from collections.abc import Iterator

import numpy as np

from concord.distances import positions
from concord_studies.metrics import Measurement, Row, series, yields

TAILS = 0.05, 0.95  # quantiles


@yields(("ess_bulk", "ess_tail", "r_hat"), records=("draws",), averaged=("*",))
def rows(m: Measurement) -> Iterator[Row]:
    """Yield ess_bulk, ess_tail and r_hat of each recorded agent and of the average.

    ess_bulk, ess_tail: the least over coordinates, of all chains together. r_hat: the largest over
    coordinates, rank-normalized and split. Source: A. Vehtari, A. Gelman, D. Simpson, B. Carpenter
    and P.-C. Buerkner, Bayesian Analysis 16 (2021) 667-718. No numbers (nan) of fewer than four
    draws a chain. They have no intervals.
    """
    from arviz_stats.base import array_stats  # a second

    names, draws = positions(m.trace)
    late = draws[:, m.late]
    axes = {"chain_axis": 0, "draw_axis": 1}
    statistics = {
        "ess_bulk": (lambda: array_stats.ess(late, **axes), np.min),
        "ess_tail": (lambda: array_stats.ess(late, method="tail", prob=TAILS, **axes), np.min),
        "r_hat": (lambda: array_stats.rhat(late, **axes), np.max),
    }
    for metric, (compute, worst) in statistics.items():
        few = late.shape[1] < 4
        values = np.full(len(names), np.nan) if few else worst(compute(), axis=1)
        yield from series([m.last], names, {metric: values})
