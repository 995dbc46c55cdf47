"""Samplers and networks of released codes, in their papers' plug-ins, against plain loops."""

from math import sqrt
from pathlib import Path

import numpy as np
import pytest

from concord import kinds
from concord.arguments import ChosenSampler
from concord.errors import ConcordError
from concord.networks.construction import network
from concord.networks.network import Network
from concord.networks.topology import build_graph
from concord.samplers.de_sgld import DESGLD
from steps import CONSTANT, EXACT, NAMES, NETWORKS, Regression, chain, steps_of

PAPERS = Path(__file__).parents[2] / "config" / "papers"
ETA, H, RHO = 0.013, 0.3, 2.0
POWER = {"kind": "power", "a": 0.2, "b": 3.0, "exponent": 0.5}
every_network = pytest.mark.parametrize("net", NETWORKS, ids=NAMES)


def sampler(paper, kind, **options):
    kinds.use(PAPERS / paper)
    return ChosenSampler.parse({"kind": kind, **options}, "sampler").params


def in_turn(**options):
    options = {"step_size": ETA, "fusion": POWER, **options}
    return sampler("parayil2020", "d_ula_in_turn", **options)


def in_place(**options):
    return sampler("tzikas2024", "admm_in_place", penalty=RHO, **options)


def two_steps(**options):
    return sampler("extra2024", "two_steps", step_size=ETA, h=H, **options)


def neighbors(net):
    return [
        sorted({i + j - own for i, j in net.edges if own in (i, j)}) for own in range(net.agents)
    ]


@every_network
def test_d_ula_goes_to_one_neighbor_after_another(net):
    problem, kind = Regression(net.agents, 2), in_turn(gradient_scale="one")
    rng = np.random.default_rng(1)
    found = chain(kind, problem, net)
    for k, x in enumerate(found[:-1]):
        beta, noise = kind.fusion(k), rng.standard_normal(x.shape)
        new = np.empty_like(x)
        for i, around in enumerate(neighbors(net)):
            y = x[:, i].copy()
            for j in around:
                y = y - beta * (y - x[:, j])
            slope = x[:, i] @ problem.gram[i] - problem.shift[i]
            new[:, i] = y - ETA * slope + sqrt(2 * ETA * net.agents) * noise[:, i]
        np.testing.assert_allclose(found[k + 1], new, rtol=0, atol=EXACT)


@pytest.mark.parametrize("noise", [True, False])
@every_network
def test_admm_moves_in_turn_pulled_to_the_first_agents(net, noise):
    problem, around, rng = Regression(net.agents, 2), neighbors(net), np.random.default_rng(1)
    found = chain(in_place(noise=noise), problem, net)
    p = np.zeros(found[0].shape)
    for k, x in enumerate(found[:-1]):
        w = rng.standard_normal(x.shape) if noise else np.zeros(x.shape)
        new = x.copy()
        for i, others in enumerate(around):
            degree = len(others)
            b = RHO * (degree * x[:, i] + sum(new[:, j] for j in range(degree))) - p[:, i]
            b = b - sqrt(2) * degree * w[:, i] + problem.shift[i]
            new[:, i] = b @ np.linalg.inv(problem.gram[i] + 2 * RHO * degree * np.eye(2))
        for i, others in enumerate(around):
            p[:, i] += RHO * sum(new[:, i] - new[:, j] for j in others)
        np.testing.assert_allclose(found[k + 1], new, rtol=0, atol=EXACT)


@every_network
def test_two_steps_by_both_weights_one_agent_after_another(net):
    problem, found = Regression(net.agents, 2), chain(two_steps(), Regression(net.agents, 2), net)
    rng, weights = np.random.default_rng(1), np.asarray(net.matrix("metropolis"))
    both = H * np.eye(net.agents) + (1 - H) * weights, weights
    x = found[0].copy()
    for after in found[1:]:
        noise = [rng.standard_normal(x.shape) for _ in both]
        for i in range(net.agents):
            for matrix, kicks in zip(both, noise, strict=True):
                slope = x[:, i] @ problem.gram[i] - problem.shift[i]
                mixed = np.einsum("j,cjd->cd", matrix[i], x)
                x[:, i] = mixed - ETA * slope + sqrt(2 * ETA) * kicks[:, i]
        np.testing.assert_allclose(after, x, rtol=0, atol=EXACT)


