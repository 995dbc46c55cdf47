"""DE-SGLD against its equation by hand, and what it reduces to."""

import numpy as np
import pytest
from chains import EXACT, chain

from concord.networks import topology
from concord.networks.mixing import ORDERS
from concord.samplers import de_sgld
from variants import CONSTANT, DECAYING, GRAPHS, problem


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda g: f"{g.name}-{g.agents}")
def test_a_step_is_the_printed_equation(graph):
    prob, weights = problem(graph.agents, 2), graph.metropolis().dense()
    found = chain(de_sgld, prob, graph, de_sgld.Params(step_size=DECAYING), chains=1)
    rng = np.random.default_rng(1)
    x = found[0, 0]
    for k in range(5):
        eta, noise = 0.02 / (2 + k) ** 0.7, rng.standard_normal(x.shape)
        new = np.empty_like(x)
        for i in range(graph.agents):
            gradient = prob.gram[i] @ x[i] - prob.shift[i]
            total = sum(weights[i, j] * x[j] for j in range(graph.agents))
            new[i] = total - eta * gradient + np.sqrt(2 * eta) * noise[i]
        x = new
        np.testing.assert_allclose(found[k + 1, 0], x, rtol=0, atol=EXACT)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("batch_size", [None, 2])
def test_without_edges_it_is_independent_langevin_chains(order, batch_size):
    """Each agent alone, with its own data and the same numbers, makes the same chain."""
    graph, prob = topology.build("no_edges", 4), problem(4, 3)
    params = de_sgld.Params(CONSTANT, batch_size=batch_size, update_order=order)
    found = chain(de_sgld, prob, graph, params)
    rng = np.random.default_rng(1)
    x, n = found[0].copy(), prob.counts[:, None]
    for k in range(5):
        if batch_size is None:
            gradient = np.einsum("ade,cae->cad", prob.gram, x) - prob.shift
        else:
            rows = (rng.random((3, 4, 2)) * n).astype(int)
            features = prob.data.features[np.arange(4)[:, None], rows]
            errors = np.einsum("cabd,cad->cab", features, x)
            errors -= prob.data.targets[np.arange(4)[:, None], rows]
            gradient = n / 2 * np.einsum("cab,cabd->cad", errors, features) + x / 4
        x = x - 0.013 * gradient + np.sqrt(2 * 0.013) * rng.standard_normal(x.shape)
        np.testing.assert_allclose(found[k + 1], x, rtol=0, atol=EXACT)
