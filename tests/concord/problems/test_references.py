"""References: posteriors known by draws, and those that are not known."""

import numpy as np
import pytest

import concord
from concord.errors import ConcordError
from concord.laws.gaussian import Gaussian
from concord.laws.reference_laws import Draws
from concord.reference import Reference, WithReference, reference_of


def test_narrow_priors_have_posteriors_that_are_drawn_exactly():
    """Of one parameter by quadrature: the ends of 20 equal parts, each with its share of draws."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 1))
    y = (X[:, 0] > 0.3).astype(float)
    law = concord.problems.logistic_regression(X, y, agents=3, prior_scale=0.2).reference
    x = np.linspace(-4, 4, 40_001)
    log = -(x**2) / 0.4
    for feature, label in zip(X[:, 0], y, strict=True):
        log += label * feature * x - np.logaddexp(0, feature * x)
    below = np.exp(log - log.max()).cumsum()
    ends = np.interp(np.arange(1, 20) / 20, below / below[-1], x)
    counts = np.histogram(law.values, [-np.inf, *ends, np.inf])[0]
    assert ((counts - law.draws / 20) ** 2).sum() / (law.draws / 20) < 43.8  # 0.1 % of chi^2_19
    wide = concord.problems.logistic_regression(
        rng.standard_normal((60, 6)), y, agents=3, prior_scale=100.0
    )
    with pytest.raises(ConcordError, match="6 parameters is not known; use 2 parameters, a narrow"):
        _ = wide.reference


def test_draws_of_a_run_stand_for_the_law():
    values = np.random.default_rng(6).gamma(3.0, size=(1000, 2))
    known = Draws(values)
    assert known.draws == 1000
    means, variances = known.monomials()
    np.testing.assert_allclose(means[2:], (values**2).mean(axis=0))
    np.testing.assert_allclose(variances[:2], np.diag(known.moments()[1]))
    some = known.sample(2500, np.random.default_rng(0))
    times = (some[:, None, 0] == values[None, :, 0]).sum(axis=0)
    assert times.sum() == 2500 and set(times) == {2, 3}


def test_what_is_not_known_is_refused():
    assert isinstance(reference_of(concord.problems.gaussian(agents=3)), Gaussian)
    assert isinstance(reference_of(concord.problems.gaussian(agents=3)), Reference)
    bare = concord.Problem(lambda x: x, agents=2, dim=2)
    assert not isinstance(bare, WithReference)
    with pytest.raises(ConcordError, match="the posterior of Problem is not known"):
        reference_of(bare)
