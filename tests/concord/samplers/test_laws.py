"""Stationary laws, read off a sampler's steps, against closed forms."""

import numpy as np
import pytest

from concord.networks.construction import network
from concord.samplers.de_sgld import DESGLD
from concord.samplers.diging_sgld import DIGingSGLD
from concord.samplers.extra_sgld import EXTRASGLD
from concord.samplers.graph_gibbs import GraphGibbs
from steps import NAMES, NETWORKS, Quadratic, Regression, limit


@pytest.mark.parametrize("h", [0.1, 0.5])
@pytest.mark.parametrize("kind", ["ring", "torus", "exponential", "complete"])
def test_with_equal_hessians_averages_have_one_law(h, kind):
    """On any doubly stochastic W the average is the Langevin algorithm with step eta / N on f."""
    rng, net, eta = np.random.default_rng(3), network(kind, 16), 0.02
    root = rng.standard_normal((2, 2))
    hessian = root @ root.T / 16 + 0.1 * np.eye(2)
    problem = Quadratic(np.tile(hessian, (16, 1, 1)), rng.standard_normal((16, 2)))
    gram, step = 16 * hessian, eta / 16
    cov = np.linalg.inv(gram @ (np.eye(2) - step / 2 * gram))
    for sampler in (DESGLD(eta), EXTRASGLD(eta, h=h), DIGingSGLD(eta)):
        found = limit(sampler, problem, net)
        np.testing.assert_allclose(found[2], problem.posterior.mean, rtol=1e-8)
        np.testing.assert_allclose(found[3], cov, rtol=1e-8)


def coupled(problem, net, rho):
    """Return mean and covariance of the graph-coupled target."""
    precision = np.zeros((net.agents, problem.dim) * 2)
    for i in range(net.agents):
        precision[i, :, i] += problem.gram[i]
    for i, j in net.edges:
        for a, b in ((i, j), (j, i)):
            precision[a, :, a] += np.eye(problem.dim) / rho
            precision[a, :, b] -= np.eye(problem.dim) / rho
    cov = np.linalg.inv(precision.reshape(problem.shift.size, -1))
    return (cov @ problem.shift.ravel()).reshape(problem.shift.shape), cov


@pytest.mark.parametrize("net", NETWORKS, ids=NAMES)
def test_draws_of_graph_gibbs_have_the_graph_coupled_law(net):
    problem = Regression(net.agents, 2)
    found, expected = limit(GraphGibbs(0.1), problem, net), coupled(problem, net, 0.1)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(found[4], expected[1], rtol=1e-9, atol=1e-10)
