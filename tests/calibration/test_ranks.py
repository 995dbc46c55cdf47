"""What calibration rests on: ranks and p-values."""

import math

import numpy as np
import pytest

from calibration import models
from calibration.models import MODELS
from calibration.ranks import NARROW, WIDE, distance, least, p_value, width


def test_p_values_are_kolmogorovs():
    rng = np.random.default_rng(0)
    draws = rng.random((1000, 50))
    p = np.array([p_value(u) for u in draws])
    for level in (0.01, 0.05, 0.3):
        assert (p < level).mean() == pytest.approx(level, abs=5 * math.sqrt(level / 1000))
    assert distance(np.array([0.5])) == 0.5
    # The exact law of one rank: distance d or more has probability 2 - 2d.
    assert p_value(np.array([0.2])) == pytest.approx(2 - 2 * 0.8)
    assert p_value(draws[0], 1.0) == 1.0


def test_slack_allows_laws_so_far_from_uniform_and_no_farther():
    rng = np.random.default_rng(1)
    u = rng.random(20_000) ** 1.1  # u^(1/1.1) differs from u by 0.035
    assert p_value(u) < 1e-9 and p_value(u, 0.036) > 0.01 and p_value(u, 0.01) < 1e-4


def test_least_is_bonferronis():
    rng = np.random.default_rng(2)
    ranks = {"right": rng.random(100), "wrong": rng.random(100) / 2}
    p, name = least(ranks)
    assert name == "wrong" and p == 2 * p_value(ranks["wrong"])


@pytest.mark.parametrize(("factor", "expected"), [(1.0, None), (1.4, WIDE), (0.7, NARROW)])
@pytest.mark.parametrize("name", MODELS)
def test_draws_of_the_grid_are_uniform_and_stretched_ones_are_seen(name, factor, expected):
    posterior = models.Posterior(models.build(name, 1))
    mean, _ = posterior.grid.moments()
    draws = posterior.grid.sample(4000, np.random.default_rng(3))
    seen = posterior.ranks(mean + factor * (draws - mean))
    p, _ = least(seen)
    assert p > 1e-3 if expected is None else p < 1e-9 and width(seen) == expected
