"""2-Wasserstein distance between the posterior and a point at its mean: its width."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from concord.metrics import Measurement, Row, lacking

METRICS = ("w2_point",)


def rows(m: Measurement) -> Iterator[Row]:
    """Yield sqrt(tr V), V the posterior's covariance.

    A law farther from the posterior than that says less of it than its mean alone.
    """
    target = m.problem.posterior
    if target is None:
        raise lacking("w2_point", "a problem with an exact Gaussian posterior")
    width = float(np.sqrt(np.trace(target.cov)))
    yield Row(m.iterations, "network", "w2_point", width, chance=False)
