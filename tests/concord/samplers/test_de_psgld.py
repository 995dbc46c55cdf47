"""DE-PSGLD: the law that it has within its set, by quadrature, and what it does outside."""

import numpy as np
import pytest

from concord.networks.construction import network
from concord.samplers.de_psgld import DEPSGLD, Ball, Box
from steps import Quadratic, Still, chain

ALONE = network("no_edges", 1)
GRID = np.linspace(-2.2, 3.2, 701)
# f(x) = 2 x^2 - 6 x: its minimum, 1.5, lies outside of [-1, 1].
PROBLEM = Quadratic([[[4.0]]], [[6.0]])
INTERVALS = [Box(-1.0, 1.0), Ball(1.0)]


def moments(density):
    weights = density / density.sum()
    mean = weights @ GRID
    return np.array([mean, weights @ (GRID - mean) ** 2])


def smoothed(gamma, pulls=1):
    apart = GRID - np.clip(GRID, -1, 1)
    log = -(2 * GRID**2 - 6 * GRID + pulls * apart**2 / (2 * gamma))
    return moments(np.exp(log - log.max()))


def stationary(constraint, eta, gamma):
    """Moments of the step's limit: its drift read off at the grid's points, its noise normal."""
    sampler = DEPSGLD(eta, constraint, gamma)
    drift = chain(sampler, PROBLEM, ALONE, 1, x0=GRID[:, None, None], rng=Still())[1][:, 0, 0]
    kernel = np.exp(-((GRID - drift[:, None]) ** 2) / (4 * eta))
    kernel /= kernel.sum(axis=1, keepdims=True)
    equations, wanted = kernel.T - np.eye(len(GRID)), np.zeros(len(GRID))
    equations[-1], wanted[-1] = 1.0, 1.0
    return moments(np.linalg.solve(equations, wanted))


@pytest.mark.parametrize("constraint", INTERVALS, ids=["box", "ball"])
def test_small_steps_have_the_smoothed_law(constraint):
    wanted = smoothed(0.02)
    off = [np.abs(stationary(constraint, eta, 0.02) / wanted - 1) for eta in (2e-3, 1e-3)]
    assert off[0].max() < 0.1
    assert np.abs(off[0] / off[1] - 2).max() < 0.3


def test_small_steps_and_smoothing_have_the_posterior_on_the_interval():
    inside = np.exp(-2 * GRID**2 + 6 * GRID) * (np.abs(GRID) <= 1)
    wanted, off = moments(inside), []
    for gamma in (0.04, 0.01, 0.0025):
        off.append(np.abs(stationary(INTERVALS[0], gamma / 20, gamma) / wanted - 1).max())
    assert off[0] > 1.5 * off[1] > 1.5**2 * off[2]
    assert off[2] < 0.25
