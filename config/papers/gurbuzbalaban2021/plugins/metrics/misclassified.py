"""Number of misclassified points, as a distribution over chains."""

from collections.abc import Iterator

import numpy as np

from concord.laws.intervals import REPLICATES
from concord_studies.contracts import Label
from concord_studies.intervals import percentile_interval, percentiles
from concord_studies.metrics import Measurement, Row, series, yields


@yields(
    tuple(
        f"misclassified_{statistic}"
        for statistic in ("mean", "median", "min", "max", "q25", "q75", "whisker_lo", "whisker_hi")
    ),
    records=("misclassified",),
    apart=True,
    labels={
        "misclassified_median": Label("points classified wrong, median over chains"),
        "misclassified_mean": Label("points classified wrong, mean over chains"),
    },
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield quartiles, whiskers, extremes and mean over chains of the misclassified points.

    Whiskers reach the outermost chain within 1.5 interquartile ranges of the box. Median and mean
    carry bootstrap intervals over chains. A chain that diverged is worse than any other.
    """
    counts = m.trace["misclassified"]
    chains = counts.shape[0]
    chosen = m.stream("misclassified").integers(0, chains, size=(REPLICATES, chains))
    for column, agent in enumerate(m.agents):
        for row, k in enumerate(m.trace.draw):
            values = np.sort(counts[:, row, column])
            q25, median, q75 = percentiles(values, [25, 50, 75])
            reach = 1.5 * (q75 - q25) if q25 < q75 else 0.0
            inside = values[(values >= q25 - reach) & (values <= q75 + reach)]
            resampled = values[chosen]
            numbers = {
                "min": values[0],
                "whisker_lo": min(inside[0], q25),
                "q25": q25,
                "q75": q75,
                "whisker_hi": max(inside[-1], q75),
                "max": values[-1],
                "median": (median, *_bootstrap_interval(median, np.median(resampled, axis=1))),
                "mean": (mean := values.mean(), *_bootstrap_interval(mean, resampled.mean(axis=1))),
            }
            yield from series([k], agent, {f"misclassified_{n}": v for n, v in numbers.items()})


def _bootstrap_interval(value: float, resampled: np.ndarray) -> tuple[float, float]:
    """Return the percentile interval of resampled values; (value, value) if value is not finite."""
    return percentile_interval(resampled) if np.isfinite(value) else (value, value)
