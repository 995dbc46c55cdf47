"""The network on digits: it learns, alone and in mini-batches, and predicts what is held out."""

import numpy as np
import pytest

import concord
import concord_studies  # noqa: F401  which adds the kind
from concord.errors import ConcordError
from concord.problem import WithMiniBatches
from concord.reference import reference_of
from concord_studies.contracts import Predictive, WithTestSets


def build(agents=3, **options):
    return concord.problems.digits(agents, **options)


def test_gradient_descent_learns_the_digits():
    problem = build(1)
    rng = np.random.default_rng(0)
    x = problem.initial((2, 1, problem.dim), rng)
    before = problem.accuracy(x)
    for _ in range(300):
        x -= 1e-3 * problem.gradient(x)
    assert before.max() < 0.4 and problem.accuracy(x).min() > 0.85
    chances = problem.predictive(x)
    assert chances.shape == (2, 1, 360, 10)
    np.testing.assert_allclose(chances.sum(axis=-1), 1)
    right = chances.argmax(axis=-1) == problem.tests["digits"].labels
    np.testing.assert_allclose(right.mean(axis=-1), problem.accuracy(x))


def test_it_offers_what_predictions_need():
    problem = build(points=30)
    for protocol in (WithMiniBatches, Predictive, WithTestSets):
        assert isinstance(problem, protocol)
    assert problem.counts.sum() == 30 and problem.dim == 65 * 10 + 11 * 10
    with pytest.raises(ConcordError, match="the posterior of Digits is not known"):
        reference_of(problem)
    x = np.full((1, 3, problem.dim), np.nan)
    assert (problem.accuracy(x) == 0).all()


def test_labels_can_divide_the_images():
    problem = build(5, partition={"kind": "dirichlet", "concentration": 0.1})
    shares = [np.bincount(problem.data.targets[i, :n], minlength=10) / n
              for i, n in enumerate(problem.counts)]  # fmt: skip
    assert np.max(shares) > 0.4
