"""What calibration rests on: ranks, p-values and many data sets at once."""

import math

import numpy as np
import pytest

from calibration import models
from calibration.models import MODELS
from calibration.ranks import NARROW, WIDE, distance, least, p_value, width


def test_p_values_are_kolmogorovs():
    rng = np.random.default_rng(0)
    draws = rng.random((1000, 50))
    p = np.array([p_value(u) for u in draws])
    for level in (0.01, 0.05, 0.3):
        assert (p < level).mean() == pytest.approx(level, abs=5 * math.sqrt(level / 1000))
    assert distance(np.array([0.5])) == 0.5
    # The exact law of one rank: distance d or more has probability 2 - 2d.
    assert p_value(np.array([0.2])) == pytest.approx(2 - 2 * 0.8)
    assert p_value(draws[0], 1.0) == 1.0


def test_slack_allows_laws_so_far_from_uniform_and_no_farther():
    rng = np.random.default_rng(1)
    u = rng.random(20_000) ** 1.1  # u^(1/1.1) differs from u by 0.035
    assert p_value(u) < 1e-9 and p_value(u, 0.036) > 0.01 and p_value(u, 0.01) < 1e-4


def test_least_is_bonferronis():
    rng = np.random.default_rng(2)
    ranks = {"right": rng.random(100), "wrong": rng.random(100) / 2}
    p, name = least(ranks)
    assert name == "wrong" and p == 2 * p_value(ranks["wrong"])


STRETCHED = pytest.mark.parametrize(
    ("factor", "expected"), [(1.0, None), (1.4, WIDE), (0.7, NARROW)]
)


@STRETCHED
@pytest.mark.parametrize("name", MODELS)
def test_draws_of_the_grid_are_uniform_and_stretched_ones_are_seen(name, factor, expected):
    posterior = models.Posterior(models.build(MODELS[name], 1, "grid"))
    mean, _ = posterior.grid.moments()
    draws = posterior.grid.sample(4000, np.random.default_rng(3))
    seen = posterior.ranks(mean + factor * (draws - mean))
    p, _ = least(seen)
    assert p > 1e-3 if expected is None else p < 1e-9 and width(seen, "draws") == expected


@STRETCHED
def test_draws_of_exact_posteriors_are_calibrated_and_stretched_ones_are_seen(factor, expected):
    """Parameters, data and problem of linear regression belong together, for many data sets."""
    sets, among, rng = 500, 9, np.random.default_rng(4)
    truth, problems = models.data_sets("linear_regression", 2, sets, "test")
    roots = [factor * np.linalg.cholesky(problem.posterior.cov) for problem in problems]
    z = rng.standard_normal((among, sets, 2))
    draws = np.array([problem.posterior.mean for problem in problems])
    draws = draws + np.einsum("rde,lre->lrd", roots, z)
    problem = models.together("linear_regression", problems)
    seen = models.truth_ranks(problem, truth, draws, rng)
    p, _ = least(seen)
    assert p > 1e-3 if expected is None else p < 1e-9 and width(seen, "truth") == expected


def test_draws_that_ignore_the_data_are_seen_by_the_density_alone():
    sets, among, rng = 500, 9, np.random.default_rng(5)
    truth, problems = models.data_sets("logistic_regression", 2, sets, "test")
    problem = models.together("logistic_regression", problems)
    seen = models.truth_ranks(problem, truth, rng.standard_normal((among, sets, 2)), rng)
    assert p_value(seen.pop("density")) < 1e-12
    assert least(seen)[0] > 1e-3


@pytest.mark.parametrize("name", MODELS)
def test_many_data_sets_have_each_their_own_gradient(name):
    sets, chains = 4, 12
    _, problems = models.data_sets(name, 3, sets, "test")
    many = models.together(name, problems)
    x, curvature = np.random.default_rng(6).standard_normal((chains, 3, 2)), np.array([1, 2, 0.5])
    found, linear = many.gradient(x), np.ones_like(x)
    for r, problem in enumerate(problems):
        own = x[r::sets]
        np.testing.assert_allclose(found[r::sets], problem.gradient(own), rtol=1e-12, atol=1e-12)
        expected = problem.potential(own)
        np.testing.assert_allclose(many.potential(x)[r::sets], expected, rtol=1e-12)
        if hasattr(many, "minimize"):
            whole = many.minimize(linear, curvature, x)[0]
            alone = problem.minimize(linear[r::sets], curvature, own)[0]
            np.testing.assert_allclose(whole[r::sets], alone, atol=1e-9)
