"""What a coordinate of a gradient takes on its way to the server, in bits.

An agent sends a compressed vector and receives one that is not; both are counted as sent.
"""

from collections.abc import Iterator

import numpy as np

from concord_studies.contracts import Label
from concord_studies.metrics import Measurement, Row, yields
from concord_studies.metrics._prices import price_rows


@yields(
    "uplink_bits",
    labels={"uplink_bits": Label("bits of a coordinate that is sent to the server", head="bits")},
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield the mean bits of a coordinate so far, of each recorded agent."""
    rounds, dim = m.trace["unicasts"] / 2, m.problem.dim
    compressed = m.trace["unicast_bytes"] - rounds * 8 * dim
    bits = 8 * compressed / np.maximum(rounds * dim, 1)
    return price_rows(m, bits, "uplink_bits", np.mean)
