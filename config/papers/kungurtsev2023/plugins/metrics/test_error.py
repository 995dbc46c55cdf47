r"""Mean squared error of an agent's predictions, by the mean of its draws so far.

.. math:: \frac1n \sum_{j=1}^n (y_j - X_j^\top \bar x_k)^2

over the rows (X_j, y_j) for testing, with the mean over the recorded draws of a chain up to
iteration k.

Source: the released code of kungurtsev2023.
"""

from collections.abc import Iterator

import numpy as np

from concord.laws.intervals import mean_interval
from concord_studies.contracts import Label
from concord_studies.metrics import Measurement, Row, series, unmet_need, yields


@yields(
    "test_error",
    records=("draws",),
    labels={"test_error": Label("mean squared error on rows for testing", "test error")},
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield each agent's error by iteration, a mean over chains with an interval."""
    if getattr(m.problem, "test", None) is None:
        raise unmet_need("test_error", "a linear regression with rows for testing")
    X, y = m.problem.test  # type: ignore[attr-defined]
    x = m.trace["x"][:, 1:]  # without the start
    means = np.cumsum(x, axis=1) / np.arange(1, x.shape[1] + 1)[:, None, None]
    errors = ((means @ X.T - y) ** 2).mean(axis=-1)
    yield from series(m.trace.draw[1:], m.agents, {"test_error": mean_interval(errors)})
