"""Products with Hessians, against differences of gradients."""

import numpy as np
import pytest

import concord
from concord.errors import ConcordError

X = np.random.default_rng(2).standard_normal((23, 3))
LABELS = X[:, 0] + 0.3 > 0
LINEAR = concord.problems.linear_regression(X, X @ [1, -2, 0.5], agents=4)


def test_a_prior_without_a_hessian_is_refused():
    prob = concord.problems.logistic_regression(X, LABELS, agents=4, prior="laplace")
    with pytest.raises(ConcordError, match="have Hessians with a Gaussian prior alone"):
        prob.hessian_product(np.zeros((1, 4, 3)), np.ones((1, 4, 3)))


def test_a_problem_of_ones_own_may_have_products():
    prob = LINEAR
    problem = concord.Problem(
        gradient=lambda x: np.einsum("aij,caj->cai", prob.gram, x) - prob.shift,
        hessian_product=lambda x, v: np.einsum("aij,caj->cai", prob.gram, v),
        agents=4,
        dim=3,
    )
    options = {"step_size": 0.1, "drift": "half", "correction": "mala", "iterations": 5}
    own_draws, expected = (
        concord.sample("d_mala", p, "ring", **options)["x"] for p in (problem, prob)
    )
    np.testing.assert_allclose(own_draws, expected, rtol=1e-9, atol=1e-12)
    wrong = concord.Problem(lambda x: x, agents=4, dim=3, hessian_product=lambda x, v: v[0])
    with pytest.raises(ConcordError, match=r"hessian_product: it returned an array of shape"):
        concord.sample("d_mala", wrong, "ring", **options)
