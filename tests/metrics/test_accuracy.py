"""The interval of the spread of accuracies."""

from __future__ import annotations

import numpy as np

from concord.metrics.accuracy import spread_interval


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
