"""Posteriors in a ball: exact laws and starts."""

import numpy as np
import pytest

import concord
from concord.errors import ConcordError


def in_ball(radius=1.0, model="linear_regression", agents=4, **options):
    return concord.problems.ball(agents, radius=radius, model=model, seed=3, **options)


@pytest.mark.parametrize("model", ["linear_regression", "logistic_regression"])
def test_the_posterior_in_a_ball_is_the_likelihood_cut_off(model):
    """Moments are those of self-normalized uniform points in the ball, within five errors."""
    problem = in_ball(model=model, options={"points": 12})
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, (100_000, 2))
    x = x[(x**2).sum(axis=1) <= 1]
    log = -problem.potential(np.repeat(x[:, None], 4, axis=1)).sum(axis=1)
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    mean = weight @ x
    error = np.sqrt((weight**2) @ (x - mean) ** 2)
    assert (np.abs(problem.reference.moments()[0] - mean) < 5 * error + 1e-4).all()
    draws = problem.reference.sample(2000, rng)
    assert np.linalg.norm(draws, axis=1).max() < 1.01
    levels = np.array([0.25, 0.75])
    quantiles = problem.reference.quantiles(levels)
    np.testing.assert_allclose(quantiles, np.quantile(draws, levels, axis=0), atol=0.1)


def test_starts_are_uniform_in_the_ball_or_coordinates_of_several_points():
    shape, rng = (2000, 2, 2), np.random.default_rng(2)
    inside = in_ball(2.0).initial(shape, rng)
    radius = np.linalg.norm(inside, axis=-1)
    assert radius.max() <= 2
    # r^2 is uniform on [0, 4]
    assert abs((radius**2).mean() - 2) < 5 * np.sqrt(16 / 12 / 4000)
    mixed = in_ball(2.0, starts="coordinates").initial(shape, rng)
    outside = (np.linalg.norm(mixed, axis=-1) > 2).mean()
    assert 0.05 < outside < 0.15
    assert abs((mixed**2).mean() - 1) < 0.05  # the marginals are the same


def test_a_prior_in_the_options_and_more_parameters_are_refused():
    with pytest.raises(ConcordError, match="the prior is the ball; remove prior_variance"):
        in_ball(options={"points": 10, "prior_variance": 2.0})
    with pytest.raises(ConcordError, match="of 3 parameters is not known"):
        _ = in_ball(options={"points": 10, "dim": 3}).reference
