"""DG-LMC: the law that it has when its steps are small, and its options."""

import numpy as np
import pytest

import concord
from concord.errors import ConcordError
from concord.laws import exact
from concord.networks import topology
from concord.samplers import dg_lmc
from concord.sampling.schedules import Schedule
from variants import problem


def stationary(prob, **options):
    graph = topology.build("server", prob.agents)
    update = dg_lmc.affine(prob, graph, dg_lmc.Params(**options))
    size = prob.agents * prob.dim
    mean, cov = exact.stationary(update.at(0))
    return exact.marginals(mean[:size], cov[:size, :size], prob.agents, prob.dim)


SKEW = (((1.0, 0.5), (-0.3, 2.0)),)
SKEWS = (*SKEW, ((0.7, 0.0), (1.0, 1.0)), ((3.0, 1.0), (1.0, 1.0)))


@pytest.mark.parametrize(
    ("agents", "rho", "steps", "coupling"),
    [
        *((4, 0.05, 1, None), (3, (0.02, 0.1, 0.3), 3, None), (1, 0.2, 2, None)),
        *((4, 0.05, 1, SKEW), (3, (0.02, 0.1, 0.3), 3, SKEWS)),
    ],
)
def test_small_steps_leave_the_bias_of_the_tolerance(agents, rho, steps, coupling):
    """Each P_i becomes (P_i^-1 + rho_i (A_i^T A_i)^-1)^-1; the rest goes with the step."""
    prob = problem(agents, 2)
    root = np.eye(2) if coupling is None else np.array(coupling)
    widths = np.broadcast_to(np.asarray(rho), agents)[:, None, None]
    widths = widths * np.linalg.inv(root.swapaxes(-1, -2) @ root)
    own = np.linalg.inv(np.linalg.inv(prob.gram) + widths)
    cov = np.linalg.inv(own.sum(axis=0))
    centers = np.linalg.solve(prob.gram, prob.shift[..., None])[..., 0]
    mean = cov @ np.einsum("aij,aj->i", own, centers)
    assert np.abs(cov / prob.posterior.cov - 1).max() > 0.05  # it is no small bias
    off = []
    for step in (2e-4, 1e-4):
        found = stationary(
            prob, step_size=Schedule(step), tolerance=rho, local_steps=steps, coupling=coupling
        )
        np.testing.assert_allclose(found[0] - found[0][:1], 0, atol=1e-12)
        np.testing.assert_allclose(found[2], mean, rtol=1e-8)
        off.append(found[3] - cov)
    assert np.abs(off[0]).max() < 0.02 * np.abs(cov).max()
    np.testing.assert_allclose(off[0], 2 * off[1], atol=0.02 * np.abs(off[0]).max())


@pytest.mark.parametrize("coupling", [SKEW, SKEWS])
def test_chains_have_the_exact_moments_with_ties_of_any_matrix(coupling):
    prob, chains = problem(3, 2), 20_000
    options = {"step_size": 0.02, "tolerance": 0.1, "coupling": coupling}
    law = concord.law("dg_lmc", prob, "server", iterations=8, record={"at": [8]}, **options)
    trace = concord.sample(
        "dg_lmc", prob, "server", iterations=8, chains=chains, record={"at": [8]}, **options
    )
    x, variance = trace["x"][:, 0, 0], law.cov[0, 0].diagonal()
    assert np.abs((x.mean(axis=0) - law.mean[0, 0]) / np.sqrt(variance / chains)).max() < 4
    assert np.abs(x.var(axis=0) / variance - 1).max() < 4 * np.sqrt(2 / chains)


@pytest.mark.parametrize("particles", [None, 2])
def test_ties_of_the_identity_are_the_plain_ones(particles):
    options = {"step_size": 0.02, "tolerance": 0.1, "particles": particles}
    plain, tied = (
        concord.sample("dg_lmc", problem(3, 2), "server", iterations=9, chains=5, **options, **more)
        for more in ({}, {"coupling": [[[1.0, 0.0], [0.0, 1.0]]]})
    )
    np.testing.assert_allclose(tied["x"], plain["x"], rtol=1e-9)


