"""Accuracy against the number of an agent's own updates instead of ticks of a common clock."""

from collections.abc import Iterator

import numpy as np

from concord.laws.intervals import mean_interval
from concord_studies.contracts import Label
from concord_studies.intervals import spread_interval
from concord_studies.metrics import Measurement, Row, series, yields


@yields(
    ("accuracy_after_mean", "accuracy_after_sd"),
    records=("accuracy",),
    labels={
        "accuracy_after_sd": Label("standard deviation of the accuracy by number of own updates"),
        "accuracy_after_mean": Label("accuracy by number of own updates"),
    },
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield accuracy_after_mean and accuracy_after_sd; the column iteration counts updates.

    The mean and the standard deviation over chains have intervals. A chain's accuracy after u
    updates of an agent is the one at the first recorded iteration with at least u. Counts end where
    a chain has no more, so that every number is of all chains.
    """
    accuracy = m.trace["accuracy"]
    chains, _, agents = accuracy.shape
    if "activations" in m.trace:
        updates = m.trace["activations"]
    else:
        updates = np.broadcast_to(m.trace.draw[None, :, None], accuracy.shape)
    for column in range(agents):
        end = int(updates[:, -1, column].min())
        counts = np.arange(end + 1)
        first = [np.searchsorted(updates[c, :, column], counts) for c in range(chains)]
        values = np.stack([accuracy[c, first[c], column] for c in range(chains)])
        numbers = {
            "accuracy_after_mean": mean_interval(values),
            "accuracy_after_sd": spread_interval(values),
        }
        yield from series(counts.tolist(), m.agents[column], numbers)
