"""Mean and standard deviation of gradient estimators over theta, by formula."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from concord_studies.contracts import Label
from concord_studies.metrics import Measurement, Row, series, unmet_need, yields

from ..theory import estimator_moments


@yields(
    ("estimator_mean", "estimator_sd", "estimator_error"),
    exact=("*",),
    labels={
        "estimator_mean": Label("mean of the gradient estimate"),
        "estimator_sd": Label("standard deviation of the gradient estimate"),
        "estimator_error": Label("bias of the gradient estimate over the gradient"),
    },
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield the estimator's moments at each recorded iteration, which is theta in hundredths.

    estimator_error: how far the mean is from the gradient of the log likelihood, over the sum of
    the absolute slopes of all points.
    """
    problem: Any = m.problem
    sampler: Any = m.sampler
    if not hasattr(problem, "heads") or not hasattr(sampler, "surrogates"):
        raise unmet_need("estimators", "DSGLD on the problem coin_shards")
    points = problem.point_gradients(m.trace.draw[:, None] / 100)
    mean, within, between = estimator_moments(points, sampler.batch_size)
    numbers = {
        "estimator_mean": mean[:, 0],
        "estimator_sd": np.sqrt(within + between)[:, 0],
        "estimator_error": np.abs(mean - points.sum(axis=(1, 2)))[:, 0]
        / np.abs(points).sum(axis=(1, 2))[:, 0],
    }
    yield from series(m.trace.draw.tolist(), "network", numbers, chance=False)
