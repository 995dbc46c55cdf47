"""A server averages over all agents, and what it is sent and sends has another price."""

import numpy as np
import pytest

import concord
from concord.errors import ConcordError
from concord.networks.weights import weights_of
from concord.samplers import admm, d_ula, de_sgld, gossip_ula
from concord.sampling.schedules import Schedule
from variants import problem

STEP = Schedule(0.01)


@pytest.mark.parametrize("agents", [1, 2, 7])
def test_everybody_gets_the_average(agents):
    net = concord.network("server", agents)
    weights = weights_of(net, "metropolis").dense()
    np.testing.assert_allclose(weights, np.full((agents, agents), 1 / agents), atol=1e-15)
    np.testing.assert_array_equal(
        weights_of(net, "metropolis").dense(),
        weights_of(concord.network("complete", agents), "metropolis").dense(),
    )


def test_samples_are_those_of_the_complete_graph_and_the_price_is_not():
    prob, sent = problem(5, 2), {}
    for name in ("complete", "server"):
        network = concord.network(name, 5)
        trace = concord.sample("de_sgld", prob, network, iterations=10, chains=3, step_size=0.01)
        sent[network.messages] = trace["x"], trace["unicasts"][-1], trace["broadcasts"][-1]
    draws = [x for x, _, _ in sent.values()]
    assert all(np.array_equal(draws[0], x) for x in draws)
    prices = [(unicasts.sum(), broadcasts.sum()) for _, unicasts, broadcasts in sent.values()]
    # To each neighbor, or on the air; N up and N down.
    assert prices == [(10 * 20, 10 * 5), (10 * 10, 10 * 10)]


@pytest.mark.parametrize(
    ("module", "params", "told"),
    [
        (gossip_ula, gossip_ula.Params(STEP), "gossip_ula sends vectors from agent to agent"),
        (de_sgld, de_sgld.Params(STEP, update_order="in_place"), "update_order: in_place has no"),
        (admm, admm.Params(1.0, update_order="in_place"), "update_order: in_place has no"),
        (d_ula, d_ula.Params(STEP, STEP, neighbors="in_turn"), "neighbors: in_turn has no meaning"),
    ],
    ids=["gossip", "de_sgld", "admm", "d_ula"],
)
def test_samplers_that_need_neighbors_one_by_one_refuse_it(module, params, told):
    with pytest.raises(ConcordError, match=f"{told}.*server.*use topology complete"):
        module.check(None, concord.network("server", 5), params)
    module.check(None, concord.network("complete", 5), params)
