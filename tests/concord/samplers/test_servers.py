"""Samplers with a server: Consensus Monte Carlo, FSGLD, QLSD and DG-LMC, and what they count."""

import itertools

import numpy as np
import pytest

from concord.networks.compressions import Compression
from concord.networks.construction import network
from concord.samplers.consensus_mc import ConsensusMC, State
from concord.samplers.dg_lmc import DGLMC
from concord.samplers.fsgld import FSGLD
from concord.samplers.qlsd import QLSD
from steps import EXACT, Regression, Still, chain, logistic, start, steps_of

SERVER, LIMIT, CHAINS = network("server", 4), 5.0, 2000  # standard errors
WHOLE, QSGD = Compression("top_k", share=1.0), Compression("qsgd", bits=3)
THETA = np.array([1.0, -2.0])


def close(one, other, **given):
    np.testing.assert_allclose(one, other, **{"rtol": 1e-11, "atol": EXACT, **given})


def at(theta, chains, agents=4):
    """Return positions that all are theta."""
    return np.tile(theta, (chains, agents, 1))


def drift(problem, theta):
    """Return the gradient of the sum."""
    return sum(problem.gram[i] @ theta - problem.shift[i] for i in range(problem.agents))


# Consensus Monte Carlo


def exact(problem, steps, chains=CHAINS, **options):
    """Return thetas after steps, (chains, dim), and what the steps are."""
    sampler = ConsensusMC(**options)
    net = network("server" if problem.agents > 1 else "no_edges", problem.agents)
    found = steps_of(sampler, problem, net, steps, x0=start(problem, chains))
    read = sampler.read_out(found.states[-1])
    assert np.array_equal(read, np.repeat(read[:, :1], problem.agents, axis=1), equal_nan=True)
    return read[:, 0], found


def test_with_the_right_covariances_theta_is_a_linear_map_that_makes_the_posterior():
    problem = Regression(4, 2)
    own, units = np.linalg.inv(problem.gram), np.eye(8).reshape(8, 4, 2)
    squares, nothing = np.broadcast_to(own * 30, (8, 4, 2, 2)), np.empty(0)
    state = State(units, 0 * units, squares, np.array([31.0]), nothing, nothing, nothing)
    found = ConsensusMC().read_out(state)
    assert np.ptp(found, axis=1).max() == 0
    matrix, blocks = found[:, 0].T, np.zeros((4, 2, 4, 2))
    blocks[np.arange(4), :, np.arange(4)] = own
    close(matrix @ blocks.reshape(8, 8) @ matrix.T, problem.posterior.cov)
    centers = np.linalg.solve(problem.gram, problem.shift[..., None]).ravel()
    close(matrix @ centers, problem.posterior.mean)


@pytest.mark.parametrize("combine", ["draws", "gaussian"])
def test_exact_draws_make_the_posterior(combine):
    """But for what errors of covariances from 200 draws add, about d N / 200 of the variance."""
    problem = Regression(4, 2)
    theta, found = exact(problem, 200, combine=combine)
    cov = problem.posterior.cov
    z = (theta.mean(axis=0) - problem.posterior.mean) / np.sqrt(cov.diagonal() / CHAINS)
    assert np.abs(z).max() < LIMIT
    root = np.linalg.inv(np.linalg.cholesky(cov))
    ratio = root @ np.cov(theta.T) @ root.T - np.eye(2)
    assert np.abs(ratio).max() < LIMIT * np.sqrt(2 / CHAINS) + 8 / 200
    # Every draw is worth a gradient, and sent once.
    assert found.gradients.tolist() == [200] * 4
    assert (found.network.meter.unicasts == 200).all() and (
        found.network.meter.broadcasts == 200
    ).all()


def test_a_diverged_chain_answers_nothing():
    theta, _ = exact(Regression(3, 2), 700, 3, step_size=5.0)
    assert np.isnan(theta).all()


# FSGLD


def one_of_each(problem, sampler, theta):
    """Return what one step without noise makes of theta, for each agent drawn."""
    rng = Still()
    rng.random = lambda size: np.arange(4) / 4 + 1 / 8  # in every chain the next agent
    found = steps_of(sampler, problem, SERVER, 1, x0=at(theta, 4), rng=rng)
    assert np.ptp(found.x[1], axis=1).max() == 0
    assert np.array_equal(found.network.meter.unicasts, 2 * np.eye(4)), (
        "only who is drawn is sent to"
    )
    assert np.array_equal(found.gradients, sampler.local_steps * np.eye(4))
    return found.x[1][:, 0]


