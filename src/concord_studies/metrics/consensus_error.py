"""Disagreement within a network: mean over chains of sum_i |x_i - average|^2 / N."""

from collections.abc import Iterator

from concord.laws.intervals import mean_interval
from concord_studies.metrics import Measurement, Row, series, yields


@yields("consensus_error", records=("consensus_error",))
def rows(m: Measurement) -> Iterator[Row]:
    """Yield the consensus error at every recorded iteration, a mean over chains with interval."""
    interval = mean_interval(m.trace["consensus_error"])
    return series(m.trace.draw, "network", {"consensus_error": interval})
