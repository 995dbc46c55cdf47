"""Vectors and bytes that agents have sent, by links between pairs and to all neighbors at once."""

from __future__ import annotations

from collections.abc import Iterator

from concord.contracts import dtype_of
from concord.laws.intervals import mean_interval
from concord.metrics import Measurement, Row
from concord.networks.faults import Network

METRICS = ("unicasts", "unicast_bytes", "broadcasts", "broadcast_bytes")


def rows(m: Measurement) -> Iterator[Row]:
    """Yield what each agent has sent so far, and the whole network, in both ways of counting.

    unicasts and unicast_bytes: a vector for every neighbor that needs it; broadcasts and
    broadcast_bytes: one for all neighbors that hear it. Samplers are to be compared in one of them,
    which the network decides. Where chains differ: mean over chains with an interval.
    """
    size = m.problem.dim, dtype_of(m.problem).itemsize
    compression = m.topology.conditions.compression if isinstance(m.topology, Network) else None
    width = compression.size(*size) if compression else size[0] * size[1]
    for kind in ("unicast", "broadcast"):
        sent = m.trace[f"{kind}s"]
        chance = sent.ndim == 3
        sent = (sent if chance else sent[None]).astype(float)
        columns = [(agent, sent[:, :, column]) for column, agent in enumerate(m.agents)]
        if len(m.agents) == m.problem.agents:
            columns.append(("network", sent.sum(axis=2)))
        for agent, values in columns:
            mean, lo, hi = mean_interval(values)
            for row, k in enumerate(m.trace.draw):
                ends = (lo[row], hi[row]) if len(values) > 1 else (None, None)
                for name, factor in ((f"{kind}s", 1), (f"{kind}_bytes", width)):
                    low, high = (None if end is None else factor * end for end in ends)
                    yield Row(k, agent, name, factor * mean[row], low, high, chance)