@pytest.mark.parametrize(
    "coupling", [[[[1.0, 2.0], [2.0, 4.0]]], [[[1.0]]], [[[1.0, 0.0], [0.0, 1.0]]] * 2]
)
def test_ties_are_of_invertible_matrices(coupling):
    with pytest.raises(ConcordError, match="coupling: give one invertible matrix of 2 rows"):
        concord.sample(
            "dg_lmc",
            problem(3, 2),
            "server",
            step_size=0.02,
            tolerance=0.1,
            coupling=coupling,
            iterations=1,
        )


def test_all_agents_know_the_same():
    trace = concord.sample(
        "dg_lmc", problem(5, 2), "server", step_size=0.01, tolerance=0.1, iterations=3, chains=4
    )
    x = trace["x"]
    assert np.ptp(x[:, 0], axis=1).min() > 0  # the start
    assert np.ptp(x[:, 1:], axis=2).max() == 0
    assert trace["unicasts"][-1].tolist() == [6] * 5  # up and down, three times


def test_it_takes_as_many_gradients_as_steps():
    prob = problem(3, 2)
    params = dg_lmc.Params(Schedule(0.01), tolerance=0.1, local_steps=4)
    rng = np.random.default_rng(1)
    state, step = dg_lmc.init(prob, topology.build("server", 3), params, np.zeros((2, 3, 2)), rng)
    assert step(state, 0, rng)[1].gradients.tolist() == [4, 4, 4]


@pytest.mark.parametrize(("particles", "recorded"), [(1, 0.565), (5, 0.597), (10, 0.614)])
def test_theta_is_accepted_as_often_as_its_authors_saw(particles, recorded):
    """The Gaussian example of the released code with rho = 1/M, on other points of its law."""
    rng = np.random.default_rng(3)
    cov = np.array([[1.0, -0.5], [-0.5, 1.0]])
    y = rng.multivariate_normal(np.zeros(2), cov, (10, 200))
    precision = np.linalg.inv(cov)
    H = 200 * precision + np.linalg.inv([[1.0, 0.5], [0.5, 1.0]]) / 10
    prob = concord.problems.quadratic(np.repeat(H[None], 10, axis=0), y.sum(axis=1) @ precision)
    rho = 1 / 402
    trace = concord.sample(
        "dg_lmc",
        prob,
        "server",
        step_size=rho / 4,
        tolerance=rho,
        particles=particles,
        chains=100,
        iterations=150,
        initial={"kind": "normal", "sd": 0.03},
        seed=2,
    )
    x = trace["x"][:, 30:]
    np.testing.assert_array_equal(np.ptp(x, axis=2), 0)  # one theta
    moved = (np.diff(x[:, :, 0, 0], axis=1) != 0).mean(axis=1)  # of each chain
    assert moved.mean() == pytest.approx(recorded, abs=0.006 + 4 * moved.std() / 10)
    active = np.diff(trace["activations"][:, 30:, 0], axis=1)
    np.testing.assert_array_equal(active.mean(axis=1), moved)


def test_particles_leave_less_bias_than_none():
    prob = problem(4, 2)
    widths = []
    for more in ({}, {"particles": 5}):
        trace = concord.sample(
            "dg_lmc",
            prob,
            "server",
            step_size=0.005,
            tolerance=0.3,
            chains=200,
            iterations=400,
            seed=1,
            **more,
        )
        late = trace["x"][:, 200::20, 0].reshape(-1, 2)
        widths.append(np.trace(np.cov(late.T)) / np.trace(prob.posterior.cov))
    assert abs(widths[1] - 1) < abs(widths[0] - 1) / 2


def test_odds_need_potentials():
    class Bare:
        agents, dim, posterior = 2, 2, None

    params = dg_lmc.Params(Schedule(0.01), tolerance=0.1, particles=2)
    with pytest.raises(ConcordError, match="states no potentials"):
        dg_lmc.check(Bare(), topology.build("server", 2), params)
