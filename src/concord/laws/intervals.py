"""Intervals that contain the mean over chains with 95 % probability.

They use Student's t, which matters for the ten or twenty chains of an expensive sampler: with ten,
the interval is 15 % wider than the normal one. Where a number is not finite, since its run
diverged, both ends are that number. One chain has no interval, and every interval contains its
estimate (``widen``).
"""

from functools import cache

import numpy as np

from concord.libraries import special

LEVEL = 0.95
REPLICATES = 200


@cache
def quantile(count: float, numbers: int = 1) -> float:
    """Return the half-width of a mean's interval, in standard errors.

    Student's t with ``count`` - 1 degrees of freedom, normal where ``count`` is infinite: the
    quantile at 1 - (1 - LEVEL)/(2 ``numbers``), so that as many intervals hold together
    (Bonferroni's inequality).
    """
    return float(special().stdtrit(count - 1, 1 - (1 - LEVEL) / (2 * numbers)))


def mean_interval(
    values: np.ndarray, numbers: int = 1
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean over chains (first axis) and the ends of its interval.

    The interval is one of ``numbers`` that hold together. One chain says nothing about the spread:
    the ends are then not a number.

    It is exact for normal values. Measured coverage with 5, 10, 20 and 100 of others (40 000 trials
    each): 92, 92, 93 and 95 % of logarithms of chi-square ones with one degree of freedom, as the
    arena's scores are; 91, 92, 93 and 94 % of lognormal ones with sigma = 1/2; 82, 84, 87 and 92 %
    with sigma = 1.
    """
    mean = values.mean(axis=0)
    half = np.full_like(mean, np.nan)
    with np.errstate(invalid="ignore"):  # inf - inf
        if len(values) > 1:
            half = quantile(len(values), numbers) * values.std(axis=0, ddof=1)
            half = half / np.sqrt(len(values))
        return mean, *(np.where(np.isinf(mean), mean, mean + end) for end in (-half, half))


def widen(value: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of intervals, widened by rounding errors so as to contain the estimate.

    value, lo, hi: estimates and ends, arrays of one shape. Where the estimate or an end is not a
    number both ends are nan: there is no interval.
    """
    unknown = np.isnan(value) | np.isnan(lo) | np.isnan(hi)
    lo, hi = np.minimum(lo, value), np.maximum(hi, value)
    return np.where(unknown, np.nan, lo), np.where(unknown, np.nan, hi)
