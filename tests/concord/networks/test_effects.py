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
DIRECTED = build_graph("directed_ring", 6, every=2)
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
    return mask[graph.order_by_sender]


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
        {"loss": {**loss(1, "link"), "kind": "gilbert_elliott", "to_bad": 0.1, "to_good": 0.1}},
        {"delay": {"kind": "fixed", "iterations": 1}},
        {"barrier": False, "compute": {"seconds": 1.0}, "on_loss": "reuse_last"},
    ],
    ids=["bursts", "delay", "no barrier"],
)
def test_there_are_no_chances_where_draws_depend_on_each_other(happens):
    assert mask_moments(network(RING, **happens)) is None
