"""Accuracy of each agent's predictions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from concord.metrics import LEVEL, REPLICATES, Measurement, Row, mean_interval


def rows(m: Measurement) -> Iterator[Row]:
    """Yield each agent's mean over chains, and the spread over chains.

    The mean carries a normal interval, the standard deviation a bootstrap interval over chains.
    """
    values = m.trace["accuracy"]
    mean, lo, hi = mean_interval(values)
    sd, sd_lo, sd_hi = spread_interval(values, m.stream("accuracy_sd"))
    for column, agent in enumerate(m.agents):
        for row, k in enumerate(m.trace.draw):
            at = row, column
            yield k, agent, "accuracy_mean", mean[at], lo[at], hi[at]
            yield k, agent, "accuracy_sd", sd[at], sd_lo[at], sd_hi[at]


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
    lo, hi = np.percentile(resampled, [50 * (1 - LEVEL), 50 * (1 + LEVEL)], axis=0)
    shape = values.shape[1:]
    return values.std(axis=0, ddof=1), lo.reshape(shape), hi.reshape(shape)
