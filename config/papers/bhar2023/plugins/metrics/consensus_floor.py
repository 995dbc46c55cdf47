"""Disagreement within a network over growing windows, and where it settles."""

import itertools
from collections.abc import Iterator

import numpy as np

from concord.laws.intervals import mean_interval
from concord_studies.contracts import Label
from concord_studies.metrics import Measurement, Row, series, yields

WINDOWS = 20


@yields(
    ("consensus_window", "consensus_floor"),
    records=("consensus_error",),
    labels={
        "consensus_window": Label("consensus error"),
        "consensus_floor": Label("plateau of the consensus error", "plateau"),
    },
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield consensus_window and consensus_floor, means over chains with intervals.

    consensus_window: mean of sum_i |x_i - average|^2 / N over the recorded iterations of a window
    of equal width in log k, at the window's center; windows begin after 1 % of the iterations, when
    initial positions are forgotten. consensus_floor: the mean over the second half.
    """
    yield from window_rows(m, "consensus_window", 0.0)
    late = m.trace["consensus_error"][:, m.trace.draw > m.last / 2]
    floor = mean_interval(late.mean(axis=1))
    yield from series([m.last], "network", {"consensus_floor": floor})


def window_rows(m: Measurement, name: str, less: float) -> Iterator[Row]:
    """Yield the metric ``name``: the mean consensus error in windows, less the number ``less``."""
    draw, errors = m.trace.draw, m.trace["consensus_error"]
    edges = np.geomspace(max(m.last / 100, 1), m.last + 1, WINDOWS + 1)
    for low, high in itertools.pairwise(edges):
        inside = (draw >= low) & (draw < high)
        if inside.any():
            numbers = mean_interval(errors[:, inside].mean(axis=1) - less)
            yield from series([round(float(np.sqrt(low * high)))], "network", {name: numbers})
