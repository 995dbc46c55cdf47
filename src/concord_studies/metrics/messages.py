"""Vectors and bytes that agents have sent, by links between pairs and to all neighbors at once."""

from collections.abc import Iterator

from concord_studies.contracts import Label
from concord_studies.metrics import Measurement, Row, yields
from concord_studies.metrics._prices import price_rows, vector_bytes


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
    width = vector_bytes(m)
    for kind in ("unicast", "broadcast"):
        yield from price_rows(m, m.trace[f"{kind}s"], ((f"{kind}s", 1), (f"{kind}_bytes", width)))
