"""Gradients of chosen agents, and rows kept for testing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from concord.datasets import readers
from concord.errors import ConcordError
from concord.options import build
from concord.problems.kinds import linear_regression, logistic_regression
from concord.sampling.partition import Partition


def made(module, partition=None, agents: int = 4, **options):
    params = build(module.Params, options, "problem")
    module.check(params, agents)
    return module.build(
        params,
        agents,
        Partition.parse(partition or {"kind": "equal"}, "partition"),
        lambda what: np.random.default_rng([7, len(what)]),
        Path("resources"),
    )


UNEVEN = {"kind": "sizes", "sizes": [3, 60, 17, 20]}
PROBLEMS = {
    "linear": lambda: made(linear_regression, UNEVEN, points=100, dim=3),
    "logistic": lambda: made(logistic_regression, UNEVEN, points=100, dim=3),
    "laplace": lambda: made(logistic_regression, UNEVEN, points=100, prior="laplace"),
}


@pytest.mark.parametrize("make", PROBLEMS.values(), ids=PROBLEMS)
def test_chosen_agents_have_the_gradients_of_all(make) -> None:
    problem = make()
    rng = np.random.default_rng(1)
    x = rng.standard_normal((7, 4, problem.dim))
    everyone = problem.gradient(7)(x, np.empty_like(x))
    agents = np.array([rng.permutation(4)[:2] for _ in range(7)])
    at = agents[..., None]
    out = np.full((7, 2, problem.dim), np.nan)
    problem.gradient_at(7, 2)(np.take_along_axis(x, at, axis=1), agents, out)
    assert np.allclose(out, np.take_along_axis(everyone, at, axis=1), rtol=1e-12, atol=1e-10)


@pytest.fixture
def telescope(monkeypatch):
    """Return rows like MAGIC's: 19 020 of 10 features with scales of their own."""
    rng = np.random.default_rng(2)
    features = rng.standard_normal((19_020, 10)) * np.arange(1, 11) + np.arange(10)
    labels = (rng.random(19_020) < 0.65).astype(np.int64)
    monkeypatch.setattr(readers, "magic", lambda path: (features, labels))
    return features, labels


def test_a_tenth_is_kept_for_testing_and_scales_come_from_the_rest(telescope) -> None:
    dirichlet = {"kind": "dirichlet", "concentration": 0.3, "minimum": 50}
    problem = made(logistic_regression, dirichlet, 6, dataset="magic", test_fraction=0.1)
    features, labels = problem.data.pooled()
    assert problem.dim == 11
    assert features.shape == (17_118, 11)
    assert problem.counts.min() >= 50
    assert problem.test[0].shape == (1902, 11)
    assert np.allclose(features[:, :10].mean(axis=0), 0, atol=1e-12)
    assert np.allclose(features[:, :10].std(axis=0), 1, rtol=1e-12)
    assert not np.allclose(problem.test[0][:, :10].mean(axis=0), 0, atol=1e-6)
    assert (features[:, 10] == 1).all() and (problem.test[0][:, 10] == 1).all()
    # Every row is in one of the two, with its own label.
    both = np.concatenate([features, problem.test[0]])[:, :10]
    raw, truth = telescope
    training = np.concatenate([labels, problem.test[1]])
    assert training.sum() == truth.sum()
    order, wanted = np.lexsort(both.T), np.lexsort(raw.T)
    assert np.array_equal(training[order], truth[wanted])


def test_accuracy_counts_test_rows(telescope) -> None:
    problem = made(logistic_regression, None, 3, dataset="magic", test_fraction=0.1)
    x = np.random.default_rng(3).standard_normal((2, 3, 11))
    features, labels = problem.test
    for chain in range(2):
        for agent in range(3):
            right = ((features @ x[chain, agent] >= 0) == labels).mean()
            assert problem.accuracy(x)[chain, agent] == pytest.approx(right, abs=1e-12)
    assert (problem.accuracy(np.full_like(x, np.nan)) == 0).all()


def test_without_test_rows_accuracy_counts_all_points() -> None:
    problem = made(logistic_regression, points=100, dim=3)
    x = np.random.default_rng(4).standard_normal((2, 4, 3))
    expected = 1 - problem.misclassified(x) / 100
    assert np.allclose(problem.accuracy(x), expected, rtol=0, atol=1e-12)


def test_data_files_needed() -> None:
    def needs(**options):
        params = build(logistic_regression.Params, options, "problem")
        return logistic_regression.needs(params)

    assert needs(dataset="magic") == ("magic",)
    assert needs(dataset="breast_cancer") == needs() == ()


def test_test_rows_need_a_data_set() -> None:
    with pytest.raises(ConcordError, match="name a dataset"):
        made(logistic_regression, test_fraction=0.1)
    options = {"dataset": "breast_cancer", "test_fraction": 0.1}
    params = build(logistic_regression.Params, options, "problem")
    with pytest.raises(ConcordError, match="513 agents cannot share 512 points"):
        logistic_regression.check(params, 513)
