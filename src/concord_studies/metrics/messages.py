"""Vectors and bytes that agents have sent, by links between pairs and to all neighbors at once."""

from collections.abc import Iterator

import numpy as np

from concord_studies.contracts import Label
from concord_studies.metrics import Measurement, Row, yields
from concord_studies.metrics._prices import price_rows


@yields(
    ("unicasts", "unicast_bytes", "broadcasts", "broadcast_bytes"),
    labels={
        "unicasts": Label(axis="vectors sent by the whole network (one per neighbor)"),
        "unicast_bytes": Label(
            axis="bytes sent by the whole network (a copy per neighbor)", unit="B"
        ),
        "broadcasts": Label(axis="vectors sent by the whole network (one for all neighbors)"),
        "broadcast_bytes": Label(
            axis="bytes sent by the whole network (one for all neighbors)", unit="B"
        ),
    },
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield the messages and bytes that each agent, and the network, has sent so far.

    unicasts and unicast_bytes: a vector for every neighbor that needs it; broadcasts and
    broadcast_bytes: one for all neighbors that hear it. Samplers are to be compared in one of them,
    which the network decides. Where chains differ: mean over chains with an interval.
    """
    unicasts, broadcasts = m.trace["unicasts"], m.trace["broadcasts"]
    unicast_bytes = m.trace["unicast_bytes"]
    vector_bytes = unicast_bytes / np.maximum(unicasts, 1)  # the mean of those sent so far
    yield from price_rows(m, unicasts, "unicasts")
    yield from price_rows(m, unicast_bytes, "unicast_bytes")
    yield from price_rows(m, broadcasts, "broadcasts")
    yield from price_rows(m, broadcasts * vector_bytes, "broadcast_bytes")
