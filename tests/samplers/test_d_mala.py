"""D-MALA: what is accepted, and which law that leaves."""

import numpy as np
import pytest

import concord
from concord.laws import exact
from concord.networks import topology
from concord.samplers import d_mala
from concord.sampling.schedules import Schedule
from variants import Still, problem

ALONE = topology.build("no_edges", 1)
NORMAL = concord.problems.quadratic([[[1.0]]], [[0.0]])
GRID = np.linspace(-6, 6, 801)
CORRECTED = [("half", "mala"), ("whole", "energy"), ("whole", "released")]


class Levels(Still):
    """Chosen normal numbers, and chains whose uniform ones are evenly spread."""

    def __init__(self, z):
        super().__init__(len(z))
        self.z = z

    def standard_normal(self, out, dtype=float):
        out[:] = self.z

    def random(self, out):
        out[:] = ((np.arange(len(out)) + 0.5) / len(out))[:, None]


def variance(epsilon, drift, correction):
    """The stationary variance for one agent and N(0, 1), by quadrature of the equations."""
    share = {"half": 0.5, "whole": 1.0}[drift]
    x, y = GRID[:, None], GRID[None, :]
    z = (y - x + share * epsilon**2 * x) / epsilon
    log = {
        "none": 0 * z,
        "released": -(epsilon**2) / 2 * (z**2 + x**2),
        "energy": -(epsilon**2) / 2 * (z**2 - x**2),
        "mala": (x**2 - y**2) / 2 + (z**2 - ((x - y + epsilon**2 / 2 * y) / epsilon) ** 2) / 2,
    }[correction]
    moves = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) / epsilon * (GRID[1] - GRID[0])
    kernel = moves * np.exp(np.minimum(log, 0))
    kernel[np.arange(len(GRID)), np.arange(len(GRID))] += 1 - kernel.sum(axis=1)
    equations, wanted = kernel.T - np.eye(len(GRID)), np.zeros(len(GRID))
    equations[-1], wanted[-1] = 1.0, 1.0
    weights = np.linalg.solve(equations, wanted)
    return weights @ (GRID - weights @ GRID) ** 2


def test_as_released_it_samples_the_square_of_the_posterior():
    """Variances tend to 0.50 with the step, whether moves are corrected or not."""
    for epsilon in (0.2, 0.1):
        params = d_mala.Params(Schedule(epsilon), "whole", "none")
        _, cov = exact.stationary(d_mala.affine(NORMAL, ALONE, params).at(0))
        assert np.isclose(cov[0, 0], 1 / (2 - epsilon**2), rtol=1e-12)
    assert round(cov[0, 0], 2) == 0.50
    for correction in ("none", "energy", "released"):
        assert abs(variance(0.1, "whole", correction) - 0.5) < 0.004
    assert abs(variance(0.1, "half", "mala") - 1) < 1e-6


@pytest.mark.parametrize(("drift", "correction"), [*CORRECTED, ("half", "none")])
def test_one_agent_has_the_law_of_the_equations(drift, correction):
    epsilon, chains = 0.8, 20_000
    trace = concord.sample(
        "d_mala", NORMAL, step_size=epsilon, drift=drift, correction=correction, iterations=40,
        chains=chains, record={"at": [40]},
    )  # fmt: skip
    expected = variance(epsilon, drift, correction)
    assert abs(trace["x"].var() / expected - 1) < 4 * np.sqrt(2 / chains)
    assert abs(trace["x"].mean()) < 4 * np.sqrt(expected / chains)
    assert (abs(expected - 1) < 1e-6) == (correction == "mala")


def chances(prob, epsilon, drift, correction):
    """The share of moves that is accepted, and the probability that potentials give."""
    levels, theta, z, slope = 4001, np.zeros((1, 1, 2)), np.array([1.2, 0.8]), np.empty((1, 1, 2))
    for _ in range(400):
        theta -= 0.05 * prob.gradient(1)(theta, slope)
    theta = theta[0, 0] + 0.1  # near the mode, and from there mostly away from it
    x0, rng = np.tile(theta, (levels, 1, 1)), Levels(np.tile(z, (levels, 1, 1)))
    params = d_mala.Params(Schedule(epsilon), drift, correction)
    state, step = d_mala.init(prob, ALONE, params, x0, rng)
    moved = (step(state, 0, rng)[0].x != x0).all(axis=2).mean()

    def at(x):
        gradient = np.empty((1, 1, 2))
        prob.gradient(1)(x[None, None], gradient)
        return prob.potential(x[None, None])[0, 0], -gradient[0, 0]

    old, ahead = at(theta)
    to = theta + epsilon * z + {"half": 0.5, "whole": 1.0}[drift] * epsilon**2 * ahead
    new, back = at(to)
    if correction == "mala":
        way = np.sum((theta - to - epsilon**2 / 2 * back) ** 2) / (2 * epsilon**2)
        log = old - new - way + z @ z / 2
    else:
        momentum = z + epsilon * ahead
        log = old + z @ z / 2 - new - momentum @ momentum / 2
        if correction == "released":
            log = log - epsilon**2 * ahead @ ahead  # the sign of the gradient's square
    return moved, min(1.0, np.exp(log))


