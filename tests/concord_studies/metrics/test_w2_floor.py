"""The distance from the posterior that exact draws of it show: limits and fresh fits."""

import numpy as np
import pytest

from concord.laws.gaussian import Gaussian
from concord.laws.wasserstein import fit, w2
from concord_studies.metrics.w2 import w2_floor


def spd(rng: np.random.Generator, dim: int, *shape: int) -> np.ndarray:
    factor = rng.standard_normal((*shape, dim, 2 * dim))
    return factor @ factor.swapaxes(-1, -2)


def test_floor_is_what_fits_of_exact_draws_show():
    target = Gaussian(np.array([3.0]), np.array([[4.0]]))
    mean, low, high = w2_floor(target, 500, np.random.default_rng(0), replicates=4000)
    # One dimension, many draws: n W2^2 / V tends to Z_1^2 + Z_2^2 / 2, so the mean of the root is
    # sqrt(pi/2) times the mean of sqrt(cos^2 + sin^2 / 2) over the circle.
    angle = np.linspace(0, 2 * np.pi, 10_000, endpoint=False)
    shape = np.sqrt(np.cos(angle) ** 2 + np.sin(angle) ** 2 / 2).mean()
    expected = 2 / np.sqrt(500) * np.sqrt(np.pi / 2) * shape
    # The spread of one fit is half the mean; 4000 fits, four standard errors, and O(1/n) terms.
    assert mean == pytest.approx(expected, rel=4 * 0.55 / np.sqrt(4000) + 0.002)
    assert 0 < low < mean < high


def test_floor_interval_holds_that_share_of_fits():
    rng = np.random.default_rng(1)
    target = Gaussian(np.array([1.0, -2.0, 0.0]), spd(rng, 3))
    mean, low, high = w2_floor(target, 100, rng, replicates=2000, level=0.8)
    factor = np.linalg.cholesky(target.cov)
    draws = rng.standard_normal((100, 2000, 3)) @ factor.T + target.mean
    fresh = w2(*fit(draws), target)
    # Difference of two shares, and of two means, of 2000 fits: four standard errors.
    assert np.mean((low <= fresh) & (fresh <= high)) == pytest.approx(0.8, abs=4 * 0.4 * 0.0316)
    assert mean == pytest.approx(fresh.mean(), abs=4 * fresh.std() * 0.0316)
