"""DE-PSGLD: the law that it has within its set, by quadrature, and what it does outside."""

import numpy as np
import pytest

import concord
from concord.networks import topology
from concord.samplers import de_psgld, de_sgld
from concord.sampling.schedules import Schedule
from variants import Still, problem

ALONE = topology.build("no_edges", 1)
GRID = np.linspace(-2.2, 3.2, 701)
# f(x) = 2 x^2 - 6 x: its minimum, 1.5, lies outside of [-1, 1].
PROBLEM = concord.problems.quadratic([[[4.0]]], [[6.0]])
INTERVALS = [
    {"kind": "box", "lower": -1.0, "upper": 1.0}, {"kind": "ball", "radius": 1.0}
]  # fmt: skip


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
    params = de_psgld.Params(Schedule(eta), constraint, gamma)
    x0 = GRID[:, None, None].copy()
    state, step = de_psgld.init(PROBLEM, ALONE, params, x0, Still(len(GRID)))
    drift = step(state, 0, Still(len(GRID)))[0].x[:, 0, 0]
    kernel = np.exp(-((GRID - drift[:, None]) ** 2) / (4 * eta))
    kernel /= kernel.sum(axis=1, keepdims=True)
    equations, wanted = kernel.T - np.eye(len(GRID)), np.zeros(len(GRID))
    equations[-1], wanted[-1] = 1.0, 1.0
    return moments(np.linalg.solve(equations, wanted))


@pytest.mark.parametrize("constraint", INTERVALS, ids=lambda c: c["kind"])
def test_small_steps_have_the_smoothed_law(constraint):
    wanted = smoothed(0.02)
    off = [np.abs(stationary(constraint, eta, 0.02) / wanted - 1) for eta in (2e-3, 1e-3)]
    assert off[0].max() < 0.1
    assert np.abs(off[0] / off[1] - 2).max() < 0.3


def test_small_steps_and_smoothing_have_the_posterior_on_the_interval():
    inside = np.exp(-2 * GRID**2 + 6 * GRID) * (np.abs(GRID) <= 1)
    wanted, off = moments(inside), []
    for gamma in (0.04, 0.01, 0.0025):
        eta = gamma / 20
        off.append(np.abs(stationary(INTERVALS[0], eta, gamma) / wanted - 1).max())
    assert off[0] > 1.5 * off[1] > 1.5**2 * off[2]
    assert off[2] < 0.25


def test_the_average_of_agents_has_their_pulls_together():
    """Three agents that average with all: their law is that of the sum with one pull, not three."""
    prob = concord.problems.quadratic(np.full((3, 1, 1), 4 / 3), np.full((3, 1), 2.0))
    trace = concord.sample(
        "de_psgld", prob, "server", step_size=0.01, constraint=INTERVALS[0], smoothing=0.5,
        iterations=400, chains=3000, record={"at": [300, 350, 400], "draws": False}
    )  # fmt: skip
    x = trace["x_average"].ravel()
    wanted, other = smoothed(0.5), smoothed(0.5, 3)
    assert abs(x.mean() - wanted[0]) < 0.2 * abs(other[0] - wanted[0])
    assert abs(x.var() / wanted[1] - 1) < 0.1


@pytest.mark.parametrize("constraint", INTERVALS, ids=lambda c: c["kind"])
def test_inside_it_is_de_sgld(constraint):
    prob, x0 = problem(5, 2), np.random.default_rng(1).uniform(-0.5, 0.5, (4, 5, 2))
    ends = []
    for module, more in ((de_psgld, (constraint, 1e-3)), (de_sgld, ())):
        rng = np.random.default_rng(2)
        params = module.Params(Schedule(1e-3), *more)
        state, step = module.init(prob, topology.build("ring", 5), params, x0, rng)
        ends.append(step(state, 0, rng)[0].x)
    assert np.array_equal(*ends)


def test_what_lies_outside_is_the_way_to_the_nearest_point():
    x, out = np.array([[[3.0, 4.0], [0.1, 0.2]]]), np.empty((1, 2, 2))
    de_psgld.outside(de_psgld.Ball(2.0), x)(x, out)
    np.testing.assert_allclose(out, [[[1.8, 2.4], [0, 0]]], atol=1e-15)
    de_psgld.outside(de_psgld.Ball(1.0, center=3.0), x)(x, out)
    np.testing.assert_allclose(np.linalg.norm(x - out - 3, axis=2), [[1, 1]])
    de_psgld.outside(de_psgld.Box(-1.0, 2.0), x)(x, out)
    np.testing.assert_allclose(out, [[[1, 2], [0, 0]]], atol=1e-15)
