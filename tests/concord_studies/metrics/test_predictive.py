"""Scores of averaged predictions in studies are those of ``concord.predictions``."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from concord import predictions
from concord.errors import ConcordError
from concord_studies.metrics import predictive
from measurements import array_measurement, intervals


def test_scores_of_a_regression_are_those_of_the_mixture():
    """Densities are averaged over draws, and a network's over agents; by hand with scipy."""
    rng = np.random.default_rng(3)
    mean, sd, y = rng.standard_normal((4, 2, 20)), 0.7, rng.standard_normal(20)
    laws = stats.norm(mean, sd)
    p = np.stack([mean, laws.pdf(y), laws.cdf(y)], axis=-1)
    tests = {"own": SimpleNamespace(labels=y)}
    problem = SimpleNamespace(tests=tests, examples={}, noise_sd=sd)
    trace = {"predictive_mean": p, "x": np.zeros((4, 2, 2, 1))}
    m = array_measurement(trace, np.array([0, 10]), problem, (0, 3))
    found = intervals(predictive.rows(m))
    assert {name for *_, name in found} == {"mse", "nll", "coverage"}
    own = {
        "mse": ((y - mean) ** 2).mean(axis=-1),
        "nll": -laws.logpdf(y).mean(axis=-1),
        "coverage": (np.abs(y - mean) < sd * stats.norm.ppf(0.975)).mean(axis=-1),
    }
    for name, values in own.items():
        assert found[10, "3", name][0] == pytest.approx(values[:, 1].mean(), rel=1e-12)
    nll = -np.log(laws.pdf(y).mean(axis=1)).mean()
    assert found[10, "network", "nll"][0] == pytest.approx(nll, rel=1e-12)
    mse = ((y - mean.mean(axis=1)) ** 2).mean()
    assert found[10, "network", "mse"][0] == pytest.approx(mse, rel=1e-12)


def test_scores_of_agents_and_of_their_mean():
    rng = np.random.default_rng(2)
    p = rng.dirichlet(np.ones(3), size=(4, 2, 30))
    labels = rng.integers(0, 3, 20)
    problem = SimpleNamespace(tests={"own": SimpleNamespace(labels=labels)}, examples={})
    trace = {"predictive_mean": p, "x": np.zeros((4, 2, 2, 1))}
    m = array_measurement(trace, np.array([0, 10]), problem, (0, 3))
    found = intervals(predictive.rows(m))
    own, network = (predictions.score(each[..., :20, :], labels) for each in (p, p.mean(axis=1)))
    for name in ("accuracy", "nll", "brier", "ece"):
        value, lo, hi = found[10, "3", name]
        assert value == pytest.approx(own[name][:, 1].mean(), rel=1e-12) and lo < value < hi
        assert found[10, "network", name][0] == pytest.approx(network[name].mean(), rel=1e-12)
    with pytest.raises(ConcordError, match="a problem with test sets"):
        list(predictive.rows(array_measurement(trace, np.array([0, 10]), None, (0, 3))))
