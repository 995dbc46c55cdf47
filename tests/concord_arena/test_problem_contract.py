"""What every problem promises: its gradients are those of its potential, whatever the estimate.

Problems that read downloaded data are tested beside this file.
"""

import numpy as np
import pytest

from concord import kinds
from concord.contracts import dtype_of
from concord.errors import ConcordError
from concord_arena.testing import CHECKS, Inapplicable
from concord_arena.testing.parts import draw_positions, problems_of


def built(kind):
    """Return the problems of all variants of a kind, 11 points or a data set over three agents."""
    return [one for _, one in problems_of(kinds.find("problems", kind, "tests"))]


def offering(kind, method):
    """Return those that have a method; skip the test where none does."""
    try:
        problems = [one for one in built(kind) if hasattr(one, method)]
    except Inapplicable as reason:
        pytest.skip(str(reason))
    return problems or pytest.skip(f"it has no {method}")


every_kind = pytest.mark.parametrize("kind", kinds.names("problems"))


@pytest.mark.parametrize("check", CHECKS["problems"], ids=lambda check: check.__name__)
@every_kind
def test_contract(kind, check):
    try:
        check(kinds.find("problems", kind, "tests"))
    except Inapplicable as reason:
        pytest.skip(str(reason))


@every_kind
def test_chosen_agents_have_the_gradients_of_all(kind):
    for problem in offering(kind, "gradient_of"):
        x = draw_positions(problem)
        everyone = problem.gradient(x)
        agents = np.array([[2, 0], [1, 2]])
        at = agents[..., None]
        found = problem.gradient_of(agents, np.take_along_axis(x, at, axis=1))
        expected = np.take_along_axis(everyone, at, axis=1)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


@every_kind
def test_hessians_are_slopes_of_the_gradient(kind):
    for problem in offering(kind, "hessian_product"):
        x, v, h = draw_positions(problem), draw_positions(problem, 1), 1e-6
        try:
            found = problem.hessian_product(x, v)
        except ConcordError:  # of options without Hessians
            continue
        slope = (problem.gradient(x + h * v) - problem.gradient(x - h * v)) / (2 * h)
        if dtype_of(problem) is np.dtype(float):
            np.testing.assert_allclose(found, slope, rtol=0, atol=1e-4 * np.abs(slope).max())


@every_kind
def test_minimizers_have_no_gradient(kind):
    """``minimize`` ends where grad f_i(x) + c_i x = b_i, for all agents and for one."""
    module = kinds.find("problems", kind, "tests")
    offering(kind, "minimize")
    for params, problem in problems_of(module):
        if not hasattr(problem, "minimize"):
            continue
        if getattr(params, "prior_gradient_at", "iterate") != "iterate":
            continue  # released code takes the prior's gradient elsewhere than at x
        linear, start = draw_positions(problem, 2), draw_positions(problem)
        curvature = np.array([1.0, 2.0, 0.5])
        try:
            x = problem.minimize(linear, curvature, start)[0]
        except ConcordError:  # of options without minimizers
            continue
        left = np.abs(problem.gradient(x) + curvature[:, None] * x - linear).max()
        assert left <= 1e-5 + 1e-8 * np.abs(problem.gradient(start)).max()
        alone = problem.minimize(linear[:, [1]], curvature, start[:, [1]], [1])[0]
        np.testing.assert_allclose(alone, x[:, [1]], rtol=0, atol=1e-5 * np.abs(x[:, 1]).max())