@pytest.mark.parametrize("surrogates", ["none", "laplace"])
@pytest.mark.parametrize("make", [lambda: Regression(4, 2), logistic])
def test_over_agents_the_drift_is_that_of_the_posterior(make, surrogates):
    problem, eta, theta = make(), 0.03, np.array([0.7, -1.3])
    moved = one_of_each(problem, FSGLD(eta, surrogates=surrogates), theta)
    full = problem.gradient(at(theta, 1))[0].sum(axis=0)
    close(moved.mean(axis=0), theta - eta * full, rtol=1e-10)
    quadratic = isinstance(problem, Regression)
    assert (np.ptp(moved, axis=0).max() > 1e-6) == (not quadratic or surrogates == "none")


def test_surrogates_are_of_all_points_where_gradients_are_of_mini_batches():
    problem, theta = logistic(), np.array([0.7, -1.3])
    whole = one_of_each(problem, FSGLD(0.03, surrogates="laplace"), theta)
    options = {"batch_size": 10, "batch_order": "epochs"}  # all points of an agent, once each
    close(one_of_each(problem, FSGLD(0.03, surrogates="laplace", **options), theta), whole)
    options = {"batch_size": 1, "batch_order": "epochs"}
    few = one_of_each(problem, FSGLD(0.03, surrogates="laplace", **options), theta)
    assert np.abs(few - whole).min(axis=0).max() > 1e-6


# QLSD


def still(steps, chains=3, problem=None, x0=None, gamma=0.02, **options):
    """Return problem and steps of QLSD without normal noise from theta = (1, -2)."""
    problem, x0 = problem or Regression(4, 2), at(THETA, chains) if x0 is None else x0
    sampler = QLSD(gamma, **options)
    return problem, steps_of(sampler, problem, SERVER, steps, x0=x0, rng=Still())


@pytest.mark.parametrize("memory", [0.0, 0.5])
def test_without_compression_qlsd_is_langevin_on_the_sum(memory):
    problem, rng = Regression(4, 2), np.random.default_rng(1)
    found = chain(QLSD(0.02, WHOLE, memory_rate=memory), problem, SERVER)
    for k, (x, after) in enumerate(itertools.pairwise(found)):
        w = np.sqrt(0.04) * rng.standard_normal((3, 1, 2))[:, 0]
        moved = [each - 0.02 * drift(problem, each) + w[c] for c, each in enumerate(x[:, 0])]
        close(after, np.repeat(np.array(moved)[:, None], 4, axis=1))
        assert k or np.ptp(x, axis=1).min() > 0  # it starts where agent 0 does


@pytest.mark.parametrize(
    "options",
    [
        {"compression": QSGD},
        {"compression": QSGD, "memory_rate": 0.2},
        {"compression": QSGD, "participants": 2},
        {"compression": QSGD, "participants": 3, "memory_rate": 0.2},
        {"compression": WHOLE, "participants": 1},
    ],
    ids=str,
)
def test_on_average_the_drift_of_qlsd_is_that_of_the_posterior(options):
    chains, theta = 20_000, THETA
    problem, found = still(3, chains, **options)
    for x in found.x[1:]:
        theta = theta - 0.02 * drift(problem, theta)
        assert np.ptp(x, axis=1).max() == 0
        error = (x[:, 0].mean(axis=0) - theta) / (x[:, 0].std(axis=0) / np.sqrt(chains))
        assert np.abs(error).max() < LIMIT
    assert found.x[1][:, 0].std(axis=0).min() > 1e-3


def test_a_memory_follows_the_gradients_and_makes_the_drift_vary_less():
    """At the mode of the posterior the agents' gradients are not zero, what is left of them is."""
    spread = {}
    for rate in (0.0, 0.2):
        problem, found = still(300, 200, compression=QSGD, memory_rate=rate)
        spread[rate] = found.x[-1][:, 0].std(axis=0)
    assert (spread[0.2] < 0.05 * spread[0.0]).all()
    state = found.states[-1]
    gradients = problem.gradient(state.x)
    np.testing.assert_allclose(state.m, gradients, atol=0.02 * np.abs(gradients).max())
    assert not still(1, compression=QSGD)[1].states[1].m.any()


def test_differences_to_the_gradients_at_the_mode_vanish_there():
    """Without noise the mode is kept exactly, which whole gradients, rounded, do not."""
    problem = Regression(4, 3)
    x0 = at(problem.posterior.mean, 5)
    for begins, kept in (("mode", True), ("zero", False)):
        _, found = still(1, 5, problem, x0, compression=QSGD, memory_start=begins)
        assert np.allclose(found.x[1], x0, atol=1e-12) == kept


