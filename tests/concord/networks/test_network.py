"""What agents hear of each other, by loops over agents and arcs; and what that is counted as."""

import itertools

import numpy as np
import pytest

from concord.networks.construction import network
from concord.networks.graph import as_dense
from concord.networks.network import Network
from concord.networks.topology import build_graph
from concord.samplers.admm import ADMM
from concord.samplers.d_ula import DULA
from concord.samplers.de_sghmc import DESGHMC
from concord.samplers.de_sgld import DESGLD
from concord.samplers.diging_sgld import DIGingSGLD
from concord.samplers.extra_sgld import EXTRASGLD
from concord.samplers.local_sgld import LocalSGLD
from concord.samplers.push_sum_sgld import PushSumSGLD
from steps import EXACT, Regression, start, steps_of

RING = build_graph("ring", 4)
WHEEL = build_graph("edge_list", 5, edges=[[0, 1], [0, 2], [0, 3], [1, 2], [3, 4]])
DIRECTED = build_graph("directed_ring", 6, every=2)
GRAPHS = [RING, WHEEL, DIRECTED, build_graph("no_edges", 3), build_graph("ring", 90)]


def loss(rate, direction="one_way"):
    return {"kind": "bernoulli", "rate": rate, "direction": direction}


def fixed(iterations):
    return {"kind": "fixed", "iterations": iterations}


LOST = ("keep_own_weight", "reuse_last", "skip")  # what a receiver does by itself
POLICIES = (*LOST, "sender_keeps")


def normal(*shape, seed=3):
    return np.random.default_rng(seed).standard_normal(shape)


def started(net, x, seed=1):
    return net.start(x, np.random.default_rng(seed), np.random.default_rng(seed + 1))


def arcs_of(graph):
    """Return the pairs (receiver, sender) in the order of masks."""
    return list(zip(graph.receivers.tolist(), graph.senders.tolist(), strict=True))


@pytest.mark.parametrize("order", ["simultaneous", "in_place"])
@pytest.mark.parametrize("graph", GRAPHS, ids=lambda g: f"{g.name}-{g.agents}")
def test_mixing_is_the_loop_over_agents(graph, order):
    n, x, plus = graph.agents, normal(3, graph.agents, 2), normal(3, graph.agents, 2, seed=4)
    before, net = (x.copy(), plus.copy()), started(Network(graph, order=order), x)
    named = net.matrix("row_stochastic")
    for weights in (named, "row_stochastic", graph.matrix(normal(len(graph.senders)), normal(n))):
        dense = as_dense(named if isinstance(weights, str) else weights)
        for added in (None, plus):
            expected = x.copy()
            for i in range(n):
                seen = expected if order == "in_place" else x
                expected[:, i] = sum(dense[i, j] * seen[:, j] for j in np.flatnonzero(dense[i]))
                expected[:, i] += 0 if added is None else added[:, i]
            found = net.mix(weights, x, added)
            np.testing.assert_allclose(found, expected, rtol=0, atol=EXACT)
    assert np.array_equal(x, before[0]) and np.array_equal(plus, before[1])
    assert (net.meter.unicasts == 6 * graph.degrees).all()
    assert (net.meter.broadcasts == 6 * np.minimum(graph.degrees, 1)).all()


HAPPENS = [
    {"loss": loss(0.5), "awake": 0.8},
    {"loss": loss(0.5)},
    {"loss": loss(0.0), "awake": 0.8},
    {"loss": loss(0.3), "awake": 0.8, "delay": fixed(2)},
    {"delay": fixed(2)},
]


@pytest.mark.parametrize(
    ("happens", "policy"),
    [*itertools.product(HAPPENS[:3], POLICIES), *itertools.product(HAPPENS[3:], LOST)],
    ids=str,
)
@pytest.mark.parametrize("graph", [RING, WHEEL], ids=lambda g: g.name)
def test_mixing_is_the_loop_over_agents_with_what_arrived(graph, happens, policy):
    """Of what was sent as many iterations before as vectors are under way."""
    x, arcs, late = normal(7, graph.agents, 2), arcs_of(graph), 2 * ("delay" in happens)
    net = started(network(graph, **happens, on_loss=policy), x)
    dense, past, last, seen = graph.metropolis, [], x[:, graph.senders].copy(), []
    for k in range(9):
        net.begin(k)
        past.append(x)
        expected, arrived = np.empty_like(x), net.traffic.arrived
        seen.append(arrived)
        assert k >= late or not arrived.any()
        for c, (e, (i, j)) in itertools.product(range(7), enumerate(arcs)):
            if arrived[e, c]:
                last[c, e] = past[k - late][c, j]
            elif policy != "reuse_last":
                last[c, e] = 0 if policy == "sender_keeps" else x[c, i]
        for c, i in np.ndindex(7, graph.agents):
            heard = sum(dense[arc] * last[c, e] for e, arc in enumerate(arcs) if arc[0] == i)
            if policy == "sender_keeps":
                lost = [arc for e, arc in enumerate(arcs) if arc[1] == i and not arrived[e, c]]
                heard = heard + sum(dense[arc] for arc in lost) * x[c, i]
            expected[c, i] = dense[i, i] * x[c, i] + heard + 1
        x = net.mix("metropolis", x, np.ones_like(x))
        np.testing.assert_allclose(x, expected, rtol=0, atol=EXACT)
        if policy == "skip" and not late:
            assert all(len({arrived[e, c] for e, arc in enumerate(arcs) if arc[0] == i}) == 1
                       for c, i in np.ndindex(7, graph.agents))  # fmt: skip
    assert 0.05 < np.mean(seen) < 0.95


