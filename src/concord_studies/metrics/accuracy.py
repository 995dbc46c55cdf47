"""Accuracy of each agent's predictions."""

from collections.abc import Iterator

from concord.laws.intervals import mean_interval
from concord_studies.contracts import Label
from concord_studies.intervals import spread_interval
from concord_studies.metrics import Measurement, Row, series, yields


@yields(
    ("accuracy_mean", "accuracy_sd", "accuracy_over_agents"),
    records=("accuracy",),
    apart=True,
    labels={
        "accuracy_sd": Label("standard deviation of the accuracy"),
        "accuracy_mean": Label("accuracy"),
        "accuracy_over_agents": Label("mean accuracy of all agents"),
    },
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield each agent's mean accuracy over chains, its standard deviation, and the agents' mean.

    accuracy_over_agents: the mean over chains and recorded agents. All carry an interval.
    """
    values = m.trace["accuracy"]
    numbers = {"accuracy_mean": mean_interval(values), "accuracy_sd": spread_interval(values)}
    yield from series(m.trace.draw, m.agents, numbers)
    mean = mean_interval(values.mean(axis=-1))
    yield from series(m.trace.draw, "network", {"accuracy_over_agents": mean})
