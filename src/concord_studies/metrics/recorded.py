r"""Numbers that a paper's authors recorded of a run, beside the run's own.

A record is another run, of m chains where ours has n. Of two such runs of one law the values differ
by more than either's error: a record is *inside* where it lies within :math:`\sqrt{1 + n/m}` times
the distances from our value to the ends of its 95 % interval. So 95 % of the values are inside on
average. Iterations and agents depend on each other, and the share of one run varies: as it does
where resampled chains, whole trajectories at a time, stand for our run, and others for the record.
Values that authors rounded are inside if a number that rounds to them is. Where our chains are
heavy-tailed there is no interval, and nothing is compared.

Authors record several runs, of which one is unlucky. The share that all of them together exceed in
99 of 100 cases is a run's quantile at 0.01 over their number (Bonferroni), however runs depend on
each other: ours of one experiment share their random numbers, and so their errors.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from concord.distances import positions
from concord.errors import ConcordError
from concord.laws.intervals import REPLICATES, mean_interval
from concord.laws.wasserstein import bootstrap_w2
from concord_studies.contracts import Label
from concord_studies.datasets.tables import load_table
from concord_studies.metrics import Measurement, Row, unmet_need, yields
from concord_studies.metrics._references import require_gaussian

LEAST = 0.01
PAIRS = 40  # of each resampled run with others


@yields(
    ("*_recorded", "recorded_*"),
    labels={
        "recorded_inside": Label("share of recorded values inside our intervals", "inside"),
        "recorded_least": Label(
            "share that all records of one law exceed in 99 of 100 cases", "least"
        ),
        "recorded_usual": Label("share that a run of one law has on average", "usual"),
        "recorded_beyond": Label(
            "largest relative deviation of recorded values outside our intervals", "beyond"
        ),
    },
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield the authors' recorded values, and the share of them inside our scaled intervals.

    <metric>_recorded: of each recorded agent, along iterations; without intervals, as the authors
    had one run, and none where they recorded none. recorded_inside: the share; recorded_usual and
    recorded_least: its mean of other runs of our law, and what all records together exceed.
    recorded_beyond: the largest abs(recorded/ours - 1) of a value outside; 0 if all are inside.
    """
    if m.recorded is None:
        raise unmet_need("recorded", "recorded numbers: the run's key recorded")
    names, ours, ends, again, theirs = _resample(m)
    record = np.full((len(m.trace.draw), len(names)), np.nan)
    table, metric = load_table(m.recorded.table, m.resources), m.recorded.metric
    places = {int(k): row for row, k in enumerate(m.trace.draw)}
    agents = [text.removesuffix(".0") for text in table["agent"].astype(str)]
    for at in np.flatnonzero(_matching_rows(table, m.recorded.where)):
        row, who = places.get(int(table["iteration"][at])), agents[at]
        if row is not None and who in names:
            record[row, names.index(who)] = table[metric][at]
    for name, values in zip(names, record.T, strict=True):
        for at in np.flatnonzero(np.isfinite(values)):
            yield Row(int(m.trace.draw[at]), name, f"{metric}_recorded", float(values[at]))
    have = np.isfinite(record) & (np.isfinite(ends).all(axis=0) | ~np.isfinite(ours))
    if not have.any():
        return
    low, high = np.sqrt(1 + m.trace.chains / (m.recorded.chains or m.trace.chains)) * ends[:, have]
    if (digits := m.recorded.digits) is not None:
        low, high, theirs = low - 0.5 / 10**digits, high + 0.5 / 10**digits, theirs.round(digits)

    def is_inside(apart: np.ndarray) -> np.ndarray:
        """Return the mask of recorded differences within the intervals of our values."""
        return (apart >= low) & (apart <= high)

    again, theirs = again[:, have], theirs[:, have]
    with np.errstate(invalid="ignore"):  # of what diverged
        inside = is_inside(record[have] - ours[have])
        beyond = np.where(inside, 0, np.abs(record[have] / ours[have] - 1)).max()
        pairs = (np.roll(theirs, by, axis=0) - again for by in range(1, 1 + PAIRS))
        of_law = [is_inside(apart).mean(axis=-1) for apart in pairs]
    level = LEAST / _count_records(table, m.recorded.where, m.recorded.like)
    numbers = {"inside": inside.mean(), "usual": np.mean(of_law), "beyond": beyond}
    numbers["least"] = np.quantile(of_law, level)
    finite = np.isfinite([ours[have], low, high]).all()
    for name, each in numbers.items():
        value = float(each) if finite else np.nan
        # A test's statistic: it decides as it is.
        yield Row(m.last, "network", f"recorded_{name}", value, value, value, trials=REPLICATES)


def _matching_rows(table: Mapping[str, np.ndarray], where: Mapping[str, Any]) -> np.ndarray:
    """Return the mask of a table's rows that have the given values."""
    keep = np.full(len(next(iter(table.values()))), True)
    for column, value in where.items():
        keep &= table[column] == (value if isinstance(value, str) else float(value))
    return keep


def _count_records(
    table: Mapping[str, np.ndarray], where: Mapping[str, Any], like: Mapping[str, str]
) -> int:
    """Return the number of runs that the table records beside this one."""
    keep = _matching_rows(
        table, {column: value for column, value in where.items() if column not in like}
    )
    return max(len(set(zip(*(table[column][keep] for column in like), strict=True))), 1)


def _resample(m: Measurement) -> tuple[list[str], np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return agents, our values, interval ends less the values, and two sets of resampled values.

    Resampled values, (replicate, draw, agent), are of as many chains as ours and as the record has.
    """
    stream, recorded = m.stream("bootstrap"), m.recorded
    if recorded is not None and recorded.metric != "w2":
        values, names = m.trace["accuracy"], m.agents
        if recorded.metric == "accuracy_over_agents":
            values, names = values.mean(axis=-1, keepdims=True), ["network"]
        mean, *ends = mean_interval(values)

        def bootstrap_means(count: int) -> np.ndarray:
            """Return bootstrap means of ``count`` runs drawn from our values."""
            weights = stream.multinomial(count, np.full(len(values), 1 / len(values)), REPLICATES)
            return np.tensordot(weights / count, values, 1)

        with np.errstate(invalid="ignore"):
            both = bootstrap_means(len(values)), bootstrap_means(recorded.chains or len(values))
            return names, mean, np.stack(ends) - mean, *both
    if recorded is not None and recorded.chains is not None:
        raise ConcordError("recorded.chains: distances of fewer chains are larger; remove it")
    names, draws = positions(m.trace)
    squares = np.empty((REPLICATES, *draws[0, ..., 0].shape))
    target, flat = require_gaussian(m.problem, "recorded"), squares.reshape(REPLICATES, -1)
    value, *ends = bootstrap_w2(draws, target, REPLICATES, stream, resampled=flat)
    with np.errstate(invalid="ignore"):
        excess = squares.mean(axis=0) - value**2  # the bias that resampling adds
        again = np.sqrt(np.maximum(squares - excess, 0.0))
        return names, value, np.stack(ends) - value, again, again