@pytest.mark.parametrize("policy", POLICIES)
def test_the_vectors_of_an_agent_arrive_together_or_not_at_all(policy):
    """Two channels, one of which holds twice what the other does, whatever happens."""
    late = {} if policy == "sender_keeps" else {"delay": fixed(1)}
    x = normal(9, 5, 2)
    net = started(network(WHEEL, loss=loss(0.5), awake=0.8, **late, on_loss=policy), x)
    assert net.open_channel(2 * x) == 1
    for k in range(8):
        net.begin(k)
        twice = net.mix("metropolis", 2 * x, channel=1)
        x = net.mix("metropolis", x)
        np.testing.assert_allclose(twice, 2 * x, rtol=0, atol=EXACT)
    awake = net.meter.broadcasts / 2  # so many vectors of each
    assert (net.meter.unicasts == 2 * awake * WHEEL.degrees).all() and 5 < awake.mean() < 7.5


def test_what_was_said_last_is_known_and_not_sent_again():
    """Where nothing happens all have what is; else what has arrived, at first the start."""
    x, weights = normal(4, 5, 2), WHEEL.signless_laplacian
    net = started(Network(WHEEL), x)
    np.testing.assert_allclose(net.mix_known(weights, x), weights @ x, rtol=0, atol=EXACT)
    assert not net.meter.unicasts.any()
    net = started(network(WHEEL, loss=loss(0.5), on_loss="reuse_last"), x)
    known, arcs = x[:, WHEEL.senders].copy(), arcs_of(WHEEL)
    for k in range(4):
        expected = weights.diagonal()[:, None] * x
        for e, (i, j) in enumerate(arcs):
            expected[:, i] += weights[i, j] * known[:, e]
        np.testing.assert_allclose(net.mix_known(weights, x), expected, rtol=0, atol=EXACT)
        net.begin(k)
        net.mix("metropolis", x)
        arrived = net.traffic.arrived.T
        known[arrived] = x[:, WHEEL.senders][arrived]
        x = x + 1
    assert (net.meter.broadcasts == 4).all()


def test_a_pair_hears_how_far_it_is_apart_or_nothing():
    x, pairs = normal(200, 2, 3), np.tile([[3, 0], [2, 1]], (100, 1))
    lossless = started(Network(WHEEL), normal(200, 5, 3))
    np.testing.assert_array_equal(lossless.difference(pairs, x), x - x[:, ::-1])
    counted = np.zeros((200, 5))
    counted[np.arange(200)[:, None], pairs] = 1
    assert (lossless.meter.unicasts == counted).all() and (
        lossless.meter.broadcasts == counted
    ).all()
    np.testing.assert_array_equal(lossless.meter.unicast_bytes, 24 * counted)
    net = started(network(WHEEL, loss=loss(0.5)), normal(200, 5, 3))
    net.begin(0)
    found, arcs = net.difference(pairs, x), arcs_of(WHEEL)
    for c, (place, (i, j)) in itertools.product(range(200), enumerate([(0, 1), (1, 0)])):
        arrived = net.traffic.arrived[arcs.index((pairs[c, i], pairs[c, j])), c]
        expected = x[c, i] - x[c, j] if arrived else np.zeros(3)
        np.testing.assert_array_equal(found[c, place], expected)
    assert 0.3 < (found[:, 0] == 0).all(axis=1).mean() < 0.7


def test_a_server_averages():
    server = network("server", 4)
    x = normal(3, 4, 2)
    net = started(server, x)
    expected = sum(x[:, i] for i in range(4)) / 4
    np.testing.assert_allclose(net.average(x)[:, 0], expected, rtol=0, atol=EXACT)
    assert net.meter.unicasts.tolist() == net.meter.broadcasts.tolist() == [2] * 4  # up and down
    np.testing.assert_array_equal(net.meter.unicast_bytes, 2 * 16.0)
    senders = np.array([[True, False, False, True]] * 3)
    net.average(x, senders=senders, size=5)
    assert (net.meter.unicasts == 2 + 2 * senders).all()
    np.testing.assert_array_equal(net.meter.unicast_bytes, 2 * 16.0 + 2 * 5 * senders)


