"""Laws of the initial positions."""

import numpy as np
import pytest

from concord.errors import ConcordError
from concord.options import build
from concord.sampling import initial


def test_laplace_draws_have_the_stated_moments():
    """10^5 draws: E|x - m| = b with sd b, Var = 2 b^2 with sd sqrt(20) b^2; 4.5 standard errors."""
    law = build(initial.Law, {"kind": "laplace", "mean": 0.5, "scale": 2.0}, "initial")
    x = law.module.draw(law.params, None, (500, 100, 2), np.random.default_rng(0))
    mean, cov = law.moments(2)
    assert mean == pytest.approx([0.5, 0.5]) and cov == pytest.approx(8 * np.eye(2))
    error = 4.5 / np.sqrt(x.size)
    assert np.abs(x - 0.5).mean() == pytest.approx(2.0, abs=2 * error)
    assert x.var() == pytest.approx(8.0, abs=np.sqrt(20) * 4 * error)


def test_random_normal_draws_have_the_stated_moments():
    """10^5 draws; means and covariances within 4.5 standard errors, and one factor per seed."""
    options = {"kind": "random_normal", "mean": [-1.0, 2.0], "high": 10.0, "seed": 3}
    law = build(initial.Law, options, "initial")
    x = law.module.draw(law.params, None, (500, 200, 2), np.random.default_rng(0)).reshape(-1, 2)
    mean, cov = law.moments(2)
    variances = np.diag(cov)
    assert (np.abs(x.mean(axis=0) - mean) < 4.5 * np.sqrt(variances / len(x))).all()
    spread = np.sqrt((np.outer(variances, variances) + cov**2) / len(x))
    assert (np.abs(np.cov(x.T, bias=True) - cov) < 4.5 * spread).all()
    other = build(initial.Law, {**options, "seed": 4}, "initial").moments(2)[1]
    assert not np.allclose(cov, other)
    with pytest.raises(ConcordError, match="2 entries for 3 coordinates"):
        law.moments(3)
