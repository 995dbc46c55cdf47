"""Steps that are not affine against their equations, by plain loops; and what all steps count.

Affine steps are held against the papers' matrices (tests/concord/laws/matrices.py).
"""

import itertools
import tracemalloc
from math import sqrt

import numpy as np
import pytest

from concord.networks.compressions import Compression
from concord.networks.construction import network
from concord.samplers.admm import ADMM
from concord.samplers.choco_sgld import CHOCOSGLD
from concord.samplers.d_ula import DULA
from concord.samplers.de_sghmc import DESGHMC
from concord.samplers.de_sgld import DESGLD
from concord.samplers.diging_sgld import DIGingSGLD
from concord.samplers.extra_sgld import EXTRASGLD
from concord.samplers.graph_gibbs import GraphGibbs
from concord.samplers.push_sum_sgld import PushSumSGLD
from concord.sampling.schedules import Schedule
from steps import DECAYING, EXACT, NAMES, NETWORKS, Regression, chain, logistic, start, steps_of

every_network = pytest.mark.parametrize("net", NETWORKS, ids=NAMES)
STAR = network("star", 4)


def neighbors(net):
    """Return the neighbors of each agent, from the edges."""
    around = [[] for _ in range(net.agents)]
    for i, j in net.edges:
        around[i].append(j)
        around[j].append(i)
    return around


def metropolis(net):
    """Return W by its definition, edge by edge."""
    around, weights = neighbors(net), np.zeros((net.agents, net.agents))
    for i, j in net.edges:
        weights[i, j] = weights[j, i] = 1 / (1 + max(len(around[i]), len(around[j])))
    for i in range(net.agents):
        weights[i, i] = 1 - sum(weights[i])
    return weights


def slope(problem, i, x):
    return problem.gram[i] @ x - problem.shift[i]


def follow(found, move, drawn=0):
    """Compare chains, step by step, with what ``move(k, c, x, noise)`` makes of chain c's x.

    The noise is that of the sampler, which draws it for all chains at once, after so many arrays.
    """
    rng = np.random.default_rng(1)
    rng.standard_normal((drawn, *found[0].shape))
    for k, (x, after) in enumerate(itertools.pairwise(found)):
        noise = rng.standard_normal(x.shape)
        expected = [move(k, c, x[c], noise[c]) for c in range(len(x))]
        np.testing.assert_allclose(after, expected, rtol=0, atol=EXACT)


@every_network
def test_d_ula_with_a_late_prior(net):
    n, problem, around = net.agents, Regression(net.agents, 2), neighbors(net)

    def move(k, c, x, noise):
        alpha, beta, new = 0.02 / (2 + k) ** 0.7, 0.3 / (1 + 0.5 * k), np.empty_like(x)
        for i in range(n):
            w = x[i] - beta * sum((x[i] - x[j] for j in around[i]), np.zeros(2))
            likelihood = slope(problem, i, x[i]) - x[i] / n
            new[i] = w - alpha * n * (likelihood + w / n) + sqrt(2 * alpha * n) * noise[i]
        return new

    sampler = DULA(DECAYING, Schedule(0.3, c=0.5), prior_gradient="after_mixing")
    follow(chain(sampler, problem, net), move)


@pytest.mark.parametrize("kind", [{"kind": "top_k", "share": 0.5}, {"kind": "top_k", "share": 1.0}])
def test_choco(kind):
    """The compression keeps the larger coordinate of two, or both."""
    net, problem, n = network("ring", 5), Regression(5, 2), 5
    weights, estimate = metropolis(net), start(problem)

    def move(k, c, x, noise):
        for i in range(n):
            apart = x[i] - estimate[c, i]
            if kind["share"] < 1:
                apart[np.argmin(abs(apart))] = 0
            estimate[c, i] += apart
        new = np.empty_like(x)
        for i in range(n):
            pull = sum(weights[i, j] * (estimate[c, j] - estimate[c, i]) for j in range(n))
            new[i] = x[i] + 0.4 * pull - 0.02 * slope(problem, i, x[i]) + sqrt(0.04) * noise[i]
        return new

    sampler = CHOCOSGLD(0.02, Compression(**kind), consensus_step=0.4)
    follow(chain(sampler, problem, net, 8), move)


@pytest.mark.parametrize("make", [lambda: Regression(5, 2), lambda: logistic(5)])
@pytest.mark.parametrize("kind", ["ring", "complete", "star", "no_edges"])
def test_admm_satisfies_its_equations(make, kind):
    """Optimality of the primal step and the dual step, agent by agent, with the noise known."""
    problem, net, rho = make(), network(kind, 5), 0.7
    path, around = chain(ADMM(penalty=rho), problem, net, 3), neighbors(network(kind, 5))
    rng, p = np.random.default_rng(1), np.zeros(path[0].shape)
    for old, new in itertools.pairwise(path):
        w, gradient = rng.standard_normal(old.shape), problem.gradient(new)
        for i in range(5):
            residual = gradient[:, i] + p[:, i]
            for j in around[i]:
                middle = (old[:, i] + old[:, j]) / 2 - sqrt(2) / (2 * rho) * w[:, i]
                residual = residual + 2 * rho * (new[:, i] - middle)
            assert np.abs(residual).max() < 2e-10
        for i in range(5):
            for j in around[i]:
                p[:, i] += rho * (new[:, i] - new[:, j])


# What steps take.

RAND = {"kind": "rand_k", "share": 0.5}
COUNTED = [  # on a star of four: unicasts of its center, broadcasts, gradients in a step
    (DESGLD(0.01), 3, 1, 1),
    (DESGHMC(0.01, 1.0), 3, 1, 1),
    (DULA(0.01, 0.1), 3, 1, 1),
    (EXTRASGLD(0.01), 3, 1, 1),
    (DIGingSGLD(0.01), 6, 2, 1),
    (PushSumSGLD(0.01), 4.5, 1.5, 1),  # a number is half a vector here
    (CHOCOSGLD(0.01, Compression(**RAND)), 3, 1, 1),
    (ADMM(0.7), 3, 1, 1),
    (GraphGibbs(0.1), 3, 1, 1),
    (GraphGibbs(0.1, Schedule(0.01)), 3, 1, 1),
]


@pytest.mark.parametrize(("sampler", "center", "broadcasts", "gradients"), COUNTED)
def test_what_a_step_takes(sampler, center, broadcasts, gradients):
    found = steps_of(sampler, Regression(4, 2), STAR, 3)
    count = found.network
    assert count.meter.unicasts.tolist() == [3 * center] + [center] * 3
    assert count.meter.broadcasts.tolist() == [3 * broadcasts] * 4
    np.testing.assert_array_equal(found.gradients, [3 * gradients] * 4)
    compressed = isinstance(sampler, CHOCOSGLD)
    size = 8 + 4 if compressed else 16  # a number and a seed, or two numbers
    np.testing.assert_array_equal(count.meter.unicast_bytes, count.meter.unicasts * size)


def test_a_thousand_agents_need_no_dense_matrix():
    """A long ring takes less memory than one byte for each pair of agents."""
    problem, ring = Regression(1000, 2), network("ring", 1000)
    for sampler in (ADMM(0.7), DESGLD(0.01), GraphGibbs(0.1)):
        steps_of(sampler, problem, ring, 1)  # imports what it needs
        tracemalloc.start()
        try:
            chain(sampler, problem, ring, 3, x0=start(problem, 1))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 1000**2
