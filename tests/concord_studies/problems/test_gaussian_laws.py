"""Normal points and products of normal laws: their posteriors, in closed form."""

import numpy as np
import pytest

import concord
import concord_studies  # noqa: F401  which adds the kind
from concord.errors import ConcordError
from concord_studies.problems import gaussian_location

COVARIANCE = ((2.0, 0.5), (0.5, 1.0))


def location(agents=3, **options):
    return concord.problems.gaussian_location(agents, points=60, noise=COVARIANCE, **options)


def test_the_mean_of_normal_points_has_the_conjugate_posterior():
    problem = location(prior=4.0)
    points = problem.data.features.reshape(-1, 2)
    precision = 60 * np.linalg.inv(COVARIANCE) + np.eye(2) / 4
    np.testing.assert_allclose(problem.posterior.cov, np.linalg.inv(precision))
    total = np.linalg.inv(COVARIANCE) @ points.sum(axis=0)
    np.testing.assert_allclose(problem.posterior.mean, np.linalg.solve(precision, total))
    flat = location()
    np.testing.assert_allclose(flat.posterior.mean, points.mean(axis=0))


def test_agents_of_other_means_differ_by_their_spread():
    """Means of 20 points vary by sqrt(cov / 20), and by the spread besides."""
    means = [location(spread=s).data.features.mean(axis=1) for s in (0.0, 5.0)]
    assert means[0].std() < 1 < 2 < (means[1] - means[0]).std() < 8


def test_covariances_that_are_none_are_refused():
    for wrong in (((1.0, 2.0), (2.0, 1.0)), ((1.0, 0.0),), ((1.0, 0.5), (0.4, 1.0))):
        with pytest.raises(ConcordError, match="noise: its rows are no symmetric"):
            gaussian_location.check(gaussian_location.Params(noise=wrong), 2)
    with pytest.raises(ConcordError, match="3 rows are no covariance of 2 coordinates"):
        location(prior=((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)))
