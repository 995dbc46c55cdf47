"""Doubts about a Gaussian fit: none where it is exact, and those of other posteriors."""

import numpy as np

import concord
from concord.problems.gaussian_fit import fit
from concord_arena.doubts import list_doubts


def test_the_fit_of_a_quadratic_potential_is_not_doubted():
    roots = np.random.default_rng(1).standard_normal((4, 3, 3))
    H = roots @ roots.swapaxes(1, 2)
    blind = concord.Problem(lambda x: np.einsum("ade,cae->cad", H, x) - 1, agents=4, dim=3)
    assert list_doubts(blind, fit(blind, start=2.0)) == []


def test_posteriors_that_no_gaussian_fits_are_doubted():
    two = concord.Problem(lambda x: 4 * (x**3 - x), agents=1, dim=1)
    assert any("second mode" in said for said in list_doubts(two, fit(two, start=1.0)))
    heavy = concord.Problem(lambda x: 2 * x / (1 + x**2), agents=1, dim=1)  # Student's t, 3 degrees
    assert any("far from Gaussian" in said for said in list_doubts(heavy, fit(heavy)))


def test_lies_are_doubted_where_gradients_are_not_linear():
    lying = concord.network("complete", 2, byzantine={"kind": "sign", "agents": [1]})
    skewed = concord.Problem(lambda x: np.exp(x) * 5 - 5, agents=2, dim=1)
    linear = concord.problems.quadratic(H=[[[1.0]], [[1.0]]], b=[[0.0], [0.0]])

    def says_so(problem, network):
        return any("lies" in why for why in list_doubts(problem, fit(problem), network=network))

    honest = concord.network("complete", 2)
    cases = (skewed, lying), (skewed, honest), (linear, lying)
    assert [says_so(*case) for case in cases] == [True, False, False]
