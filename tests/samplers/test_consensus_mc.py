"""Consensus Monte Carlo: what is read is the posterior where potentials are quadratic."""

import numpy as np
import pytest

import concord
from concord.samplers import consensus_mc
from variants import problem

CHAINS = 4000


def sample(prob, network="server", **options):
    given = {"iterations": 200, "chains": CHAINS, "record": {"at": [0, 2, 200]}, **options}
    return concord.sample("consensus_mc", prob, network, **given)


def test_with_the_right_covariances_theta_is_a_linear_map_that_makes_the_posterior():
    prob = problem(4, 2)
    own = np.linalg.inv(prob.gram)
    units = np.eye(8).reshape(8, 4, 2)
    squares = np.broadcast_to(own * 30, (8, 4, 2, 2))
    state = consensus_mc.State(units, 0 * units, squares, np.array([31.0]), np.empty(0))
    found = consensus_mc.read(state, consensus_mc.Params())
    assert np.ptp(found, axis=1).max() == 0
    matrix = found[:, 0].T
    blocks = np.zeros((4, 2, 4, 2))
    blocks[np.arange(4), :, np.arange(4)] = own
    np.testing.assert_allclose(
        matrix @ blocks.reshape(8, 8) @ matrix.T, prob.posterior.cov, rtol=1e-12
    )
    centers = np.linalg.solve(prob.gram, prob.shift[..., None])[..., 0]
    np.testing.assert_allclose(matrix @ centers.ravel(), prob.posterior.mean, rtol=1e-12)


@pytest.mark.parametrize("combine", ["draws", "gaussian"])
def test_exact_draws_make_the_posterior(combine):
    """But for what errors of covariances from 200 draws add, about d N / 200 of the variance."""
    prob = problem(4, 2)
    theta = sample(prob, combine=combine)["x_average"][:, -1]
    cov = prob.posterior.cov
    z = (theta.mean(axis=0) - prob.posterior.mean) / np.sqrt(cov.diagonal() / CHAINS)
    assert np.abs(z).max() < 4
    root = np.linalg.inv(np.linalg.cholesky(cov))
    ratio = root @ np.cov(theta.T) @ root.T - np.eye(2)
    assert np.abs(ratio).max() < 4 * np.sqrt(2 / CHAINS) + 8 / 200


def test_langevin_steps_leave_their_own_bias():
    """Each agent's variance is that of ULA: H^-1 (1 - eta H / 2)^-1 in one dimension."""
    prob = concord.problems.quadratic([[[1.0]], [[3.0]]], [[0.0], [3.0]])
    eta, steps = 0.2, 700
    theta = sample(prob, step_size=eta, iterations=steps, record={"at": [steps]})["x_average"]
    wide = 1 / (np.array([1.0, 3.0]) * (1 - eta * np.array([1.0, 3.0]) / 2))
    weights = 1 / wide
    variance = 1 / weights.sum()
    mean = (weights * [0.0, 1.0]).sum() / weights.sum()
    assert abs(theta.mean() - mean) < 4 * np.sqrt(variance / CHAINS)
    assert abs(theta.var() / variance - 1) < 4 * np.sqrt(2 / CHAINS) + 0.02


def test_one_agent_draws_exactly():
    prob = problem(1, 2)
    trace = sample(prob, "no_edges", iterations=40, record={})
    x, target = trace["x"][:, 5:, 0], prob.posterior
    z = (x[:, -1].mean(axis=0) - target.mean) / np.sqrt(target.cov.diagonal() / CHAINS)
    assert np.abs(z).max() < 4
    np.testing.assert_allclose(np.cov(x[:, -1].T), target.cov, atol=0.1 * np.abs(target.cov).max())
    steps = x[:, :-1] - target.mean, x[:, 1:] - target.mean
    between = (steps[0] * steps[1]).mean(axis=(0, 1))  # of one draw and the next
    assert np.abs(between).max() < 4 * target.cov.max() / np.sqrt(CHAINS * 35)


def test_before_there_are_more_draws_than_dimensions_theta_is_the_plain_average():
    x = np.random.default_rng(1).standard_normal((5, 3, 2))
    squares = np.broadcast_to(np.diag([1.0, 100.0]) * np.arange(1, 4)[:, None, None], (5, 3, 2, 2))
    for count, plain in ((0, True), (2, True), (3, False)):
        state = consensus_mc.State(x, x, squares, np.array([count]), np.empty(0))
        found = consensus_mc.read(state, consensus_mc.Params())
        assert np.allclose(found, x.mean(axis=1, keepdims=True)) == plain
    prob, rng = problem(3, 2), np.random.default_rng(1)
    params = consensus_mc.Params(burn_in=2)
    state, step = consensus_mc.init(prob, concord.network("server", 3), params, x, rng)
    for k in range(5):
        state, _ = step(state, k, rng)
    assert state.draws == 3


def test_a_diverged_chain_reads_nothing():
    prob = problem(3, 2)
    trace = sample(prob, step_size=5.0, chains=3, iterations=400, record={"at": [400]})
    assert (trace["diverged_at"] >= 0).all()
    assert not np.isfinite(trace["x"]).any()


def test_every_draw_is_sent_once():
    trace = sample(problem(3, 2), chains=2)
    assert trace["unicasts"][-1].tolist() == trace["broadcasts"][-1].tolist() == [200] * 3


def test_moments_are_those_of_the_draws():
    prob, rng = problem(3, 2), np.random.default_rng(1)
    params = consensus_mc.Params(0.05, burn_in=2)
    x0 = rng.standard_normal((4, 3, 2))
    state, step = consensus_mc.init(prob, concord.network("server", 3), params, x0, rng)
    draws = []
    for k in range(9):
        state, _ = step(state, k, rng)
        draws.append(state.x.copy())
    seen = np.array(draws[2:])
    np.testing.assert_allclose(state.mean, seen.mean(axis=0), rtol=1e-12)
    for c, i in np.ndindex(4, 3):
        np.testing.assert_allclose(state.squares[c, i] / 6, np.cov(seen[:, c, i].T), rtol=1e-10)
