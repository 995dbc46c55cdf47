"""Accuracy of each agent's predictions."""

from __future__ import annotations

from collections.abc import Iterator

from concord.contracts import Label
from concord.laws.intervals import mean_interval, spread_interval
from concord.metrics import Measurement, Row

METRICS = ("accuracy_mean", "accuracy_sd")
RECORDS = ("accuracy",)
APART = True
LABELS = {
    "accuracy_sd": Label("standard deviation of the accuracy"),
    "accuracy_mean": Label("accuracy"),
}


def rows(m: Measurement) -> Iterator[Row]:
    """Yield each agent's mean over chains, and the spread over chains.

    Both carry an interval.
    """
    values = m.trace["accuracy"]
    mean, lo, hi = mean_interval(values)
    sd, sd_lo, sd_hi = spread_interval(values)
    for column, agent in enumerate(m.agents):
        for row, k in enumerate(m.trace.draw):
            at = row, column
            yield Row(k, agent, "accuracy_mean", mean[at], lo[at], hi[at])
            yield Row(k, agent, "accuracy_sd", sd[at], sd_lo[at], sd_hi[at])
