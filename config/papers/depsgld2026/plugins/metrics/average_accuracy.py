"""Accuracy of the network average's predictions."""

from collections.abc import Iterator

import numpy as np

from concord.laws.intervals import mean_interval
from concord_studies.intervals import spread_interval
from concord_studies.metrics import Measurement, Row, series, unmet_need, yields


@yields(("accuracy_mean", "accuracy_sd"), apart=True)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield mean and standard deviation over chains of the accuracy of the average's parameters."""
    if not hasattr(m.problem, "accuracy") or "x_average" not in m.trace:
        raise unmet_need("average_accuracy", "a problem of classes, and record.average")
    average = np.asarray(m.trace["x_average"])  # (chains, draws, dim)
    values = np.stack([m.problem.accuracy(x[:, None])[:, 0] for x in average.swapaxes(0, 1)], 1)
    values[~np.isfinite(average).all(axis=-1)] = np.nan
    numbers = {"accuracy_mean": mean_interval(values), "accuracy_sd": spread_interval(values)}
    return series(m.trace.draw, "average", numbers)
