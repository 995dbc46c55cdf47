r"""Numbers that a paper's authors recorded of a run, beside the run's own.

A record is another run, of m chains where ours has n. Of two such runs of one law the values differ
by more than either's error: a record is *inside* where it lies within :math:`\sqrt{1 + n/m}` times
the distances from our value to the ends of its 95 % interval. Iterations and agents are not
independent, so the share that is inside varies; how much, m resampled chains tell, whole
trajectories at a time: they vary about our values as a record does but for our own error, and lie
within :math:`\sqrt{n/m}` times those distances as often.

Where runs share their random numbers, as those of one experiment do over an option that changes
little, so do their errors: a run of as many chains as the record's may then be off from all of its
records at once. More chains make that error small.
"""

from collections.abc import Iterator

import numpy as np

from concord.contracts import Label
from concord.datasets.tables import tabled
from concord.errors import ConcordError
from concord.laws.gaussian import bootstrap_w2
from concord.laws.intervals import REPLICATES, mean_interval
from concord.metrics import Measurement, Row, lacking
from concord.metrics._references import gaussian
from concord.metrics.w2 import positions

METRICS = ("*_recorded", "recorded_*")
LABELS = {
    "recorded_inside": Label("share of recorded values inside our intervals", "inside"),
    "recorded_least": Label("share that 99 of 100 runs of one law exceed", "least"),
    "recorded_usual": Label("share that a run of one law has on average", "usual"),
}
LEAST = 0.01


def rows(m: Measurement) -> Iterator[Row]:
    """Yield the recorded values, and the share of them that is inside.

    <metric>_recorded: of each recorded agent, along iterations; without intervals, as the authors
    had one run, and none where they recorded none. recorded_inside: the share; recorded_usual and
    recorded_least: the mean and the first percentile of that of other runs of our law.
    """
    if m.recorded is None:
        raise lacking("recorded", "recorded numbers: the run's key recorded")
    names, ours, lo, hi, resampled = _own(m)
    record = np.full((len(m.trace.draw), len(names)), np.nan)
    table, metric = tabled(m.recorded.table, m.resources), m.recorded.metric
    keep = np.full(len(table[metric]), True)
    for column, wanted in m.recorded.where.items():
        keep &= table[column] == (wanted if isinstance(wanted, str) else float(wanted))
    places = {int(k): row for row, k in enumerate(m.trace.draw)}
    agents = [text.removesuffix(".0") for text in table["agent"].astype(str)]
    for at in np.flatnonzero(keep):
        row, who = places.get(int(table["iteration"][at])), agents[at]
        if row is not None and who in names:
            record[row, names.index(who)] = table[metric][at]
    have = np.isfinite(record)
    if not have.any():
        return
    for name, values in zip(names, record.T, strict=True):
        for at in np.flatnonzero(np.isfinite(values)):
            yield Row(int(m.trace.draw[at]), name, f"{metric}_recorded", float(values[at]))
    part = m.trace.chains / (m.recorded.chains or m.trace.chains)
    with np.errstate(invalid="ignore"):  # of what diverged
        ends = np.stack([lo - ours, hi - ours])
        lo, hi = ours + np.sqrt(part) * ends
        least, most = ours + np.sqrt(1 + part) * ends
    inside = (record >= least) & (record <= most)
    of_law = [((each >= lo) & (each <= hi))[have].mean() for each in resampled]
    shares = inside[have].mean(), np.mean(of_law), np.quantile(of_law, LEAST)
    known = np.isfinite([ours, lo, hi])[:, have].all()
    for name, share in zip(("inside", "usual", "least"), shares, strict=True):
        value = float(share) if known else np.nan
        # A test's statistic: it decides as it is.
        yield Row(m.last, "network", f"recorded_{name}", value, value, value, trials=REPLICATES)


def _own(m: Measurement) -> tuple[list[str], np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return agents, our values with intervals (draw, agent), and as many of resampled chains."""
    stream = m.stream("bootstrap")
    if m.recorded is not None and m.recorded.metric == "accuracy_mean":
        values = m.trace["accuracy"]
        chains = len(values)
        theirs = m.recorded.chains or chains
        weights = stream.multinomial(theirs, np.full(chains, 1 / chains), REPLICATES) / theirs
        with np.errstate(invalid="ignore"):
            again = np.tensordot(weights, values, 1)
        return m.agents, *mean_interval(values), again
    if m.recorded is not None and m.recorded.chains is not None:
        raise ConcordError("recorded.chains: distances of fewer chains are larger; remove it")
    names, draws = positions(m.trace)
    resampled = np.empty((REPLICATES, draws[0, ..., 0].size))
    target = gaussian(m.problem, "recorded")
    found = bootstrap_w2(draws, target, REPLICATES, stream, resampled=resampled)
    squares = resampled.reshape(-1, *found[0].shape)
    with np.errstate(invalid="ignore"):
        excess = squares.mean(axis=0) - found[0] ** 2  # the bias that resampling adds
        return names, *found, np.sqrt(np.maximum(squares - excess, 0.0))
