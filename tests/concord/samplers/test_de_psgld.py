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


def smoothed(gamma):
    apart = GRID - np.clip(GRID, -1, 1)
    log = -(2 * GRID**2 - 6 * GRID + apart**2 / (2 * gamma))
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
