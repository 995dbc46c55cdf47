"""Intervals over chains: against scipy and closed forms, and how often they hold the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binomtest, norm, t

from concord.intervals import mean_interval, quantile, spread_interval, wilson


@pytest.mark.parametrize("count", [2, 10, 20, 1000])
@pytest.mark.parametrize("numbers", [1, 16])
def test_quantiles_are_students(count, numbers):
    expected = t.ppf(1 - 0.025 / numbers, count - 1)
    assert quantile(count, numbers) == pytest.approx(expected, rel=1e-9)


def test_quantiles_of_infinitely_many_chains_are_the_normal_laws():
    assert quantile(math.inf) == pytest.approx(norm.ppf(0.975), rel=1e-12)
    assert quantile(math.inf, 16) == pytest.approx(norm.ppf(1 - 0.025 / 16), rel=1e-12)


def test_intervals_of_means_against_scipy():
    values = np.random.default_rng(0).standard_normal((7, 3, 2))
    mean, lo, hi = mean_interval(values)
    error = values.std(axis=0, ddof=1) / math.sqrt(7)
    np.testing.assert_allclose(mean, values.mean(axis=0))
    np.testing.assert_allclose([lo, hi], t.interval(0.95, 6, mean, error), rtol=1e-12)


@pytest.mark.parametrize("chains", [2, 5, 10, 50])
def test_intervals_of_means_hold_the_mean_as_often_as_they_say(chains):
    """Of 10 000 normal means 5 % are missed, within four standard errors.

    With the normal law's quantile it were 30, 12, 8 and 5.6 %.
    """
    samples = np.random.default_rng(1).normal(3.0, 2.0, (chains, 10_000))
    _, lo, hi = mean_interval(samples)
    missed = np.mean((lo > 3) | (hi < 3))
    assert abs(missed - 0.05) < 4 * math.sqrt(0.05 * 0.95 / 10_000)


def test_one_chain_says_nothing_about_means():
    mean, lo, hi = mean_interval(np.full((1, 2), 0.9))
    assert (mean == 0.9).all() and np.isnan([lo, hi]).all()


def test_the_interval_of_the_spread_is_that_of_resampled_chains():
    rng = np.random.default_rng(0)
    values = 0.9 + 0.02 * rng.standard_normal((40, 3, 2))
    sd, lo, hi = spread_interval(values, np.random.default_rng(1))
    np.testing.assert_allclose(sd, values.std(axis=0, ddof=1))
    chosen = np.random.default_rng(1).integers(0, 40, size=(200, 40))
    resampled = values[chosen].std(axis=1, ddof=1)
    ends = np.percentile(resampled, [2.5, 97.5], axis=0)
    np.testing.assert_allclose([lo, hi], ends, atol=1e-12)


def test_one_chain_says_nothing_about_the_spread():
    values = spread_interval(np.full((1, 2, 2), 0.9), np.random.default_rng(0))
    assert np.isnan(values).all()


def test_wilson_interval_against_scipy():
    expected = binomtest(37, 50).proportion_ci(method="wilson")
    np.testing.assert_allclose(wilson(37 / 50, 50), tuple(expected), rtol=1e-10)
