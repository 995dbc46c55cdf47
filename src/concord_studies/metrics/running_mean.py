r"""Errors of one chain's running averages: of its draws so far, as papers plot them.

.. math::
    \frac{\lVert \bar x_k - m \rVert^2}{\operatorname{tr} V}, \qquad
    \Bigl( \frac{\bar s_k}{\operatorname{tr} V} - 1 \Bigr)^2, \qquad
    s_j = \lVert x_j - m \rVert^2

with m and V the posterior's mean and covariance, and bars the means over the recorded draws beyond
burn-in up to iteration k.

Source: the released code of qlsd2021 (the first) and of fald2023 (the second).
"""

from collections.abc import Iterator

import numpy as np

from concord.laws.intervals import mean_interval
from concord_studies.contracts import Label
from concord_studies.metrics import Measurement, Row, series, yields
from concord_studies.metrics._references import require_posterior


@yields(
    ("running_mean_error", "running_trace_error"),
    records=("draws",),
    labels={
        "running_mean_error": Label(
            "squared error of the running mean, over the posterior's variance"
        ),
        "running_trace_error": Label("squared relative error of the running variance"),
    },
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield errors of each agent's time average at iterations beyond burn-in, with intervals."""
    mean, cov = require_posterior(m.problem, "running_mean").moments()
    away, total = m.trace["x"][:, m.late] - mean, np.trace(cov)
    counts = np.arange(1, away.shape[1] + 1)[:, None]
    centers = np.cumsum(away, axis=1) / counts[..., None]
    widths = np.cumsum((away**2).sum(axis=-1), axis=1) / counts
    numbers = {
        "running_mean_error": mean_interval((centers**2).sum(axis=-1) / total),
        "running_trace_error": mean_interval((widths / total - 1) ** 2),
    }
    yield from series(m.trace.draw[m.late], m.agents, numbers)
