"""What Figure 2 shows of the clients' average: the squared error of a chain's running variance."""

from collections.abc import Iterator

import numpy as np

from concord.laws.intervals import mean_interval
from concord_studies.contracts import Label
from concord_studies.metrics import Measurement, Row, series, unmet_need, yields


@yields(
    "average_error",
    averaged=("average_error",),
    labels={
        "average_error": Label("squared error of the running mean of |X - x*|²", "squared error")
    },
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield the mean over chains of (mean of |X - x*|^2 so far - tr Sigma)^2, beyond burn-in."""
    target = m.problem.posterior
    if target is None or "x_average" not in m.trace:
        raise unmet_need("average_error", "a Gaussian posterior, and record.average: true")
    away = m.trace["x_average"][:, m.late] - target.mean
    counts = np.arange(1, away.shape[1] + 1)
    variances = np.cumsum((away**2).sum(axis=-1), axis=1) / counts
    numbers = {"average_error": mean_interval((variances - np.trace(target.cov)) ** 2)}
    yield from series(m.trace.draw[m.late], "average", numbers)
