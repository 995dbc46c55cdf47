"""What happens on networks: masks have their frequencies, and their moments are as stated."""

import itertools

import numpy as np
import pytest

from concord.networks.construction import network
from concord.networks.effects import BurstLoss
from concord.networks.moments import mask_moments
from concord.networks.topology import build_graph
from steps import EXACT

RING = build_graph("ring", 4)
WHEEL = build_graph("edge_list", 5, edges=[[0, 1], [0, 2], [0, 3], [1, 2], [3, 4]])
DIRECTED = build_graph("directed_ring", 6, every=2, reach=3)
POLICIES = ("keep_own_weight", "reuse_last", "skip", "sender_keeps")
LIMIT = 5.0  # standard errors


KEPT = {"kind": "kept", "probability": 0.8}


def loss(rate, direction="one_way"):
    return {"kind": "bernoulli", "rate": rate, "direction": direction}


def traffic(iterations=1, chains=2000, seed=1, graph=WHEEL, **happens):
    """Return what is up, arrives and is awake in each iteration of a network."""
    net = network(graph, **happens)
    running = net.start(np.zeros((chains, net.agents, 1)), np.random.default_rng(seed))
    found = []
    for k in range(iterations):
        running.begin(k)
        found.append(running.traffic)
    return found


def assert_share(mask, expected):
    """Compare the share of true entries along the last axis, of chains, within standard errors."""
    expected = np.broadcast_to(expected, mask.shape[:-1])
    error = np.sqrt(expected * (1 - expected) / mask.shape[-1])
    assert (np.abs(mask.mean(axis=-1) - expected) <= LIMIT * error).all()


def back(mask, graph=WHEEL):
    return mask[graph.way_back]


def test_links_are_up_with_their_probability_both_ways_anew_each_time():
    first, second = traffic(2, schedule=KEPT)
    assert_share(first.up, 0.8)
    assert_share(first.up & second.up, 0.64)
    assert (first.up == back(first.up)).all() and (first.arrived == first.up).all()
    links = first.up[WHEEL.receivers < WHEEL.senders]
    for one, other in itertools.combinations(links, 2):
        assert_share((one & other)[None], 0.64)


def test_matchings_have_no_agent_in_two_pairs_and_their_chances():
    (found,) = traffic(chains=20_000, schedule={"kind": "matchings"})
    received = np.array([found.up[WHEEL.receivers == i].sum(axis=0) for i in range(5)])
    assert received.max() == 1 and (found.up == back(found.up)).all()
    for way, (i, j) in enumerate(zip(WHEEL.receivers, WHEEL.senders, strict=True)):
        rivals = sum(bool({i, j} & set(edge)) for edge in WHEEL.edges.tolist())  # and itself
        assert_share(found.up[way], 1 / rivals)


def test_a_pair_is_an_agent_and_a_neighbor_of_it():
    (found,) = traffic(chains=20_000, schedule={"kind": "pair"})
    assert (found.up.sum(axis=0) == 2).all() and (found.awake.sum(axis=0) == 2).all()
    assert (found.up == back(found.up)).all()
    shares = (1 / WHEEL.degrees[WHEEL.senders] + 1 / WHEEL.degrees[WHEEL.receivers]) / 5
    assert_share(found.up, shares)
    ends = np.zeros_like(found.awake)
    for way, i in enumerate(WHEEL.receivers):
        ends[i] |= found.up[way]
    assert (ends == found.awake).all()


def test_one_peer_at_a_time_in_turn():
    """On directed_exponential of 8 over distances 1, 2, 4; on a ring of four ahead, and behind."""
    graph = build_graph("directed_exponential", 8)
    one_peer = {"kind": "one_peer"}
    for k, found in enumerate(traffic(6, graph=graph, schedule=one_peer)):
        ahead = (graph.receivers - graph.senders) % 8
        assert (found.up == (ahead == 2 ** (k % 3))[:, None]).all()
    for k, found in enumerate(traffic(4, graph=RING, schedule=one_peer)):
        ahead = (RING.receivers - RING.senders) % 4
        assert (found.up == (ahead == (1, 3)[k % 2])[:, None]).all()


def test_graphs_take_turns():
    turns = {"kind": "in_turn", "graphs": [[[0, 1], [2, 3]], [[2, 1]]]}
    expected = [{(0, 1), (1, 0), (2, 3), (3, 2)}, {(1, 2), (2, 1)}]
    for k, found in enumerate(traffic(4, graph=RING, schedule=turns)):
        ways = zip(RING.receivers.tolist(), RING.senders.tolist(), strict=True)
        up = {way for way, there in zip(ways, found.up[:, 0], strict=True) if there}
        assert up == expected[k % 2] and (found.up == found.up[:, :1]).all()
    along = {"kind": "in_turn", "graphs": [[[0, 1]]]}
    (found,) = traffic(graph=DIRECTED, schedule=along)
    assert found.up[:, 0].nonzero()[0].tolist() == [
        way for way in range(len(DIRECTED.senders))
        if (DIRECTED.senders[way], DIRECTED.receivers[way]) == (0, 1)
    ]  # fmt: skip


