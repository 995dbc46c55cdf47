"""DE-SGLD and DE-SGHMC with the options of released code, against loops over agents written out.

Agents move one after another and average with the next two around a ring; mini-batches are not
scaled up, and drawn without the last point.
"""

import itertools
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.linalg
from chains import EXACT, chain

from concord.errors import ConcordError
from concord.laws import exact, paths
from concord.networks import topology
from concord.networks.weights import weights_of
from concord.problems.kinds import linear_regression
from concord.samplers import de_sghmc, de_sgld
from concord.sampling import streams
from concord.sampling.gradients import estimator
from concord.sampling.partition import Partition
from concord.sampling.schedules import Schedule
from variants import problem

ETA, GAMMA = 0.03, 4.0
RELEASED = {"batch_scale": "none", "batch_pool": "all_but_last"} | {
    "update_order": "in_place",
    "weights": "next_two",
}
SAMPLERS = {
    "de_sgld": (de_sgld, {"step_size": Schedule(ETA)}),
    "de_sghmc": (de_sghmc, {"step_size": Schedule(ETA), "friction": GAMMA}),
}

every_sampler = pytest.mark.parametrize("sampler", SAMPLERS)


def params_of(sampler, **options):
    module, given = SAMPLERS[sampler]
    return module, module.Params(**given, **options)


def nine_points():
    params = linear_regression.Params(points=9, dim=1, prior_share="whole")
    split = Partition.parse({"kind": "equal"}, "tests")
    return linear_regression.build(
        params, 3, split, lambda what: streams.generator(3, what), Path("unused")
    )


def move(sampler, prob, x, v, rows, noise):
    """Move all agents once, in place; x, v, noise: (agents, dim), rows: (agents, batch)."""
    agents, x, v = prob.agents, x.copy(), v.copy()
    for i in range(agents):
        total = (x[i] + x[(i + 1) % agents] + x[(i + 2) % agents]) / 3
        gradient = prob.prior_precision * x[i]
        for j in rows[i]:
            point = prob.data.features[i, j]
            gradient = gradient + (x[i] @ point - prob.data.targets[i, j]) * point
        if sampler == "de_sgld":
            x[i] = total - ETA * gradient + np.sqrt(2 * ETA) * noise[i]
        else:
            v[i] += -ETA * (GAMMA * v[i] + gradient) + np.sqrt(2 * GAMMA * ETA) * noise[i]
            x[i] = total + ETA * v[i]
    return x, v


@every_sampler
@pytest.mark.parametrize("agents", [3, 5])
def test_a_step_is_the_loop(sampler, agents):
    prob = problem(agents, 2, share="whole", points=4)
    module, params = params_of(sampler, batch_size=2, **RELEASED)
    found = chain(module, prob, topology.build("ring", agents), params)
    rng = np.random.default_rng(1)
    x, v = found[0].copy(), np.zeros_like(found[0])
    for k in range(5):
        rows = (rng.random((3, agents, 2)) * (prob.counts[:, None] - 1)).astype(int)
        noise = rng.standard_normal(x.shape)
        for c in range(3):
            x[c], v[c] = move(sampler, prob, x[c], v[c], rows[c], noise[c])
        np.testing.assert_allclose(found[k + 1], x, rtol=0, atol=EXACT)


@every_sampler
def test_moments_are_those_of_all_sequences_of_mini_batches(sampler):
    """Two steps of three agents that draw one of two points: 64 Gaussians, weighed equally."""
    agents, dim, steps = 3, 1, 2
    graph, prob = topology.build("ring", agents), nine_points()
    module, params = params_of(sampler, batch_size=1, **RELEASED)
    update = module.affine(prob, graph, params)
    start = exact.initial(agents, dim, (0.5, 0.8), *update.auxiliary)
    size = len(start[0])

    def errors(mean, cov):
        return prob.batch_noise_covariance(mean, cov, 1, "none", "all_but_last")

    law = paths.single(update, start, agents, dim, errors).law([steps])

    def one(s, rows, noise):
        x, v = np.concatenate([s, np.zeros(2 * agents)])[: 2 * agents].reshape(2, agents, dim)
        x, v = move(sampler, prob, x, v, rows, noise.reshape(agents, dim))
        return np.concatenate([x.ravel(), v.ravel()])[:size]

    def affine(rows):
        still = np.zeros(agents)
        offset = one(np.zeros(size), rows, still)
        matrix = np.array([one(e, rows, still) - offset for e in np.eye(size)]).T
        gain = np.array([one(np.zeros(size), rows, e) - offset for e in np.eye(agents)]).T
        return matrix, offset, gain

    batches = list(itertools.product((0, 1), repeat=agents))
    maps = [affine(np.array(rows)[:, None]) for rows in batches]
    means, seconds = [], []
    for sequence in itertools.product(maps, repeat=steps):
        mean, cov = start
        for matrix, offset, gain in sequence:
            mean, cov = matrix @ mean + offset, matrix @ cov @ matrix.T + gain @ gain.T
        means.append(mean)
        seconds.append(cov + np.outer(mean, mean))
    mean = np.mean(means, axis=0)
    cov = np.mean(seconds, axis=0) - np.outer(mean, mean)
    np.testing.assert_allclose(law.mean[0].ravel(), mean[:agents], rtol=1e-11)
    np.testing.assert_allclose(law.cov[0].ravel(), cov.diagonal()[:agents], rtol=1e-11)
    np.testing.assert_allclose(law.average_cov[0], cov[:agents, :agents].mean(), rtol=1e-11)


