"""How wide a Gaussian posterior is: the largest entry of its covariance."""

from collections.abc import Iterator

import numpy as np

from concord_studies.contracts import Label
from concord_studies.metrics import Measurement, Row, final_rows
from concord_studies.metrics._references import require_gaussian

METRICS = ("posterior_covariance_max",)
EXACT = METRICS
LABELS = {
    "posterior_covariance_max": Label(
        "largest entry of the posterior's covariance", "largest covariance entry"
    ),
}


def rows(m: Measurement) -> Iterator[Row]:
    """Yield the largest absolute entry of the exact posterior's covariance."""
    target = require_gaussian(m.problem, "posterior_covariance")
    return final_rows(m, {"posterior_covariance_max": np.abs(target.cov).max()})
