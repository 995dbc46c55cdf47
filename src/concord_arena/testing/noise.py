"""A test that a sampler's noise is independent and of constant size."""

import numpy as np
from scipy import stats

# The chance that a right sampler fails by any statistic of one case. A run of all checks has a few
# dozen cases, so that it is accused with less than 1e-8.
LEVEL = 1e-10


def least_p(ends: np.ndarray) -> tuple[float, str]:
    """Return the least p-value over all statistics of noise, corrected, and the name of its defect.

    The correction multiplies by the number of statistics (Bonferroni).

    ends: positions after one step from the same state, (blocks, steps, chains, coordinates).

    The statistics of each coordinate are: the sum of squares of chains' means (chi-squared where
    chains are independent); correlations of the first two blocks, and of steps one to four apart
    (normal); and the logarithm of the ratio of variances of early and late steps (normal).
    """
    z = ends - ends.mean(axis=(1, 2), keepdims=True)
    sd = z.std(axis=(1, 2), keepdims=True)
    moves = (sd > 1e-12).all(axis=(0, 1, 2))
    if not moves.any():
        return 1.0, "there is no noise"
    z = z[..., moves] / sd[..., moves]
    blocks, steps, chains, count = z.shape
    fourth = (z**4).mean(axis=(0, 1, 2))
    # A coordinate's own kurtosis makes the sum vary more than that of normal numbers.
    sums = chains * (z.mean(axis=2) ** 2).sum(axis=(0, 1)) / (1 + fourth / (2 * chains))
    found = [(float(stats.chi2.sf(sums, blocks * steps).min()), "chains share noise")]
    for lag in (1, 2, 3, 4):
        along = (z[:, lag:] * z[:, :-lag]).mean(axis=(0, 1, 2))
        along = along * np.sqrt(blocks * (steps - lag) * chains)
        found.append((_two_sided(along), f"noise comes again after {lag} steps"))
    across = (z[0] * z[1]).mean(axis=(0, 1)) * np.sqrt(steps * chains)
    found.append((_two_sided(across), "noise comes again in another block of chains"))
    early, late = (part.var(axis=(0, 1, 2)) for part in (z[:, : steps // 4], z[:, steps // 2 :]))
    spread = np.sqrt(2 * np.maximum(fourth - 1, 2) / (blocks * (steps // 4) * chains))
    with np.errstate(divide="ignore"):
        found.append((_two_sided(np.log(late / early) / spread), "noise changes with time"))
    p, what = min(found)
    return min(1.0, p * len(found) * count), what


def _two_sided(z: np.ndarray) -> float:
    """Return the least two-sided p-value of standard normal statistics z."""
    return float(2 * stats.norm.sf(np.abs(z)).min())
