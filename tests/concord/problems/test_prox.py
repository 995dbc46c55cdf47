"""Proximal steps against independent solvers, and where the numbers are hard."""

import numpy as np
import pytest

from concord.errors import ConcordError
from concord.options import build
from concord.problems.from_options import from_options
from concord.problems.kinds import linear_regression, logistic_regression
from concord.sampling.partition import AgentData


def problem_of(module, agents: int, **options):
    return from_options(module)(agents, partition="consecutive", **options)


def logistic_of(features: np.ndarray, targets: np.ndarray, prior_scale: float = 10.0):
    agents, points, _ = features.shape
    params = build(logistic_regression.Params, {"prior_scale": prior_scale}, "problem")
    data = AgentData(features, targets, np.full(agents, points))
    return logistic_regression.LogisticRegression(data, params)


def gradient_norms(problem, x, curvature, linear) -> np.ndarray:
    gradient = problem.gradient(x)
    return np.linalg.norm(gradient + curvature[:, None] * x - linear, axis=-1)


def solve(problem, curvature, linear, start=None) -> np.ndarray:
    x0 = np.zeros_like(linear) if start is None else start
    copies = linear.copy(), x0.copy()
    x, cost = problem.minimize(linear, curvature, x0)
    assert np.ndim(cost) == 0 or cost.shape == linear.shape[:2]
    for array, before in zip((linear, x0), copies, strict=True):
        np.testing.assert_array_equal(array, before)
    return x


def test_inverses_are_those_of_the_curvature_at_hand():
    """They are kept for the last one, which another agent's or an array written into may not be."""
    problem = problem_of(linear_regression, 4, points=80, dim=2)
    rng = np.random.default_rng(1)
    linear, curvature = rng.standard_normal((5, 4, 2)), rng.uniform(1, 3, 4)
    for _ in range(3):
        x = solve(problem, curvature, linear)
        assert gradient_norms(problem, x, curvature, linear).max() < 1e-11
        curvature += 1


def test_logistic_prox_on_the_papers_data_everywhere():
    """Exact to the stated 1e-10 in the gradient; strong convexity c turns that into 1e-10 / c."""
    problem = problem_of(
        logistic_regression,
        20,
        dim=3,
        points_per_agent=50,
        truth_variance=10.0,
        prior_scale=10.0,
        legacy_seed=10,
    )
    rng = np.random.default_rng(1)
    for degree in (0, 2, 19):
        curvature = np.full(20, 10.0 * degree)
        linear = curvature[:, None] * rng.standard_normal((30, 20, 3))
        x = solve(problem, curvature, linear, rng.standard_normal((30, 20, 3)))
        assert gradient_norms(problem, x, curvature, linear).max() <= 1.01e-10


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_separable_data_converge(scale):
    """One class per side of a line, so that only the weak prior keeps the minimizer finite."""
    rng = np.random.default_rng(3)
    features = rng.standard_normal((5, 20, 2)) * scale
    targets = (features[..., 0] > 0).astype(float)
    problem = logistic_of(features, targets)
    linear, start = np.zeros((8, 5, 2)), 100 * rng.standard_normal((8, 5, 2))
    x = solve(problem, np.zeros(5), linear, start)
    assert gradient_norms(problem, x, np.zeros(5), linear).max() <= 1.01e-10
    np.testing.assert_allclose(x, np.broadcast_to(x[:1], x.shape), rtol=1e-6)


@pytest.mark.parametrize("scale", [1e6, 1e8])
@pytest.mark.parametrize("separable", [True, False])
def test_huge_features_converge_to_rounding(scale, separable):
    """The gradient's terms are of the features' size: their rounding is all that may be left."""
    rng = np.random.default_rng(4)
    features = rng.standard_normal((3, 15, 3)) * scale
    targets = (features[..., 0] > 0).astype(float)
    if not separable:
        targets[:, ::4] = 1 - targets[:, ::4]
    problem = logistic_of(features, targets)
    linear, start = np.zeros((4, 3, 3)), rng.standard_normal((4, 3, 3))
    x = solve(problem, np.zeros(3), linear, start)
    assert np.isfinite(x).all()
    assert gradient_norms(problem, x, np.zeros(3), linear).max() <= 15 * scale * 1e-12


def test_a_diverged_chain_stays_lost_and_harms_no_other():
    problem = problem_of(logistic_regression, 3, dim=2, points=60)
    linear = np.ones((3, 3, 2))
    expected = solve(problem, np.ones(3), linear)
    linear[1, 2] = np.inf
    x = solve(problem, np.ones(3), linear)
    assert np.isnan(x[1, 2]).all()
    x[1, 2] = expected[1, 2]
    np.testing.assert_allclose(x, expected, rtol=0, atol=1e-9)


def test_what_cannot_be_minimized_or_has_no_hessian_is_refused():
    zero = np.zeros((1, 2, 2))
    laplace = problem_of(logistic_regression, 2, points=20, prior="laplace")
    with pytest.raises(ConcordError, match="Gaussian prior"):
        laplace.minimize(zero, np.ones(2), zero)
    with pytest.raises(ConcordError, match="have Hessians with a Gaussian prior alone"):
        laplace.hessian_product(zero, zero)
    flat = problem_of(logistic_regression, 2, points=20, prior_share="omitted")
    with pytest.raises(ConcordError, match="no prior and no neighbors"):
        flat.minimize(zero, np.zeros(2), zero)


def test_prior_gradient_at_the_truth():
    options = {"dim": 2, "points": 40, "prior_scale": 10.0}
    at_iterate = problem_of(logistic_regression, 4, **options)
    at_truth = problem_of(logistic_regression, 4, **options, prior_gradient_at="truth")
    x = np.random.default_rng(5).standard_normal((3, 4, 2))
    difference = at_truth.gradient(x) - at_iterate.gradient(x)
    np.testing.assert_allclose(difference, (at_truth.truth - x) / 40, atol=1e-12)
