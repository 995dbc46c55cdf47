"""When the accuracy of a network settles, and how far its agents end up apart."""

from collections.abc import Iterator

import numpy as np

from concord.laws.intervals import REPLICATES, mean_interval
from concord_studies.contracts import Label
from concord_studies.intervals import excess_interval
from concord_studies.metrics import Measurement, Row, series, yields

TOLERANCE = 0.005


@yields(
    ("accuracy_network", "accuracy_settled", "accuracy_apart"),
    records=("accuracy",),
    labels={
        "accuracy_network": Label("accuracy, mean over the agents"),
        "accuracy_apart": Label("difference of the agents' accuracies"),
    },
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield the network's accuracy, its settling iteration, and the agents' disagreement.

    accuracy_network: mean over agents, then over chains with an interval. accuracy_settled:
    the first recorded iteration from which on it stays within half a point of its last value.
    accuracy_apart: largest minus smallest agent's mean over chains, at the last iteration. The
    last two have bootstrap intervals over chains, whose noise delays the one and enlarges the
    other.
    """
    values, draws = m.trace["accuracy"], m.trace.draw
    network = values.mean(axis=2)
    network_mean = mean_interval(network)
    yield from series(draws, "network", {"accuracy_network": network_mean})
    chains, ends = len(values), values[:, -1]
    chosen = m.stream("accuracy_settling").integers(0, chains, size=(REPLICATES, chains))
    settled = np.array([_find_settling(draws, network[pick].mean(axis=0)) for pick in chosen])
    apart = np.array([np.ptp(ends[pick].mean(axis=0)) for pick in chosen])
    for metric, value, resampled in (
        ("accuracy_settled", _find_settling(draws, network_mean[0]), settled),
        ("accuracy_apart", float(np.ptp(ends.mean(axis=0))), apart),
    ):
        yield Row(m.last, "network", metric, value, *excess_interval(value, resampled))


def _find_settling(draws: np.ndarray, curve: np.ndarray) -> float:
    """Return the first draw from which a curve stays within ``TOLERANCE`` of its end, or nan."""
    if not np.isfinite(curve[-1]):
        return float("nan")
    outside = np.flatnonzero(np.abs(curve - curve[-1]) > TOLERANCE)
    return float(draws[outside[-1] + 1] if outside.size else draws[0])
