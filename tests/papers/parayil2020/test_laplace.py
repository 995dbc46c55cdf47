"""Starts drawn from a Laplace law."""

import numpy as np
import pytest

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
