"""Intervals that hold what they are about with 95 % probability.

Means over chains have Student's law, which matters for the ten or twenty chains of an expensive
sampler: with ten the interval is 15 % wider than the normal law's. Other statistics over chains are
resampled, and shares of independent successes have Wilson's interval.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

LEVEL = 0.95
REPLICATES = 200


@cache
def quantile(count: float, numbers: int = 1) -> float:
    """Return the half-width of a mean's interval in standard errors.

    Student's law with ``count`` - 1 degrees of freedom, the normal law where ``count`` is infinite:
    the quantile at 1 - (1 - LEVEL)/(2 ``numbers``), so that as many intervals hold together
    (Bonferroni's inequality).
    """
    from scipy.special import stdtrit

    return float(stdtrit(count - 1, 1 - (1 - LEVEL) / (2 * numbers)))


def mean_interval(
    values: np.ndarray, numbers: int = 1
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean over chains (first axis) and the ends of its interval.

    The interval is one of ``numbers`` that hold together. One chain says nothing about the spread:
    the ends are then not a number.
    """
    mean = values.mean(axis=0)
    if len(values) == 1:
        return mean, np.full_like(mean, np.nan), np.full_like(mean, np.nan)
    half = quantile(len(values), numbers) * values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return mean, mean - half, mean + half


def spread_interval(
    values: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the standard deviation over chains (first axis) and the ends of its interval.

    The interval is that of the standard deviation over resampled chains. One chain says nothing
    about the spread: nan.
    """
    chains = len(values)
    if chains == 1:
        unknown = np.full(values.shape[1:], np.nan)
        return unknown, unknown, unknown
    chosen = rng.integers(0, chains, size=(REPLICATES, chains))
    weights = np.stack([np.bincount(row, minlength=chains) for row in chosen]) / chains
    centered = (values - values.mean(axis=0)).reshape(chains, -1)
    variances = weights @ centered**2 - (weights @ centered) ** 2
    resampled = np.sqrt(np.maximum(variances, 0.0) * chains / (chains - 1))
    lo, hi = np.percentile(resampled, _ENDS, axis=0)
    shape = values.shape[1:]
    return values.std(axis=0, ddof=1), lo.reshape(shape), hi.reshape(shape)


def percentile_interval(resampled: np.ndarray) -> tuple[float, float]:
    """Return the ends of the central interval of resampled values."""
    lo, hi = np.percentile(resampled, _ENDS)
    return float(lo), float(hi)


def wilson(share: float, count: int) -> tuple[float, float]:
    """Return Wilson's interval of a probability, from the share of ``count`` successes."""
    z = quantile(math.inf)
    center = (share + z**2 / (2 * count)) / (1 + z**2 / count)
    half = z * np.sqrt(share * (1 - share) / count + (z / (2 * count)) ** 2)
    half /= 1 + z**2 / count
    return float(center - half), float(center + half)


_ENDS = [50 * (1 - LEVEL), 50 * (1 + LEVEL)]