@every_sampler
@pytest.mark.parametrize("order", ["simultaneous", "in_place"])
def test_the_limit_of_a_directed_ring_solves_the_lyapunov_equation(sampler, order):
    """W is not symmetric, nor is the update's matrix, also with simultaneous updates."""
    graph, prob = topology.build("ring", 6), problem(6, 2, points=8)
    module, params = params_of(sampler, weights="next_two", update_order=order)
    update = module.affine(prob, graph, params).at(0)
    assert np.abs(update.matrix - update.matrix.T).max() > 0.1
    size = len(update.offset)
    mean, cov = exact.limit(update, np.zeros(size), np.zeros((size, size)))
    lyapunov = scipy.linalg.solve_discrete_lyapunov(update.matrix, update.noise)
    np.testing.assert_allclose(cov, lyapunov, rtol=0, atol=1e-10 * np.abs(cov).max())
    fixed = np.linalg.solve(np.eye(size) - update.matrix, update.offset)
    np.testing.assert_allclose(mean, fixed, rtol=0, atol=1e-10 * np.abs(mean).max())


def test_next_two_are_the_next_two():
    found = weights_of(topology.build("ring", 5), "next_two").dense()
    rows = ([1, 1, 1, 0, 0], [0, 1, 1, 1, 0], [0, 0, 1, 1, 1], [1, 0, 0, 1, 1], [1, 1, 0, 0, 1])
    np.testing.assert_array_equal(found, np.array(rows) / 3)
    np.testing.assert_allclose(found.sum(axis=0), 1)
    # Three agents are all there are, and their weights those of Metropolis.
    ring = topology.build("ring", 3)
    np.testing.assert_allclose(weights_of(ring, "next_two").dense(), ring.metropolis().dense())


def test_metropolis_averages_all_agents_of_a_complete_graph():
    """So the released code's matrix of the complete graph, 1/N everywhere, is no option."""
    found = weights_of(topology.build("complete", 6), "metropolis").dense()
    np.testing.assert_allclose(found, np.full((6, 6), 1 / 6), rtol=0, atol=EXACT)


@every_sampler
@pytest.mark.parametrize(
    ("kind", "agents", "options", "message"),
    [
        (
            "complete",
            6,
            {"weights": "next_two"},
            r"a ring of 3 agents or more, not complete",
        ),
        ("ring", 2, {"weights": "next_two"}, r"not ring of 2; use metropolis"),
        (
            "ring",
            6,
            {"batch_scale": "none"},
            r"^batch_scale: none is of mini-.*remove batch",
        ),
        (
            "ring",
            6,
            {"batch_pool": "all_but_last"},
            r"^batch_pool: all_but_last is of mini-",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(sampler, kind, agents, options, message):
    module, params = params_of(sampler, **options)
    with pytest.raises(ConcordError, match=message):
        module.check(None, topology.build(kind, agents), params)
    module.check(None, topology.build("ring", 6), params_of(sampler)[1])


def test_an_agent_with_one_point_has_none_but_the_last():
    prob = problem(3, 1, points=1)
    with pytest.raises(ConcordError, match="agent 1 has one point"):
        estimator(prob, 1, 2, pool="all_but_last")


def test_unscaled_batches_need_the_prior_apart():
    prob = SimpleNamespace(
        agents=2, dim=1, counts=np.array([3, 3]), batch_gradient=lambda c, b: None
    )
    with pytest.raises(ConcordError, match="SimpleNamespace does not give its prior's gradient"):
        estimator(prob, 1, 2, scale="none")
