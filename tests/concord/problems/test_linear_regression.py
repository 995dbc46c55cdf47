"""Linear regression: its posterior and the covariance of its mini-batch gradients."""

import numpy as np
import pytest

from concord.hints import choices
from concord.minibatches import Batches
from concord.problems._regression import PriorShare
from concord.problems.from_options import from_options
from concord.problems.kinds import linear_regression

AGENTS = 4


def build(agents=AGENTS, **options):
    return from_options(linear_regression)(agents, **{"points": 30, "dim": 3, **options})


SHARES = choices(PriorShare)


@pytest.mark.parametrize("share", SHARES)
def test_posterior_is_a_least_squares_fit_of_data_and_prior(share):
    """The prior as three more observations of zero; QR instead of normal equations."""
    problem = build(noise_sd=0.7, prior_variance=2.5, feature_variance=3.0, prior_share=share)
    features, targets = problem.data.all_rows()
    rows = np.vstack([features / 0.7, np.eye(3) / np.sqrt(2.5)])
    mean = np.linalg.lstsq(rows, np.concatenate([targets / 0.7, np.zeros(3)]), rcond=None)[0]
    inverse = np.linalg.inv(np.linalg.qr(rows, mode="r"))
    np.testing.assert_allclose(problem.posterior.mean, mean, rtol=1e-11)
    np.testing.assert_allclose(problem.posterior.cov, inverse @ inverse.T, rtol=1e-10)


def test_shares_of_the_prior_add_up():
    x = np.random.default_rng(0).standard_normal((5, AGENTS, 3))
    split, omitted, whole, twice = (build(prior_share=share) for share in SHARES)
    prior = (x**2).sum(axis=-1) / 2
    bare = omitted.potential(x)
    np.testing.assert_allclose(split.potential(x) - bare, prior / AGENTS, atol=1e-12)
    np.testing.assert_allclose(whole.potential(x) - bare, prior, atol=1e-12)
    np.testing.assert_allclose(twice.potential(x) - bare, 2 * prior, atol=1e-12)
    np.testing.assert_array_equal(split.data.features, whole.data.features)


def test_the_pool_of_points_does_not_depend_on_the_number_of_agents():
    few, many = build(agents=2), build(agents=7)
    one, other = (np.column_stack(problem.data.all_rows()) for problem in (few, many))
    np.testing.assert_array_equal(np.sort(one, axis=0), np.sort(other, axis=0))
    np.testing.assert_allclose(few.posterior.mean, many.posterior.mean, rtol=1e-12)
    assert few.counts.sum() == many.counts.sum() == 30


@pytest.mark.parametrize("batch_size", [1, 3])
@pytest.mark.parametrize("scale", ["data", "none", "mean"])
@pytest.mark.parametrize("pool", ["all", "all_but_last"])
def test_moments_of_mini_batches_are_those_of_all_batches(batch_size, scale, pool):
    """Enumerated over points; over x by sigma points, exact for what is quadratic in x."""
    problem = build(points=18, dim=2, noise_sd=0.8)
    rng = np.random.default_rng(4)
    mean = rng.standard_normal((AGENTS, 2))
    root = rng.standard_normal((AGENTS, 2, 2))
    cov = root @ root.swapaxes(1, 2)
    sigma = np.concatenate([root.swapaxes(1, 2), -root.swapaxes(1, 2)], axis=1) * np.sqrt(2)
    x = (mean[:, None] + sigma).swapaxes(0, 1)  # (4 sigma points, agents, 2)
    batches = Batches(batch_size=batch_size, batch_scale=scale, batch_pool=pool)
    gram, shift = problem.batch_mean(batches)
    centre, prior = np.einsum("ade,cae->cad", gram, x) - shift, problem.prior_precision * x
    expected, average = np.zeros((AGENTS, 2, 2)), np.zeros_like(x)
    for agent, count in enumerate(problem.counts - (pool == "all_but_last")):
        for row in range(count):
            rows = np.full((4, AGENTS, 1), row) % problem.counts[:, None]
            found = (problem.batch_gradient(x, rows) - prior)[:, agent]
            if scale != "data":
                found *= {"none": batch_size, "mean": 1}[scale] / problem.counts[agent]
            error = found + prior[:, agent] - centre[:, agent]
            average[:, agent] += (found + prior[:, agent]) / count
            expected[agent] += error.T @ error / (4 * count)
    np.testing.assert_allclose(average, centre, rtol=1e-11)
    found = problem.batch_noise_covariance(mean, cov, batches)
    np.testing.assert_allclose(found, expected / batch_size, rtol=1e-10)
    if (scale, pool) == ("data", "all"):
        np.testing.assert_allclose(gram, problem.gram, rtol=1e-12)
        np.testing.assert_allclose(shift, problem.shift, rtol=1e-12)