def test_all_that_is_said_is_counted():
    """On a wheel whose degrees are 3, 2, 2, 2, 1, of vectors of three numbers in two chains."""
    degrees, x = np.array([3, 2, 2, 2, 1]), normal(2, 5, 3)

    def counts(say, net=None):
        net = started(net or Network(WHEEL), x)
        net.begin(0)
        say(net)
        return [np.broadcast_to(part, (2, 5)).tolist() for part in
                (net.meter.unicasts, net.meter.broadcasts, net.meter.unicast_bytes)]  # fmt: skip

    def each(unicasts, broadcasts, size):
        unicasts, broadcasts = (np.broadcast_to(part, (2, 5)) for part in (unicasts, broadcasts))
        return [unicasts.tolist(), broadcasts.tolist(), (unicasts * size).tolist()]

    assert counts(lambda n: n.mix("metropolis", x)) == each(degrees, 1, 24)
    single = x.astype(np.float32)
    assert counts(lambda n: n.mix("metropolis", single)) == each(degrees, 1, 12)
    assert counts(lambda n: n.mix("metropolis", x, size=7)) == each(degrees, 1, 7)
    first = np.array([[True], [False]])
    assert counts(lambda n: n.mix("metropolis", x, chains=first[:, 0])) == each(
        degrees * first, 1 * first, 24
    )
    longer = np.concatenate([x, x[..., :1]], axis=2)  # a third of a vector more
    found = counts(lambda n: n.mix("metropolis", longer))
    np.testing.assert_allclose(found[0], np.tile(degrees * 4 / 3, (2, 1)))
    np.testing.assert_allclose(found[2], np.tile(degrees * 32.0, (2, 1)))
    asked = np.array([True, False, False, False, True])
    assert counts(lambda n: n.announce(asked)) == each(degrees * asked, asked, 24)
    few = np.array([[0, 4], [1, 2]])
    said = np.array([[1, 0, 0, 0, 1], [0, 1, 1, 0, 0]])
    assert counts(lambda n: n.count_sent(few)) == each(said, said, 24)
    assert counts(lambda n: n.count_sent(few, 1, degrees[few])) == each(said * degrees, said, 24)
    nobody = network(WHEEL, awake=1e-90)
    assert counts(lambda n: n.mix("metropolis", x), nobody) == each(0, 0, 24)
    half = network(WHEEL, compression={"kind": "top_k", "share": 0.1})
    assert counts(lambda n: n.mix("metropolis", x), half) == each(degrees, 1, 9)
    down = network(WHEEL, schedule={"kind": "kept", "probability": 0.0})
    assert counts(lambda n: n.mix("metropolis", x), down) == each(0, 0, 24)


def test_one_peer_at_a_time_averages_exactly_after_log_n_iterations():
    net, x = network("directed_exponential", 8, schedule={"kind": "one_peer"}), normal(3, 8, 2)
    net, y = started(net, x), x
    for k in range(3):
        net.begin(k)
        y = net.mix("pairwise", y)
        assert (net.meter.unicasts == k + 1).all()
    np.testing.assert_allclose(y, np.broadcast_to(x.mean(axis=1)[:, None], x.shape), atol=EXACT)


SAMPLERS = [
    DESGLD(0.05), DESGHMC(0.2, 1.5, initial_velocity_sd=0.5), DULA(0.05, 0.2), ADMM(0.7),
    EXTRASGLD(0.05, h=0.3), DIGingSGLD(0.05), LocalSGLD(0.05, period=3, common_noise=0.4),
]  # fmt: skip


@pytest.mark.parametrize("sampler", [*SAMPLERS, PushSumSGLD(0.01)], ids=lambda s: s.name)
def test_who_sleeps_neither_moves_nor_sends_nor_pays(sampler):
    policy = "reuse_last" if isinstance(sampler, ADMM) else "sender_keeps"
    problem, net = Regression(5, 2), network(WHEEL, awake=0.5, on_loss=policy)
    found = steps_of(sampler, problem, net, 1, x0=start(problem, 50))
    before, after = found.states
    active = found.network.meter.activations == 1
    assert 0.3 < active.mean() < 0.7
    for part, moved in zip(before, after, strict=True):
        if part.size:
            same = (part == moved).reshape(50, 5, -1).all(axis=2)
            assert same[~active].all()
    assert ((before.x != after.x).all(axis=2) == active).all()
    vectors = found.network.meter.broadcasts.max()
    assert (found.network.meter.unicasts == vectors * active * WHEEL.degrees).all()
    assert (found.gradients == found.gradients.max() * active).all()


def test_the_sums_of_push_sum_are_conserved_whatever_gets_lost():
    net = network(DIRECTED, loss=loss(0.4), awake=0.7, on_loss="sender_keeps")
    problem = Regression(6, 2)
    x0 = start(problem, 50)
    state = steps_of(PushSumSGLD(1e-30), problem, net, 60, x0=x0).states[-1]
    assert abs(state.y.sum(axis=1) - 6).max() < EXACT
    total = (state.x * state.y[..., None]).sum(axis=1)
    np.testing.assert_allclose(total, x0.sum(axis=1), rtol=0, atol=EXACT)
    # and all agents get to the average of the start
    assert abs(state.x - x0.mean(axis=1, keepdims=True)).max() < 1e-2
