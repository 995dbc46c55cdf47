"""D-ULA against its equation by hand, and what it reduces to."""

from __future__ import annotations

import numpy as np
import pytest
from chains import EXACT, chain

from concord.networks import topology
from concord.networks.mixing import ORDERS
from concord.samplers import d_ula, de_sgld
from concord.sampling.schedules import Schedule
from variants import CONSTANT, DECAYING, GRAPHS, problem

ONE = {"gradient_scale": "one", "noise_variance": "one"}


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda g: f"{g.name}-{g.agents}")
def test_a_step_is_the_printed_equation(graph):
    prob, n = problem(graph.agents, 2), graph.agents
    params = d_ula.Params(DECAYING, Schedule(0.3, c=0.5))
    found = chain(d_ula, prob, graph, params, chains=1)
    rng = np.random.default_rng(1)
    x = found[0, 0]
    for k in range(5):
        alpha, beta = 0.02 / (2 + k) ** 0.7, 0.3 / (1 + 0.5 * k)
        noise = np.sqrt(n) * rng.standard_normal(x.shape)
        new = np.empty_like(x)
        for i in range(n):
            apart = sum((x[i] - x[j] for j in graph.neighbors[i]), np.zeros(2))
            gradient = prob.gram[i] @ x[i] - prob.shift[i]
            new[i] = x[i] - beta * apart - alpha * n * gradient + np.sqrt(2 * alpha) * noise[i]
        x = new
        np.testing.assert_allclose(found[k + 1, 0], x, rtol=0, atol=EXACT)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("kind", "agents", "fusion"), [("complete", 5, 1 / 5), ("ring", 5, 1 / 3), ("no_edges", 3, 0.4)]
)
def test_it_is_de_sgld_where_metropolis_weights_are_a_laplacian_step(kind, agents, fusion, order):
    """W = I - L / N on the complete graph, I - L / 3 on a ring, I without edges."""
    graph, prob = topology.build(kind, agents), problem(agents, 2)
    one = d_ula.Params(CONSTANT, Schedule(fusion), **ONE, update_order=order, batch_size=2)
    other = de_sgld.Params(CONSTANT, update_order=order, batch_size=2)
    np.testing.assert_allclose(
        chain(d_ula, prob, graph, one), chain(de_sgld, prob, graph, other), rtol=0, atol=EXACT
    )


def test_factors_of_n_are_a_step_size_n_times_larger():
    graph, prob = topology.build("star", 4), problem(4, 2)
    scaled = d_ula.Params(Schedule(0.01), Schedule(0.1))
    larger = d_ula.Params(Schedule(0.04), Schedule(0.1), **ONE)
    np.testing.assert_allclose(
        chain(d_ula, prob, graph, scaled), chain(d_ula, prob, graph, larger), rtol=0, atol=EXACT
    )
