"""Accuracy of each agent's predictions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from concord.metrics import Measurement, Row, mean_interval


def rows(m: Measurement) -> Iterator[Row]:
    """Yield each agent's mean over chains with a normal interval, and the spread over chains."""
    values = m.trace["accuracy"]
    mean, lo, hi = mean_interval(values)
    one = len(values) == 1  # says nothing about the spread
    sd = np.full(values.shape[1:], np.nan) if one else values.std(axis=0, ddof=1)
    for column, agent in enumerate(m.agents):
        for row, k in enumerate(m.trace.draw):
            at = row, column
            yield k, agent, "accuracy_mean", mean[at], lo[at], hi[at]
            yield k, agent, "accuracy_sd", sd[at], None, None
