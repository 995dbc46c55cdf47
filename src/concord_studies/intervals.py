"""Intervals of statistics over chains, and how far those of a replication can reach.

Standard deviations have Bonett's interval, shares of independent successes Wilson's, and other
statistics over chains are resampled. ``concord.laws.intervals`` has those of means.
"""

import math
from collections.abc import Sequence
from functools import cache

import numpy as np

from concord.laws.intervals import LEVEL, mean_interval, quantile
from concord.libraries import special

_ENDS = [50 * (1 - LEVEL), 50 * (1 + LEVEL)]


@cache
def replication_reach(count: float, numbers: int = 1) -> float:
    r"""Return the distance that a replication's interval can reach, in half-widths of the first.

    .. math::
        \sqrt 2 + \sqrt{F_{1 - 0.05/m}(n - 1, n - 1)}

    with n chains (``count``) in either set, and m intervals (``numbers``) that hold together. Two
    independent means differ by sqrt(2) half-widths at most, and the replication's half-width is at
    most that root times the first one, each with a probability of 95 %. So with 90 % and more, a
    rule that is met (or broken) throughout the wider intervals is so throughout the replication's.
    """
    degrees = count - 1
    ratio = (
        1.0 if math.isinf(count) else special().fdtri(degrees, degrees, 1 - (1 - LEVEL) / numbers)
    )
    return math.sqrt(2) + math.sqrt(ratio)


def mean_over_chains(values: np.ndarray) -> tuple[float, float | None, float | None]:
    """Return the mean over chains of a number, and the ends of its confidence interval.

    values: the number of each chain, (chains,). The ends are None where there is no interval.
    """
    mean, lo, hi = (float(end) for end in mean_interval(values))
    return (mean, lo, hi) if len(values) > 1 else (mean, None, None)


def spread_interval(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Return the standard deviation over chains (first axis) and the ends of its interval.

    Bonett's interval, on the scale of the logarithm of the variance, whose error follows from the
    kurtosis:

    .. math::
        \log(c s^2) \pm t c \sqrt{\frac{\hat\gamma - (n - 3) / n}{n - 1}}, \quad
        \hat\gamma = \frac{n \sum (x_i - m)^4}{(\sum (x_i - \bar x)^2)^2}, \quad
        c = \frac{n}{n - z}

    m is the mean trimmed by 1 / (2 sqrt(n - 4)) at either end, z the normal quantile. t is
    Student's with n - 1 degrees of freedom, where Bonett has z, which covers less. One chain says
    nothing about the spread: nan.

    Measured coverage with 10, 20 and 100 chains (40 000 trials each): 98, 96 and 95 % of normal
    ones, 94, 92 and 94 % of Beta(9, 1)'s (as skewed as accuracies are), 92, 89 and 92 % of
    exponential ones. The percentiles of resampled standard deviations have 78, 86 and 92 % already
    of normal ones.

    Source: D. G. Bonett, Computational Statistics & Data Analysis 50 (2006) 775-782.
    """
    chains = len(values)
    if chains == 1:
        unknown = np.full(values.shape[1:], np.nan)
        return unknown, unknown, unknown
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        variance = values.var(axis=0, ddof=1)
        cut = int(chains * min(0.5, 0.5 / math.sqrt(max(chains - 4, 1))))
        cut = min(cut, (chains - 1) // 2)
        middle = np.sort(values, axis=0)[cut : chains - cut].mean(axis=0)
        fourth = ((values - middle) ** 4).sum(axis=0)
        kurtosis = chains * fourth / ((chains - 1) * variance) ** 2
        correction = chains / (chains - quantile(math.inf))
        error = correction * np.sqrt((kurtosis - (chains - 3) / chains) / (chains - 1))
        center, half = np.log(correction * variance), quantile(chains) * error
        sd = np.sqrt(variance)
        ends = np.exp((center - half) / 2), np.exp((center + half) / 2)
    # Chains that are all the same, perhaps up to rounding, have no kurtosis.
    return sd, *(np.where(np.isnan(end), sd, end) for end in ends)


def percentiles(values: np.ndarray, percents: Sequence[float]) -> np.ndarray:
    """Return percentiles over chains (first axis) of values that may be infinite.

    percents: which ones, from 0 to 100. Returned: (percents, ...). A percentile between a number
    and infinity is infinite.
    """
    with np.errstate(invalid="ignore"):
        between = np.percentile(values, percents, axis=0)
    above = np.percentile(values, percents, axis=0, method="higher")
    return np.where(np.isnan(between), above, between)


def percentile_interval(resampled: np.ndarray) -> tuple[float, float]:
    """Return the ends of the central 95 % interval of resampled values, (replicates,)."""
    lo, hi = percentiles(resampled, _ENDS)
    return float(lo), float(hi)


def excess_interval(value: float, resampled: np.ndarray) -> tuple[float, float]:
    """Return the ends of the interval of a statistic that noise makes larger, such as a distance.

    value: the statistic of all chains. resampled: the statistic of resamples of chains,
    (replicates,).
    A statistic that cannot be below 0 is overestimated by a bias b, and in resamples by b once
    more, so that percentiles of the resamples may all lie above the value. b is estimated by the
    mean of the resamples minus the value. The ends are percentiles of the resamples minus 2b
    (lower) and minus b (upper), clipped at 0; ``wasserstein.bootstrap_w2`` says why.
    """
    if not np.isfinite(value):
        return value, value
    lo, hi = percentile_interval(resampled)
    bias = max(float(resampled.mean()) - value, 0.0)
    return min(max(lo - 2 * bias, 0.0), value), max(hi - bias, value)


def wilson(share: float, count: int) -> tuple[float, float]:
    """Return Wilson's interval of a probability, from the share of ``count`` successes."""
    z = quantile(math.inf)
    center = (share + z**2 / (2 * count)) / (1 + z**2 / count)
    half = z * np.sqrt(share * (1 - share) / count + (z / (2 * count)) ** 2)
    half /= 1 + z**2 / count
    return float(center - half), float(center + half)
