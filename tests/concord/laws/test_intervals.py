"""Intervals of means over chains: against scipy, and what is not finite."""

import math

import numpy as np
import pytest
from scipy.stats import norm, t

from concord.laws.intervals import mean_interval, quantile, widen


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


def test_one_chain_says_nothing_about_means():
    mean, lo, hi = mean_interval(np.full((1, 2), 0.9))
    assert (mean == 0.9).all() and np.isnan([lo, hi]).all()


def test_an_interval_contains_its_estimate():
    """Whatever the ends; unknown ones, and those of what is not a number, are none."""
    kinds = np.array([0.0, 1.0, -1.0, np.nextafter(1, 2), 1e300, math.inf, -math.inf, math.nan])
    value, lo, hi = np.meshgrid(kinds, kinds, kinds)
    low, high = widen(value, lo, hi)
    unknown = np.isnan(value) | np.isnan(lo) | np.isnan(hi)
    assert (np.isnan(low) == unknown).all() and (np.isnan(high) == unknown).all()
    assert ((low <= value) & (value <= high))[~unknown].all()
    sound = (lo <= value) & (value <= hi)
    assert (low == lo)[sound].all() and (high == hi)[sound].all()
