"""Posteriors on an interval and in a ball: exact laws, starts, errors of gradients."""

import numpy as np
import pytest

from concord import streams
from concord.errors import ConcordError
from concord.sampling.partition import Partition
from concord_studies.problems import ball, polynomial

EQUAL = Partition.parse({"kind": "equal"}, "partition")


def stream(what):
    return streams.generator(3, what)


def on_interval(agents=30, **options):
    return polynomial.build(polynomial.Params(**options), agents, EQUAL, stream, None)


def in_ball(radius=1.0, model="linear_regression", agents=4, **given):
    params = ball.Params(radius=radius, model=model, **given)
    ball.check(params, agents)
    return ball.build(params, agents, EQUAL, stream, None)


def moments(law):
    mean, cov = law.moments()
    return mean[0], np.sqrt(cov[0, 0])


def test_the_laws_of_depsgld2026_are_those_of_quadrature_done_elsewhere():
    """Target, envelope of one chain, and what 30 agents with the whole potential tend to."""
    assert moments(on_interval().reference) == pytest.approx((0.2702, 0.4960), abs=1e-4)
    assert moments(on_interval().softened(0.0099)) == pytest.approx((0.3230, 0.5396), abs=1e-4)
    thirty = on_interval(coefficients=tuple(30 * c for c in polynomial.SOURCE))
    assert moments(thirty.softened(3.3e-4)) == pytest.approx((0.7538, 0.1273), abs=1e-4)


def test_a_flat_density_is_uniform():
    law = on_interval(coefficients=(0.0,), interval=(1.0, 3.0)).reference
    np.testing.assert_allclose(law.quantiles(np.array([0.1, 0.5])), [[1.2], [2.0]], atol=1e-9)
    assert law.third == pytest.approx(0, abs=1e-9)
    assert law.fourth == pytest.approx(1 / 5, rel=1e-6)  # of (b - a) / 2 = 1
    draws = law.sample(4000, np.random.default_rng(0))
    assert abs(draws.mean() - 2) < 4 * np.sqrt(1 / 3 / 4000)


@pytest.mark.parametrize("share", ["split", "whole"])
def test_errors_of_gradients_have_their_standard_deviation(share):
    problem = on_interval(agents=2, share=share, error_sd=0.5)
    x = np.full((1, 2, 1), 0.3)
    exact = problem.gradient(x)
    assert exact[0, 0, 0] == pytest.approx(
        (0.3 + 0.5 * 0.3**3 - 1) / (2 if share == "split" else 1)
    )
    rows = np.arange(polynomial.ERRORS)
    errors = [
        problem.batch_gradient(x, np.full((1, 2, 1), row))[0, 0, 0] - exact[0, 0, 0] for row in rows
    ]
    assert np.mean(errors) == pytest.approx(0, abs=1e-9)
    assert np.std(errors) == pytest.approx(0.5)
    every = problem.batch_gradient(x, np.tile(rows, (1, 2, 1)))
    np.testing.assert_allclose(every, exact)


def test_an_empty_interval_is_refused():
    with pytest.raises(ConcordError, match="nothing lies between 1 and 0"):
        polynomial.check(polynomial.Params(interval=(1.0, 0.0)), 2)


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
    found = problem.reference.quantiles(levels)
    np.testing.assert_allclose(found, np.quantile(draws, levels, axis=0), atol=0.1)


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
