"""Vectors and bytes that agents have put on the network."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from concord.intervals import mean_interval
from concord.metrics import Measurement, Row

METRICS = ("vectors_sent", "bytes_sent")


def rows(m: Measurement) -> Iterator[Row]:
    """Yield what each agent has sent so far, and the whole network.

    Where chains differ: mean over chains with an interval.
    """
    sent = m.trace["vectors_sent"]
    by_chain = sent.ndim == 3  # else all chains send alike, whatever chance does
    sent = (sent if sent.ndim == 3 else sent[None]).astype(float)
    width = m.problem.dim * np.dtype(getattr(m.problem, "dtype", np.float64)).itemsize
    columns = [(agent, sent[:, :, column]) for column, agent in enumerate(m.agents)]
    if len(m.agents) == m.problem.agents:
        columns.append(("network", sent.sum(axis=2)))
    for agent, values in columns:
        mean, lo, hi = mean_interval(values)
        for row, k in enumerate(m.trace.draw):
            ends = (lo[row], hi[row]) if len(values) > 1 else (None, None)
            for name, factor in (("vectors_sent", 1), ("bytes_sent", width)):
                low, high = (None if end is None else factor * end for end in ends)
                yield Row(k, agent, name, factor * mean[row], low, high, chance=by_chain)