def test_two_steps_draw_mini_batches_of_all_agents_for_each_second_gradient():
    net, problem = network("ring", 4), Regression(4, 2)
    batches = {"batch_size": 2, "batch_scale": "none", "batch_pool": "all_but_last"}
    made = steps_of(two_steps(**batches), problem, net, 1)
    rng, x = np.random.default_rng(1), made.x[0].copy()
    weights = np.asarray(net.matrix("metropolis"))

    def slope(i, at, rows):
        features = problem.features[i, rows[:, i]]
        errors = np.einsum("cbd,cd->cb", features, at) - problem.targets[i, rows[:, i]]
        return np.einsum("cb,cbd->cd", errors, features) + at / 4

    def rows():
        return (rng.random((3, 4, 2)) * (problem.counts[:, None] - 1)).astype(int)

    drawn, first, second = rows(), rng.standard_normal(x.shape), rng.standard_normal(x.shape)
    for i in range(4):
        before = x[:, i].copy()
        mixed = np.einsum("j,cjd->cd", H * np.eye(4)[i] + (1 - H) * weights[i], x)
        x[:, i] = mixed - ETA * slope(i, before, drawn) + sqrt(2 * ETA) * first[:, i]
        mixed = np.einsum("j,cjd->cd", weights[i], x)
        x[:, i] = mixed - ETA * slope(i, x[:, i], rows()) + sqrt(2 * ETA) * second[:, i]
    np.testing.assert_allclose(made.x[1], x, rtol=0, atol=EXACT)


@pytest.mark.parametrize(
    ("kind", "gradients"), [(in_turn, [1] * 4), (in_place, [1] * 4), (two_steps, [2] * 4)]
)
def test_they_send_a_vector_to_every_neighbor(kind, gradients):
    made = steps_of(kind(), Regression(4, 2), network("star", 4), 1)
    assert made.network.meter.unicasts.tolist() == [3, 1, 1, 1]
    assert made.network.meter.broadcasts.tolist() == [1] * 4
    assert made.gradients.tolist() == gradients


@pytest.mark.parametrize("kind", [in_turn, in_place, two_steps])
def test_they_refuse_networks_on_which_not_every_vector_arrives(kind):
    loss = {"kind": "bernoulli", "rate": 0.2, "direction": "one_way"}
    lossy = network("ring", 5, loss=loss, on_loss="reuse_last")
    with pytest.raises(ConcordError, match="remove network"):
        kind().check(None, lossy)
    with pytest.raises(ConcordError, match="use topology complete"):
        kind().check(None, network("server", 5))


def test_neighbors_in_turn_are_not_agents_in_turn():
    with pytest.raises(
        ConcordError, match="update_order: 'in_place' is not allowed; choose one of"
    ):
        in_turn(update_order="in_place")


def next_two(agents):
    kinds.use(PAPERS / "gurbuzbalaban2021")
    return build_graph("ring_next_two", agents)


@pytest.mark.parametrize("order", ["simultaneous", "in_place"])
def test_a_ring_on_which_agents_average_with_the_next_two(order):
    problem, net = Regression(5, 2), Network(next_two(5), order=order)
    eta, rng = CONSTANT(0), np.random.default_rng(1)
    found = chain(DESGLD(CONSTANT), problem, net)
    for k, x in enumerate(found[:-1]):
        new, noise = x.copy(), rng.standard_normal(x.shape)
        for i in range(5):
            seen = new if order == "in_place" else x
            mixed = (seen[:, i] + seen[:, (i + 1) % 5] + seen[:, (i + 2) % 5]) / 3
            slope = x[:, i] @ problem.gram[i] - problem.shift[i]
            new[:, i] = mixed - eta * slope + sqrt(2 * eta) * noise[:, i]
        np.testing.assert_allclose(found[k + 1], new, rtol=0, atol=EXACT)


def test_the_next_two_are_those_of_a_ring_that_sends_and_loses_nothing():
    graph = next_two(5)
    np.testing.assert_allclose(graph.weights[3], [1 / 3, 0, 0, 1 / 3, 1 / 3])
    assert graph.degrees.tolist() == [2] * 5
    assert not next_two(3).weighs_beyond_edges
    with pytest.raises(ConcordError, match="ring of 3 agents or more, not 2"):
        next_two(2)
    lossy = network("ring", 5, awake=0.5)
    with pytest.raises(ConcordError, match="average with more than neighbors"):
        Network(graph, lossy.conditions)
