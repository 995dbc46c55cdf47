"""DE-SGHMC against its equations by hand, and what it reduces to."""

import numpy as np
import pytest
from chains import EXACT, chain

from concord.networks import topology
from concord.networks.mixing import ORDERS
from concord.samplers import de_sghmc, de_sgld
from concord.sampling.schedules import Schedule
from variants import DECAYING, GRAPHS, problem


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda g: f"{g.name}-{g.agents}")
def test_a_step_is_the_printed_equations(graph):
    prob, weights, gamma = problem(graph.agents, 2), graph.metropolis().dense(), 1.7
    found = chain(de_sghmc, prob, graph, de_sghmc.Params(DECAYING, gamma), chains=1)
    rng = np.random.default_rng(1)
    x, v = found[0, 0], np.zeros((graph.agents, 2))
    for k in range(5):
        eta, noise = 0.02 / (2 + k) ** 0.7, rng.standard_normal(x.shape)
        new = np.empty_like(x)
        for i in range(graph.agents):
            gradient = prob.gram[i] @ x[i] - prob.shift[i]
            v[i] = v[i] - eta * (gamma * v[i] + gradient) + np.sqrt(2 * gamma * eta) * noise[i]
        for i in range(graph.agents):
            new[i] = sum(weights[i, j] * x[j] for j in range(graph.agents)) + eta * v[i]
        x = new
        np.testing.assert_allclose(found[k + 1, 0], x, rtol=0, atol=EXACT)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("batch_size", [None, 2])
def test_friction_that_stops_the_velocity_leaves_de_sgld(order, batch_size):
    """With gamma = 1 / eta nothing of v is kept, and x moves by DE-SGLD with step eta^2."""
    graph, prob, eta = topology.build("path", 4), problem(4, 3), 0.11
    options = {"batch_size": batch_size, "update_order": order}
    heavy = de_sghmc.Params(Schedule(eta), 1 / eta, **options)
    plain = de_sgld.Params(Schedule(eta**2), **options)
    np.testing.assert_allclose(
        chain(de_sghmc, prob, graph, heavy), chain(de_sgld, prob, graph, plain), rtol=0, atol=EXACT
    )
