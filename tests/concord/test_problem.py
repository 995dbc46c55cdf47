"""Counting of gradients, and gradients of few agents, where a problem has mini-batches."""

import numpy as np

import concord
from concord.batch_gradients import MiniBatches
from concord.minibatches import Batches
from concord.problem import CountedProblem

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 2))
LINEAR = concord.problems.linear_regression(X, X @ [1, -2], agents=4)
LOGISTIC = concord.problems.logistic_regression(X, X[:, 0] > 0, agents=4)


def test_few_agents_have_mini_batch_gradients_where_all_have():
    """Those of chosen agents would be of all points: mini-batches are asked of everyone."""
    problem = MiniBatches(LINEAR, Batches(batch_size=1), 3, np.random.default_rng(1))
    counted = CountedProblem(problem, 3)
    agents, x = np.array([[0], [3], [1]]), RNG.standard_normal((3, 1, 2))
    found = counted.gradient_of(agents, x)
    assert found.shape == (3, 1, 2)
    assert np.abs(found - LINEAR.gradient_of(agents, x)).max() > 1e-3
    np.testing.assert_array_equal(counted.take(), [[1, 0, 0, 0], [0, 0, 0, 1], [0, 1, 0, 0]])


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
