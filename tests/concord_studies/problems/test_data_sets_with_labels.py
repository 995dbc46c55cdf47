"""Logistic regression on the rows of data sets: their scales, test rows and files."""

from pathlib import Path

import numpy as np
import pytest

from concord import streams
from concord.errors import ConcordError
from concord.options import build as parse
from concord.sampling import partition
from concord_studies.datasets import readers
from concord_studies.datasets.folder import DataFolder
from concord_studies.problems import logistic_regression_data
from concord_studies.problems.logistic_regression_data import Params


def build(agents=3, divided=None, **options):
    params = parse(Params, options, "tests")
    logistic_regression_data.check(params, agents)
    split = partition.Partition.parse(divided or {"kind": "equal"}, "tests")
    return logistic_regression_data.build(
        params, agents, split, lambda what: streams.generator(1, what), DataFolder(Path("unused"))
    )


def test_an_intercept_of_zeros_changes_that_column_alone():
    ones, zeros = (
        build(agents=6, dataset="breast_cancer", intercept=text).data.all_rows()[0]
        for text in ("ones", "zeros")
    )
    np.testing.assert_array_equal(ones[:, :-1], zeros[:, :-1])
    assert (ones[:, -1] == 1).all() and (zeros[:, -1] == 0).all()
    none = build(agents=6, dataset="breast_cancer", intercept="none").data.all_rows()[0]
    np.testing.assert_array_equal(none, ones[:, :-1])


def test_features_of_a_data_set_are_scaled_as_asked():
    """The agents' rows are in the same order, so that each is a line of the raw ones."""
    raw, unit, standardized = (
        build(agents=6, dataset="breast_cancer", features=text).data.all_rows()[0][:, :-1]
        for text in ("raw", "unit", "standardized")
    )
    assert raw.min() >= 0 and raw.max() > 4000  # areas in square micrometers
    np.testing.assert_allclose(unit, (raw - raw.min(axis=0)) / np.ptp(raw, axis=0), atol=1e-12)
    centered = raw - raw.mean(axis=0)
    np.testing.assert_allclose(standardized, centered / raw.std(axis=0), atol=1e-12)


@pytest.mark.parametrize(("agents", "fraction", "rows"), [(600, 0.0, 569), (513, 0.1, 512)])
def test_more_agents_than_points_are_refused(agents, fraction, rows):
    with pytest.raises(ConcordError, match=f"{rows} rows cannot give each of {agents} agents"):
        build(agents, dataset="breast_cancer", test_fraction=fraction)


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
    problem = build(6, dirichlet, dataset="magic", test_fraction=0.1)
    features, labels = problem.data.all_rows()
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
    order, expected = np.lexsort(both.T), np.lexsort(raw.T)
    assert np.array_equal(training[order], truth[expected])