@pytest.mark.parametrize("direction", ["one_way", "link"])
def test_vectors_are_lost_with_their_rate(direction):
    first, second = traffic(2, loss=loss(0.4, direction))
    assert_share(first.arrived, 0.6)
    assert_share(first.arrived & second.arrived, 0.36)
    assert_share(first.arrived & back(first.arrived), 0.36 if direction == "one_way" else 0.6)
    assert first.up.all() and first.awake.all()


@pytest.mark.parametrize("direction", ["one_way", "link"])
def test_bursts_have_their_rate_and_length(direction):
    """Lost with 0.9 / 4, as a quarter is bad; and again in the next with 0.9 times 0.7."""
    burst = {"kind": "gilbert_elliott", "rate": 0.9, "to_good": 0.3, "direction": direction}
    stated = BurstLoss(0.9, 0.1, 0.3, direction)
    assert (stated.bad_probability, stated.share) == (pytest.approx(0.25), pytest.approx(0.225))
    found = traffic(12, chains=4000, loss={**burst, "to_bad": 0.1})
    lost = [~each.arrived for each in found]
    for each in lost:
        assert_share(each, 0.225)
    for one, other in itertools.pairwise(lost):
        assert_share(one & other, 0.225 * 0.9 * 0.7)
    both = lost[0] & back(lost[0])
    assert_share(both, 0.225 if direction == "link" else 0.225**2)
    assert BurstLoss(0.9, 0.0, 0.0, direction).share == 0
    assert traffic(loss={**burst, "to_bad": 0.0, "to_good": 0.0})[0].arrived.all()


def test_who_sleeps_neither_sends_nor_hears():
    first, second = traffic(2, awake=0.6)
    assert_share(first.awake, 0.6)
    assert_share(first.awake & second.awake, 0.36)
    both = first.awake[WHEEL.senders] & first.awake[WHEEL.receivers]
    assert (first.arrived == both).all() and first.up.all()


def test_what_is_late_was_sent_by_who_was_awake_and_reaches_who_is():
    """After three iterations; links and losses are those of the sending, sleep that of both."""
    happens = {"awake": 0.7, "schedule": KEPT, "loss": loss(0.2)}
    at_once = traffic(7, 300, **happens)
    late = traffic(7, 300, **happens, delay={"kind": "fixed", "iterations": 3})
    for k in range(7):
        assert late[k].age == 3
        sent = at_once[k - 3] if k >= 3 else None
        if sent is None:
            assert not late[k].arrived.any()
            continue
        # What left: over links that were up, not lost, from who was awake.
        possible = sent.up & sent.awake[WHEEL.senders] & late[k].awake[WHEEL.receivers]
        assert not (late[k].arrived & ~possible).any()
        assert_share(late[k].arrived[possible][None], 0.8)
    assert (late[5].awake == at_once[5].awake).all()


def test_what_happens_together_is_independent():
    (found,) = traffic(chains=40_000, schedule=KEPT, loss=loss(0.3), awake=0.9)
    assert_share(found.arrived, 0.8 * 0.7 * 0.81)
    assert_share(found.up, 0.8)


@pytest.mark.parametrize(
    "besides",
    [
        {"noise": 1.0},
        {"privacy": {"clip": 1.0, "sigma": 1.0}},
        {"compression": {"kind": "qsgd", "bits": 4}},
    ],
)
def test_masks_do_not_depend_on_what_is_sent(besides):
    """So that what compression costs is not what other losses cost."""
    x, arrived = np.ones((50, 5, 3)), []
    for more in ({}, besides):
        net = network(WHEEL, loss=loss(0.3), awake=0.8, **more)
        net = net.start(x, np.random.default_rng(1))
        arrived.append([])
        for k in range(5):
            net.begin(k)
            net.mix("metropolis", x)
            arrived[-1].append(net.traffic.arrived)
    assert np.array_equal(*arrived)


def test_neighbors_hear_the_same_hidden_vector_and_noise_of_their_own():
    """On a star, what the leaves hear of the center differs by the channel's noise alone."""
    x = np.ones((3, 4, 2))
    privacy = {"privacy": {"clip": 9.0, "sigma": 1.0}}
    for happens, alike in ((privacy, True), ({"noise": 1.0}, False)):
        net = network("star", 4, **happens).start(x, np.random.default_rng(1))
        net.begin(0)
        heard = net.mix("metropolis", x)
        assert (abs(heard[:, 1] - heard[:, 2]).max() < EXACT) == alike
        assert abs(heard - 1).max() > 0.05


