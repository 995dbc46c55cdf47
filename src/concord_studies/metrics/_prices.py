"""Rows of the prices that agents have paid, one by one and as a network."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from concord.contracts import dtype_of
from concord.laws.intervals import mean_interval
from concord_studies.metrics import Measurement, Row, series


def vector_bytes(m: Measurement) -> float:
    """Return the bytes of one vector as sent, compressed by the network or the sampler."""
    dim, itemsize = m.problem.dim, dtype_of(m.problem).itemsize
    compressed = m.sampler.vector_size(dim, itemsize)
    return m.network.conditions.size(dim, itemsize) if compressed is None else compressed


def price_rows(
    m: Measurement,
    values: np.ndarray,
    names: Sequence[tuple[str, float]],
    whole: Callable[..., Any] = np.sum,
) -> Iterator[Row]:
    """Yield the amounts that each recorded agent paid, and the network if all are recorded.

    Where chains differ: mean over chains with an interval.

    values: shape (chains, draws, agents), or (draws, agents) where all chains have the same.
    names: metrics, each with a factor of the values.
    whole: the function of the agents' values that gives the network's, such as ``np.max``.
    """
    chance = values.ndim == 3
    values = (values if chance else values[None]).astype(float)
    columns = [(agent, values[:, :, column]) for column, agent in enumerate(m.agents)]
    if len(m.agents) == m.problem.agents:
        columns.append(("network", whole(values, axis=2)))
    for agent, amounts in columns:
        interval = mean_interval(amounts)[: 3 if len(amounts) > 1 else 1]
        numbers = {name: tuple(factor * part for part in interval) for name, factor in names}
        yield from series(m.trace.draw, agent, numbers, chance)
