"""The dense network: its gradients, what it learns, and that parts of its rows stay apart."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

import concord
import concord_studies  # noqa: F401  which adds the kind
from concord.errors import ConcordError
from concord.problem import WithMiniBatches
from concord.reference import reference_of
from concord.sampling.partition import Partition, PartitionChoice
from concord_studies.contracts import Predictive, WithTestSets
from concord_studies.datasets import readers
from concord_studies.problems import dense_network


def build(agents=3, **options):
    return concord.problems.dense_network(agents, **options)


def data_set(seed, **options):
    """One of several data sets, as the arena draws them."""
    params = dense_network.Params(**options)
    split = Partition(PartitionChoice("equal"), "")
    return dense_network.build(
        params, 4, split, lambda what: np.random.default_rng([seed, len(what)]), SimpleNamespace()
    )


@pytest.mark.parametrize("hidden", [(5,), (4, 3)])
def test_gradients_are_slopes_of_the_potential(hidden):
    """By central differences in double precision, whose error is about 1e-7 of the slope."""
    problem, rng = build(hidden=hidden, prior_variance=0.5), np.random.default_rng(1)
    assert problem.dim == sum((m + 1) * n for m, n in pairwise((64, *hidden, 10)))
    x, e = rng.standard_normal((2, 2, 3, problem.dim))
    slope = (problem.potential(x + 1e-5 * e) - problem.potential(x - 1e-5 * e)) / 2e-5
    exact = (problem.gradient(x) * e).sum(axis=-1)
    np.testing.assert_allclose(exact, slope, rtol=1e-6, atol=1e-4)


def test_predictions_are_those_of_the_equation():
    problem, rng = build(hidden=(4, 3)), np.random.default_rng(2)
    x, X = rng.standard_normal((1, 3, problem.dim)), rng.random((5, 64))
    layers, w = [], x[0, 1]
    for m, n in pairwise((64, 4, 3, 10)):
        layers.append((w[: m * n].reshape(m, n), w[m * n : (m + 1) * n]))
        w = w[(m + 1) * n :]
    h = X
    for V, a in layers[:-1]:
        h = np.tanh(h @ V + a)
    odds = np.exp(h @ layers[-1][0] + layers[-1][1])
    wanted = odds / odds.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(problem.predict(x, X)[0, 1], wanted, rtol=1e-5)


def test_gradient_descent_learns_the_digits():
    problem = build(1)
    x = problem.initial((2, 1, problem.dim), np.random.default_rng(0))
    before = problem.accuracy(x)
    for _ in range(300):
        x -= np.float32(1e-3) * problem.gradient(x)
    assert x.dtype == np.float32
    assert before.max() < 0.4 and problem.accuracy(x).min() > 0.85
    chances = problem.predictive(x)
    assert chances.shape == (2, 1, 360, 10)
    np.testing.assert_allclose(chances.sum(axis=-1), 1, rtol=1e-5)
    right = chances.argmax(axis=-1) == problem.tests["test"].labels
    np.testing.assert_allclose(right.mean(axis=-1), problem.accuracy(x))


def test_rows_for_testing_are_of_no_data_set_and_steps_are_chosen_on_others():
    """Images differ, so that a row is known by its pixels."""
    one, other = data_set(1), data_set(2, points=300)
    assert not np.array_equal(one.data.features[0], other.data.features[0])
    parts = {"test": one.test[0], "validation": one.validation[0]}
    for name, rows in parts.items():
        assert np.array_equal(rows, getattr(other, name)[0])
    sets = [{row.tobytes() for row in rows} for rows in parts.values()]
    for problem in (one, other):
        flat = problem.data.features[problem.data.mask.astype(bool)]
        sets.append({row.tobytes() for row in flat})
    assert sum(map(len, sets[:3])) == 360 + 200 + 1237 == len(set().union(*sets))
    assert len(sets[3]) == 300 and not sets[3] & (sets[0] | sets[1])


def test_it_offers_what_predictions_need():
    problem = build(points=30)
    for protocol in (WithMiniBatches, Predictive, WithTestSets):
        assert isinstance(problem, protocol)
    assert problem.counts.sum() == 30 and problem.dim == 65 * 10 + 11 * 10
    with pytest.raises(ConcordError, match="the posterior of DenseNetwork is not known"):
        reference_of(problem)
    x = np.full((1, 3, problem.dim), np.nan)
    assert (problem.accuracy(x) == 0).all()
    start = problem.initial((2, 3, problem.dim), np.random.default_rng(3))
    assert (start[:, 0] == start[:, 2]).all() and not np.array_equal(start[0], start[1])


def test_labels_can_divide_the_images():
    problem = build(5, partition={"kind": "dirichlet", "concentration": 0.1})
    shares = [np.bincount(problem.data.targets[i, :n], minlength=10) / n
              for i, n in enumerate(problem.counts)]  # fmt: skip
    assert np.max(shares) > 0.4


def test_magic_is_standardized(monkeypatch, tmp_path):
    rng = np.random.default_rng(2)
    features = rng.standard_normal((2000, 10)) * np.arange(1, 11) + np.arange(10)
    labels = (rng.random(2000) < 0.65).astype(np.int64)
    monkeypatch.setattr(readers, "magic", lambda path: (features, labels))
    params = dense_network.Params(dataset="magic", hidden=(6,))
    assert dense_network.DECLARES.needs(params) == ("magic",)
    split, folder = Partition(PartitionChoice("equal"), ""), SimpleNamespace(folder=tmp_path)
    problem = dense_network.build(params, 4, split, lambda what: np.random.default_rng(1), folder)
    assert problem.dim == 11 * 6 + 7 * 2 and problem.counts.sum() == 1237
    rows = np.concatenate([problem.test[0], problem.validation[0], problem.data.features[0]])
    assert np.abs(rows.mean(axis=0)).max() < 0.2 and np.abs(rows.std(axis=0) - 1).max() < 0.2
