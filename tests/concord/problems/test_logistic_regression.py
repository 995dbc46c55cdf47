"""Logistic regression: its data, its printed prior, and what it predicts."""

import numpy as np

from concord.problems.arithmetic import FACTORS, sigmoid
from concord.problems.from_options import from_options
from concord.problems.kinds import logistic_regression


def build(agents=3, **options):
    return from_options(logistic_regression)(agents, **options)


def test_sigmoid_is_the_logistic_function_without_overflow():
    z = np.array([-1e4, -40.0, -1.0, 0.0, 2.0, 1e4])
    expected = [0.0, np.exp(-40) / (1 + np.exp(-40)), 1 / (1 + np.e), 0.5, 1 / (1 + np.exp(-2)), 1]
    with np.errstate(all="raise"):
        np.testing.assert_allclose(sigmoid(z), expected, atol=1e-16)


def test_the_log_posterior_sums_over_all_points_without_overflow():
    problem = build(points=2 * FACTORS + 7, prior_scale=4.0)
    first, second = np.linspace(-900, 900, 31)[:, None], np.linspace(-30, 30, 29)
    features, labels = problem.data.all_rows()
    z = first[..., None] * features[:, 0] + second[:, None] * features[:, 1]
    expected = (labels * z - np.logaddexp(0, z)).sum(axis=-1) - (first**2 + second**2) / 8
    log = problem.log_posterior(first, second)
    np.testing.assert_allclose(log, expected, rtol=1e-12)  # 2,000 roundings
    np.testing.assert_array_equal(
        problem.log_posterior(first[:, 0], first[:, 0]),
        np.diagonal(problem.log_posterior(first, first.T)),
    )


def test_misclassified_counts_points_of_all_agents():
    problem = build(points=11)
    features, labels = problem.data.all_rows()
    x = np.random.default_rng(2).standard_normal((5, 3, 2))
    expected = [
        [sum((f @ w >= 0) != (y == 1) for f, y in zip(features, labels, strict=True)) for w in row]
        for row in x
    ]
    np.testing.assert_array_equal(problem.misclassified(x), expected)
    np.testing.assert_allclose(problem.accuracy(x), 1 - np.array(expected) / 11)


def test_weights_that_are_no_numbers_classify_nothing_right():
    """Compared with a threshold they would all be of one class."""
    problem = build(points=11)
    x = np.zeros((2, 3, 2))
    x[1, 2] = np.nan
    expected = problem.misclassified(np.zeros((1, 1, 2)))[0, 0]
    mistakes = problem.misclassified(x)
    assert mistakes[1, 2] == 11 and (mistakes.ravel()[:5] == expected).all()
    assert problem.accuracy(x)[1, 2] == 0
