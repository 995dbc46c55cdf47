"""Gossip ULA against enumeration, exact moment recursions, and itself without triggering."""

import numpy as np
import pytest

from concord import random as choices
from concord.networks.construction import network
from concord.random import activity, draw_pairs
from concord.samplers.gossip_ula import GossipULA
from steps import EXACT, Quadratic, Regression, chain, start, steps_of

NETWORKS = {
    "star": network("star", 5),
    "path": network("path", 4),
    "ring": network("ring", 6),
    "erdos_renyi": network("erdos_renyi", 7, probability=0.5, seed=3),
    "pair": network("complete", 2),
}
every_network = pytest.mark.parametrize("net", NETWORKS.values(), ids=NETWORKS)
RING, RANDOM = NETWORKS["ring"], NETWORKS["erdos_renyi"]
TRIGGER = {"communication": "triggered", "threshold": 0.9, "decay": 0.4}
LIMIT = 5.0  # standard errors


def pair_laws(net):
    """Yield every ordered pair (i, j) of the definition with its probability, by plain loops."""
    for i in range(net.agents):
        around = [b if a == i else a for a, b in net.edges if i in (a, b)]
        for j in around:
            yield i, j, 1 / net.agents / len(around)


@every_network
def test_drawn_pairs_have_the_enumerated_law(net):
    drawn = draw_pairs(net.graph, (4000, 10), np.random.default_rng(2))
    assert net.agents == 2 or (drawn[:, 0] != drawn[:, 1]).any()  # chains have their own
    count, exact = np.zeros((2, net.agents, net.agents))
    np.add.at(count, tuple(drawn.reshape(-1, 2).T), 1)
    for i, j, probability in pair_laws(net):
        exact[i, j] = probability
    assert not count[exact == 0].any()
    error = np.sqrt(exact * (1 - exact) / 40_000)
    assert (np.abs(count / 40_000 - exact) <= LIMIT * error).all()


def test_zero_threshold_is_gossip_without_triggering():
    problem, trigger = Regression(7, 2), {**TRIGGER, "threshold": 0.0}
    plain, triggered = (
        steps_of(GossipULA(0.01, 0.3, **more), problem, RANDOM, 400) for more in ({}, trigger)
    )
    np.testing.assert_allclose(plain.x, triggered.x, rtol=0, atol=EXACT)
    # Two vectors per tick, one per activation: to the partner, or to all neighbors.
    for found in (plain, triggered):
        np.testing.assert_array_equal(
            found.network.meter.broadcasts, found.network.meter.activations
        )
        np.testing.assert_array_equal(found.gradients, found.network.meter.activations)
        assert (found.network.meter.broadcasts.sum(axis=1) == 800).all()
    np.testing.assert_array_equal(plain.network.meter.unicasts, plain.network.meter.activations)
    np.testing.assert_array_equal(
        triggered.network.meter.unicasts, triggered.network.meter.activations * RANDOM.degrees
    )


@pytest.mark.parametrize("known", ["nothing", "start"])
def test_triggering_by_plain_loops(known):
    """Eqs. (7)-(9) for one chain, agent by agent, from the sampler's own pairs and noise."""
    problem, n, alpha, beta, mu, delta, ticks = Regression(7, 2), 7, 1e-3, 0.3, 0.9, 0.4, 300
    x0 = start(problem, 1)
    found = steps_of(GossipULA(alpha, beta, known=known, **TRIGGER), problem, RANDOM, ticks, x0=x0)
    drawn, p = found.states[1], activity(RANDOM.graph)
    pairs, noise = drawn.pairs[:, 0], n / np.sqrt(2) * drawn.normals[:, 0]
    w, tau, sent = x0[0].copy(), [0] * n, [0] * n
    hat = list(w.copy()) if known == "start" else [None] * n
    for k in range(ticks):
        for a in pairs[k]:
            if hat[a] is None or ((w[a] - hat[a]) ** 2).sum() > mu / (tau[a] + 1) ** delta:
                hat[a] = w[a].copy()
                sent[a] += 1
            tau[a] += 1
        new = w.copy()
        for place, (a, b) in enumerate((pairs[k], pairs[k][::-1])):
            gradient = problem.gram[a] @ w[a] - problem.shift[a]
            new[a] = w[a] - beta * (hat[a] - hat[b]) - n * alpha / (2 * p[a]) * gradient
            new[a] += np.sqrt(2 * alpha) * noise[k, place]
        w = new
        # Same arithmetic in another order: rounding only.
        np.testing.assert_allclose(found.x[k + 1, 0], w, rtol=1e-9, atol=1e-9)
    assert found.network.meter.broadcasts[0].tolist() == sent
    assert found.network.meter.activations[0].tolist() == tau
    assert 0 < sum(sent) < sum(tau)


def test_numbers_drawn_together_do_not_repeat(monkeypatch):
    monkeypatch.setattr(choices, "NORMALS_PER_DRAW", 16)  # two ticks of 2 chains
    problem = Quadratic(np.zeros((6, 2, 2)), np.zeros((6, 2)))
    sampler = GossipULA(0.01, communication="never")
    steps = np.diff(chain(sampler, problem, RING, 40, x0=np.zeros((2, 6, 2))), axis=0)
    values = steps[steps != 0]
    assert values.size == 40 * 2 * 2 * 2
    # Increments x' - x carry rounding, so equal noise would agree to 1e-9 and not more.
    assert np.unique(np.round(values, 9)).size == values.size


@pytest.mark.slow
def test_triggers_amplify_rounding_over_thousands_of_ticks():
    """Of two starts that differ in the last digit the chains part, but not without triggers."""
    problem = Regression(5, 2, points=20)
    rare = {"communication": "triggered", "threshold": 8.0, "decay": 0.25}
    for options, ticks, least, most in (({}, 2000, 0.0, 1e-12), (rare, 12_000, 1e-6, np.inf)):
        sampler = GossipULA(1e-4, 0.1, **options)
        ends = [
            chain(sampler, problem, network("ring", 5), ticks, x0=sd * start(problem, 20))[-1]
            for sd in (1.0, 1.0 + 2.0**-52)
        ]
        assert least <= np.abs(ends[0] - ends[1]).max() <= most
        assert sampler.amplifies(5, 12_000) == bool(options)
