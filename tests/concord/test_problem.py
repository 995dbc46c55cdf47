"""Counting of gradients, and gradients of few agents, where a problem has mini-batches."""

import numpy as np

import concord
from concord.problem import CountedProblem

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 2))
LINEAR = concord.problems.linear_regression(X, X @ [1, -2], agents=4)
LOGISTIC = concord.problems.logistic_regression(X, X[:, 0] > 0, agents=4)


def test_minimizers_of_one_agent_are_charged_to_it():
    linear, curvature = RNG.standard_normal((3, 4, 2)), np.full(4, 2.0)
    for problem in (LINEAR, LOGISTIC):
        counted = CountedProblem(problem, 3)
        x, cost = counted.minimize(linear, curvature, np.zeros_like(linear))
        np.testing.assert_array_equal(
            np.broadcast_to(counted.take(), (3, 4)), cost * np.ones((3, 4))
        )
        one, alone = counted.minimize(linear[:, [2]], curvature, np.zeros((3, 1, 2)), [2])
        np.testing.assert_allclose(one, x[:, [2]], rtol=1e-9)
        expected = np.zeros((3, 4))
        expected[:, [2]] = alone
        np.testing.assert_array_equal(np.broadcast_to(counted.take(), (3, 4)), expected)
