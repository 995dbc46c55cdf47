"""2-Wasserstein distance between the posterior and a point at its mean: its width."""

from collections.abc import Iterator

import numpy as np

from concord_studies.metrics import Measurement, Row, known
from concord_studies.metrics._references import gaussian

METRICS = ("w2_point",)


def rows(m: Measurement) -> Iterator[Row]:
    """Yield the W2 of a point at the posterior's mean: sqrt(tr V), V the covariance.

    A law farther from the posterior than that says less of it than its mean alone.
    """
    target = gaussian(m.problem, "w2_point")
    return known(m, {"w2_point": np.sqrt(np.trace(target.cov))})