def test_control_variates_of_a_renewed_point_leave_less_than_plain_mini_batches():
    """The drift is the posterior's on average, exactly after a renewal, and varies less later."""
    problem, spread, chains = Regression(4, 2, points=5), {}, 4000
    for renewal, costs in ((None, [1] * 5), (3, [5, 2, 2, 5, 2])):
        options = {"compression": WHOLE, "batch_size": 2, "renewal": renewal, "gamma": 0.002}
        found, theta = still(5, chains, problem, **options)[1], THETA
        for x in found.x[1:]:
            theta = theta - 0.002 * drift(problem, theta)
            error = np.abs(x[:, 0].mean(axis=0) - theta)
            assert (error < LIMIT * x[:, 0].std(axis=0) / np.sqrt(chains) + 1e-9).all()
        assert (found.gradients == sum(costs)).all()  # 5 or 6 points are three mini-batches
        spread[renewal] = [x[:, 0].std(axis=0).max() for x in found.x[1:]]
    assert spread[3][0] < 1e-12
    assert spread[3][1] < spread[None][1] / 2


def test_who_takes_part_pays():
    _, found = still(40, 50, compression=QSGD, participants=3)
    assert (found.gradients.sum(axis=1) == 3 * 40).all()
    assert np.array_equal(found.network.meter.unicasts, 2 * found.gradients)
    error = np.sqrt(0.75 * 0.25 / 2000)
    assert np.abs(found.gradients.mean(axis=0) / 40 - 0.75).max() < LIMIT * error
    # A length and 3 bits for each of two numbers up, two numbers down.
    np.testing.assert_array_equal(found.network.meter.unicast_bytes, found.gradients * (8 + 1 + 16))


# DG-LMC

SKEW = ((1.0, 0.5), (-0.3, 2.0))


@pytest.mark.parametrize("particles", [None, 2])
@pytest.mark.parametrize(("rho", "coupling"), [(0.1, None), (0.2, SKEW)])
def test_dg_lmc_is_its_equations(rho, coupling, particles):
    """By loops over chains and agents."""
    problem, gamma, agents = Regression(4, 2), 0.02, range(4)
    A = np.eye(2) if coupling is None else np.array(coupling)
    tie = A.T @ A / rho
    sampler = DGLMC(gamma, rho, local_steps=3, coupling=coupling, particles=particles)
    found, rng = (
        steps_of(sampler, problem, SERVER, 4, x0=start(problem, 20)),
        np.random.default_rng(1),
    )

    def move(z, theta):
        w, new = rng.standard_normal(z.shape), np.empty_like(z)
        for c, i in np.ndindex(len(z), 4):
            gradient = problem.gram[i] @ z[c, i] - problem.shift[i]
            pull = np.linalg.inv(A.T @ A) @ gradient + (z[c, i] - theta[c, i]) / rho
            kick = np.sqrt(2 * gamma) * np.linalg.inv(A) @ w[c, i]
            new[c, i] = z[c, i] - gamma * pull + kick
        return new

    def log_q(s, t, z):
        total = np.zeros(len(z))
        for _ in range(particles):
            near = move(z, s)
            for c in range(len(z)):
                apart = t[c] - near[c]
                total[c] += np.exp(-sum(apart[i] @ tie @ apart[i] for i in agents) / 2)
        return np.log(total)

    root = np.sqrt(rho / 4) * np.linalg.inv(A)
    x = found.states[0].x
    assert (np.ptp(x, axis=1).max() == 0) == bool(particles)
    z, accepted = x, []
    for state in found.states[1:]:
        for _ in range(3):
            z = move(z, x)
        w = rng.standard_normal((20, 1, 2))[:, 0]
        theta = np.array([sum(z[c]) / 4 + root @ w[c] for c in range(20)])
        theta = np.repeat(theta[:, None], 4, axis=1)
        if particles:
            odds = problem.potential(x).sum(axis=1) - problem.potential(theta).sum(axis=1)
            odds = odds + log_q(theta, x, z) - log_q(x, theta, z)
            accepted.append(np.log(rng.random(20)) < odds)
            theta = np.where(accepted[-1][:, None, None], theta, x)
        x = theta
        close(state.z, z)
        close(state.x, x)
    if particles:
        moved = np.array(accepted).sum(axis=0)
        assert np.array_equal(found.network.meter.activations, np.repeat(moved[:, None], 4, axis=1))
        assert 0.02 < np.mean(accepted) < 0.98
    assert found.gradients.tolist() == [4 * (3 + 4 * (1 if particles else 0))] * 4
    assert found.network.meter.unicasts.tolist() == [4 * 2 * (2 if particles else 1)] * 4
