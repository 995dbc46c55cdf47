"""Vectors and bytes that agents have put on the network."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from concord.metrics import Measurement, Row


def rows(m: Measurement) -> Iterator[Row]:
    """Yield what each agent has sent so far (mean over chains)."""
    sent = m.trace["vectors_sent"]
    if sent.ndim == 3:
        sent = sent.mean(axis=0)
    width = m.problem.dim * np.dtype(getattr(m.problem, "dtype", np.float64)).itemsize
    for column, agent in enumerate(m.agents):
        for row, k in enumerate(m.trace.draw):
            yield k, agent, "vectors_sent", sent[row, column], None, None
            yield k, agent, "bytes_sent", width * sent[row, column], None, None
