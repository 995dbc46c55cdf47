"""Rows of the prices that agents have paid, one by one and as a network."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from concord.laws.intervals import mean_interval
from concord_studies.metrics import Measurement, Row, series


def price_rows(
    m: Measurement,
    values: np.ndarray,
    name: str,
    whole: Callable[..., Any] = np.sum,
) -> Iterator[Row]:
    """Yield the amounts that each recorded agent paid, and the network if all are recorded.

    Where chains differ: mean over chains with an interval.

    values: shape (chains, draws, agents), or (draws, agents) where all chains have the same.
    name: the metric.
    whole: the function of the agents' values that gives the network's, such as ``np.max``.
    """
    chance = values.ndim == 3
    values = (values if chance else values[None]).astype(float)
    columns = [(agent, values[:, :, column]) for column, agent in enumerate(m.agents)]
    if len(m.agents) == m.problem.agents:
        columns.append(("network", whole(values, axis=2)))
    for agent, amounts in columns:
        interval = mean_interval(amounts)[: 3 if len(amounts) > 1 else 1]
        yield from series(m.trace.draw, agent, {name: interval}, chance)