@pytest.mark.parametrize(("drift", "correction"), CORRECTED)
def test_moves_are_accepted_as_their_potentials_say(drift, correction):
    """MALA on quadratic potentials exactly, the others to the third order of the step."""
    features = np.random.default_rng(2).standard_normal((12, 2))
    logistic = concord.problems.logistic_regression(features, features[:, 0] > 0.3, agents=1)
    steps = (0.6, 0.3) if correction == "mala" else (0.24, 0.12)
    for prob in (problem(1, 2), logistic):
        off = [np.subtract(*chances(prob, epsilon, drift, correction)) for epsilon in steps]
        if (prob, correction) == (logistic, "mala") or correction != "mala":
            assert abs(off[1]) < abs(off[0]) / 4 + 1e-3
        else:
            assert np.abs(off).max() < 1e-3


def test_the_average_of_small_steps_has_half_the_variance_or_all_of_it():
    prob, ring = problem(5, 2), topology.build("ring", 5)
    for drift, factor in (("half", 1.0), ("whole", 0.5)):
        off = []
        for epsilon in (0.04, 0.02):
            params = d_mala.Params(Schedule(epsilon), drift, "none")
            update = d_mala.affine(prob, ring, params)
            start = exact.initial(5, 2, (0.0, 1.0), *update.auxiliary)
            mean, cov = exact.limit(update.at(0), *start)
            _, _, average_mean, average = exact.marginals(mean[:10], cov[:10, :10], 5, 2)
            np.testing.assert_allclose(average_mean, prob.posterior.mean, rtol=1e-6)
            off.append(np.abs(average - factor * prob.posterior.cov).max())
        assert off[0] < 0.02 * prob.posterior.cov.max()
        assert off[1] < 0.3 * off[0]


def test_tracked_gradients_and_curvatures_average_to_those_of_the_agents():
    prob, ring = problem(5, 2), topology.build("ring", 5)
    for drift, correction in CORRECTED:
        params = d_mala.Params(Schedule(0.05), drift, correction)
        rng, x0 = np.random.default_rng(1), np.random.default_rng(2).standard_normal((3, 5, 2))
        state, step = d_mala.init(prob, ring, params, x0, rng)
        for k in range(4):
            state, info = step(state, k, rng)
            for tracked in (state.rest, state.remainder):
                assert np.abs(tracked.sum(axis=1)).max() < 1e-10
        vectors = 3 if correction == "mala" else 2.5  # a number is half a vector here
        assert info.unicasts.tolist() == [2 * vectors] * 5
        assert info.gradients.tolist() == [3] * 5


def test_a_correction_helps_where_agents_agree_at_once():
    """On the complete graph, at a large step; no theorem, but what it is for."""
    prob = concord.problems.quadratic(np.full((4, 1, 1), 0.25), np.zeros((4, 1)))
    off = {}
    for correction in ("none", "mala"):
        trace = concord.sample(
            "d_mala", prob, "complete", step_size=2.0, drift="half", correction=correction,
            iterations=60, chains=4000, record={"at": [40, 50, 60]},
        )  # fmt: skip
        off[correction] = abs(trace["x_average"].var() - 1)
    assert off["mala"] < off["none"]


@pytest.mark.parametrize(("drift", "correction"), [*CORRECTED, ("whole", "none")])
def test_a_network_moves_as_the_equations_say(drift, correction):
    """The equations as printed in the module, with what was tracked before, on a ring."""
    prob, ring, chains = problem(5, 2), topology.build("ring", 5), 20
    epsilon = 0.2 if correction == "released" else 0.6
    x = np.random.default_rng(2).standard_normal((chains, 5, 2))
    params = d_mala.Params(Schedule(epsilon), drift, correction)
    rng = np.random.default_rng(3)
    state, step = d_mala.init(prob, ring, params, x, rng)
    for k in range(4):
        state, _ = step(state, k, rng)

    rng, mix = np.random.default_rng(3), ring.metropolis().dense()
    tracked, before, averaged, of_before, shares = 0.0, 0.0, 0.0, 0.0, []
    for _ in range(4):
        gradient = prob.shift - np.einsum("aij,caj->cai", prob.gram, x)
        tracked = np.einsum("ij,cjd->cid", mix, tracked + gradient - before)
        z = rng.standard_normal(x.shape)
        move = epsilon * z + {"half": 0.5, "whole": 1.0}[drift] * epsilon**2 * tracked
        before = gradient
        if correction != "none":
            along = move if correction == "mala" else z
            product = np.einsum("aij,caj->cai", prob.gram, along)
            own = product if correction == "mala" else (z * product).sum(axis=2, keepdims=True)
            averaged = np.einsum("ij,cjd->cid", mix, averaged + own - of_before)
            of_before, size = own, (tracked**2).sum(axis=2)
            log = {
                "mala": (2 * tracked * averaged - averaged**2).sum(axis=2) / 4,
                "energy": size - averaged[..., 0],
                "released": -size - averaged[..., 0],
            }[correction] * (epsilon**2 / 2)
            accepted = rng.random((chains, 5)) < np.exp(np.minimum(log, 0))
            shares.append(accepted.mean())
            move = move * accepted[..., None]
        x = np.einsum("ij,cjd->cid", mix, x + move)
    np.testing.assert_allclose(state.x, x, rtol=1e-10, atol=1e-12)
    assert correction == "none" or 0.01 < np.mean(shares) < 0.99