@pytest.mark.parametrize("policy", ["keep_own_weight", "reuse_last", "sender_keeps"])
def test_noise_and_losses_have_the_variance_of_their_equation(policy):
    r"""From 0, of which a share p is lost: (1 - p) s^2 sum_j W_ij^2 over neighbors j."""
    chains = 40_000
    net = network("star", 4, noise=0.7, loss=loss(0.25), on_loss=policy)
    x = np.zeros((chains, 4, 1))
    net = net.start(x, np.random.default_rng(2))
    net.begin(0)
    heard = net.mix("metropolis", x)[..., 0]
    expected = 0.75 * 0.49 * (0.25**2) * np.array([3, 1, 1, 1])
    squares = heard**2
    error = squares.std(axis=0) / np.sqrt(chains)
    assert (np.abs(squares.mean(axis=0) - expected) < LIMIT * error).all()


def test_feedback_sends_in_time_what_compression_leaves_out():
    """What was sent adds up to T x less what is still left out, which does not grow with T."""
    few, off = {"kind": "top_k", "share": 0.1}, {}
    x = np.random.default_rng(1).normal(size=(2, 4, 10))
    for feedback, iterations in ((True, 100), (True, 1000), (False, 100)):
        net = network(RING, compression=few, error_feedback=feedback)
        net = net.start(x, np.random.default_rng(1))
        total = 0
        for k in range(iterations):
            net.begin(k)
            total = total + net.mix("metropolis", x)
        off[feedback, iterations] = np.abs(total / iterations - RING.metropolis @ x).max()
    assert off[True, 1000] < 0.02 and off[True, 1000] < off[True, 100] / 5
    assert off[False, 100] > 0.3


def test_who_sleeps_sends_nothing_and_leaves_nothing_out():
    """By a loop: what an agent has left out grows only when it sends."""
    few, x = {"kind": "top_k", "share": 0.5}, np.random.default_rng(1).normal(size=(6, 5, 2))
    half = {"awake": 0.5, "on_loss": "sender_keeps"}
    net = network(WHEEL, compression=few, error_feedback=True, **half)
    net, left = net.start(x, np.random.default_rng(1)), np.zeros_like(x)
    weights = WHEEL.metropolis
    for k in range(8):
        net.begin(k)
        found, awake, code = net.mix("metropolis", x), net.traffic.awake, np.zeros_like(x)
        for c, i in np.ndindex(6, 5):
            if awake[i, c]:
                whole = x[c, i] + left[c, i]
                code[c, i, np.argmax(abs(whole))] = abs(whole).max() * np.sign(
                    whole[np.argmax(abs(whole))]
                )
                left[c, i] = whole - code[c, i]
        for c, i in zip(*np.nonzero(awake.T), strict=True):
            expected = weights[i, i] * x[c, i]
            for j in WHEEL.neighbors[i]:
                expected = expected + weights[i, j] * (code[c, j] if awake[j, c] else x[c, i])
            np.testing.assert_allclose(found[c, i], expected, rtol=0, atol=EXACT)


# Moments of what arrives, without a draw.

SCHEDULES = [
    {"kind": "static"},
    {"kind": "kept", "probability": 0.8},
    {"kind": "matchings"},
    {"kind": "pair"},
    {"kind": "in_turn", "graphs": [[[0, 1], [3, 4]], [[0, 1], [0, 2], [1, 2]]]},
]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("direction", ["one_way", "link"])
@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda schedule: schedule["kind"])
def test_chances_are_those_of_the_masks(schedule, direction, policy):
    lost = loss(0.2, direction)
    net = network(WHEEL, schedule=schedule, loss=lost, awake=0.9, on_loss=policy)
    if schedule["kind"] == "matchings" and policy == "skip":
        assert mask_moments(net) is None
        return
    moments = mask_moments(net)
    happens = {"schedule": schedule, "loss": lost, "awake": 0.9, "on_loss": policy}
    for k, drawn in enumerate(traffic(2, chains=20_000, **happens)):
        first, second = moments(k)
        both = np.concatenate([drawn.awake, drawn.arrived]).astype(float)
        error = np.sqrt(np.maximum(second * (1 - second), 0) / both.shape[1])
        assert (abs(both @ both.T / both.shape[1] - second) <= LIMIT * error + 1e-9).all()
        assert abs(second.diagonal() - first).max() < EXACT


@pytest.mark.parametrize(
    "happens",
    [
        {
            "loss": {
                "kind": "gilbert_elliott",
                "rate": 1,
                "to_bad": 0.1,
                "to_good": 0.1,
                "direction": "link",
            }
        },
        {"delay": {"kind": "fixed", "iterations": 1}},
        {"barrier": False, "compute": {"seconds": 1.0}, "on_loss": "reuse_last"},
    ],
    ids=["bursts", "delay", "no barrier"],
)
def test_there_are_no_chances_where_draws_depend_on_each_other(happens):
    assert mask_moments(network(RING, **happens)) is None
