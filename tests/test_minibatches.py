"""Mini-batch gradients of a few agents: from the points that all agents draw, and no other work."""

import numpy as np
import pytest

import concord
from concord.minibatches import Batches, MiniBatches

X = np.random.default_rng(3).standard_normal((22, 2))
SCALED = Batches(4)
SUMMED = Batches(4, batch_scale="none", batch_pool="all_but_last")
PROBLEMS = {
    "linear": concord.problems.linear_regression(X, X @ [1.0, -0.5], agents=5),
    "logistic": concord.problems.logistic_regression(X, (X[:, 0] > 0).astype(int), agents=5),
    "mixture": concord.problems.tied_mixture(X[:20, 0], agents=5),
}


@pytest.mark.parametrize("batches", [SCALED, SUMMED], ids=["scaled", "summed"])
@pytest.mark.parametrize("agents", [np.array([3, 1]), np.array([[0, 1], [4, 2], [3, 1]])])
@pytest.mark.parametrize("kind", PROBLEMS)
def test_a_few_agents_have_the_estimates_that_all_would_have(kind, agents, batches):
    problem = PROBLEMS[kind]
    if batches is SUMMED and not hasattr(problem, "prior_gradient"):
        pytest.skip("its prior is not apart")
    whole, few = (
        MiniBatches(problem, batches, 3, rng)
        for rng in (np.random.default_rng(1), np.random.default_rng(1))
    )
    x = np.random.default_rng(2).standard_normal((3, 5, problem.dim))
    chosen = np.broadcast_to(agents, (3, 2))[..., None]
    for _ in range(2):
        expected = np.take_along_axis(whole.gradient(x), chosen, axis=1)
        found = few.gradient_of(agents, np.take_along_axis(x, chosen, axis=1))
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("kind", ["linear", "logistic"])
def test_a_few_agents_take_no_points_of_others(kind, monkeypatch):
    problem, seen = PROBLEMS[kind], []
    take = type(problem.data).points_at
    monkeypatch.setattr(
        type(problem.data), "points_at", lambda *given: seen.append(given[1].shape) or take(*given)
    )
    few = MiniBatches(problem, SCALED, 3, np.random.default_rng(1))
    few.gradient_of(np.array([2]), np.zeros((3, 1, problem.dim)))
    assert seen == [(3, 1, 4)]
