"""Accuracy of each agent's predictions."""

from collections.abc import Iterator

from concord.laws.intervals import mean_interval
from concord_studies.contracts import Label
from concord_studies.intervals import spread_interval
from concord_studies.metrics import Measurement, Row, series, yields


@yields(
    ("accuracy_mean", "accuracy_sd"),
    records=("accuracy",),
    apart=True,
    labels={
        "accuracy_sd": Label("standard deviation of the accuracy"),
        "accuracy_mean": Label("accuracy"),
    },
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield each agent's mean accuracy over chains, and its standard deviation over chains.

    Both carry an interval.
    """
    values = m.trace["accuracy"]
    numbers = {"accuracy_mean": mean_interval(values), "accuracy_sd": spread_interval(values)}
    return series(m.trace.draw, m.agents, numbers)
