"""Seconds on the simulated clock, and the part of them that agents wait."""

from collections.abc import Iterator

import numpy as np

from concord.sampling.trace import TIMES
from concord_studies.contracts import Label
from concord_studies.metrics import Measurement, Row, yields
from concord_studies.metrics._prices import price_rows


@yields(
    ("seconds", "waiting"),
    network="clocked",
    labels={
        "waiting": Label("share of the time that agents wait"),
        "seconds": Label("simulated time, in seconds", axis="simulated time", unit="s"),
    },
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield the seconds on the simulated clock and the share of waiting, per agent and network.

    seconds: when it had ended its last step, of the network the last agent. waiting: the share of
    this time for which it had waited for vectors of others, of the network the mean over agents.
    """
    seconds, waited = (m.trace[name] for name in TIMES)
    share = np.divide(waited, seconds, out=np.zeros_like(seconds), where=seconds > 0)
    yield from price_rows(m, seconds, "seconds", np.max)
    yield from price_rows(m, share, "waiting", np.mean)
