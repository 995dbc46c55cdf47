"""References: posteriors by draws or weighted points, and those that are not known."""

import numpy as np
import pytest

import concord
from concord.errors import ConcordError
from concord.laws.gaussian import Gaussian
from concord.laws.quadrature import Grid
from concord.laws.reference_laws import Draws
from concord.problems.gaussian_fit import LEAST_DRAWS, estimate_posterior
from concord.reference import Reference, WithReference, reference_of

RNG = np.random.default_rng(7)


def logistic(dim, prior_scale):
    """Return a logistic regression of 200 rows over four agents."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((200, dim))
    y = rng.random(200) < 1 / (1 + np.exp(-X.sum(axis=1)))
    return concord.problems.logistic_regression(X, y, agents=4, prior_scale=prior_scale)


def test_weighted_points_have_the_moments_of_the_posterior():
    """Those of a grid in two dimensions: to 5 errors."""
    problem, dim = logistic(2, 4.0), 2
    exact, points = problem.reference, estimate_posterior(problem)
    assert isinstance(exact, Grid)
    assert points.draws > 5000
    error = 5 * np.sqrt(1 / points.draws + 1 / exact.draws)
    for reference, estimate in ((exact, points), (exact, Draws(points.sample(20_000, RNG)))):
        means, variances = reference.monomials()
        assert (abs(estimate.monomials()[0] - means) < 2 * error * np.sqrt(variances)).all()
    mean, cov = exact.moments()
    root = np.linalg.inv(np.linalg.cholesky(cov))
    assert (abs(root @ (points.moments()[0] - mean)) < error).all()
    assert (abs(root @ points.moments()[1] @ root.T - np.eye(dim)) < 2 * error).all()


def test_wide_priors_of_thirty_parameters_have_weighted_points():
    reference = logistic(30, 10.0).reference
    assert reference.draws > 3 * LEAST_DRAWS and reference.weights is not None


def bent(x):
    """Return the gradient of (x_1^2 + 30 (x_2 - x_1^2)^2) / 4 for each of two agents."""
    lift = 60 * (x[..., 1] - x[..., 0] ** 2)
    return np.stack([2 * x[..., 0] - 2 * x[..., 0] * lift, lift], axis=-1) / 4


REFUSED = {
    "bent": (concord.Problem(bent, agents=2, dim=2), "too far from a Gaussian"),
    "two modes": (concord.Problem(lambda x: x**3 - 4 * x + 0.1, agents=2, dim=1), "second mode"),
    "heavy tails": (concord.Problem(lambda x: 2 * x / (3 + x**2), agents=2, dim=1), "tails fall"),
    "no prior": (concord.Problem(lambda x: 0 * x, agents=2, dim=1), "no Gaussian fits it"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_posteriors_that_no_gaussian_is_near_are_refused(case):
    problem, message = REFUSED[case]
    with pytest.raises(ConcordError, match=f"posterior: .*{message}.*; give draws of it"):
        estimate_posterior(problem)


def test_distances_take_a_problem_its_posterior_or_draws():
    problem, draws = logistic(5, 0.02), RNG.standard_normal((4000, 5))
    trace = concord.sample("de_sgld", problem, "ring", step_size=0.01, iterations=40, chains=40)
    for measure in (concord.w2, concord.bias2):
        one, other = measure(trace, problem), measure(trace, problem.reference)
        assert one.identical(other) and one.posterior_draws == problem.reference.draws
        far = measure(trace, draws)
        assert far.posterior_draws == 4000 and (far.value > 0).all()
    assert concord.compare([trace], problem).bias2.item() == pytest.approx(
        concord.bias2(trace, problem).value[-1, :-1].max().item()
    )
    gaussian = concord.problems.gaussian(agents=3)
    law = concord.law("de_sgld", gaussian, "ring", step_size=0.001, iterations=5)
    assert concord.w2(law, gaussian).identical(concord.w2(law, gaussian.posterior))


def test_what_is_not_known_is_refused():
    assert isinstance(reference_of(concord.problems.gaussian(agents=3)), Gaussian)
    assert isinstance(reference_of(concord.problems.gaussian(agents=3)), Reference)
    bare = concord.Problem(lambda x: x, agents=2, dim=2)
    assert not isinstance(bare, WithReference)
    with pytest.raises(ConcordError, match="the posterior of Problem is not known"):
        reference_of(bare)
