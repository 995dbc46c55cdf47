"""What happens on a network: options that do not fit, or not together, are refused by their key."""

import pytest

from concord.errors import ConcordError
from concord.networks.conditions import Conditions, hears_one_at_most
from concord.networks.construction import network
from concord.networks.network import Network
from concord.networks.topology import build_graph
from concord.options import build, plain

RING = build_graph("ring", 4)
WHEEL = build_graph("edge_list", 5, edges=[[0, 1], [0, 2], [0, 3], [1, 2], [3, 4]])
DIRECTED = build_graph("directed_ring", 6, every=2, reach=3)
QSGD = {"kind": "qsgd", "bits": 4}
LOSS = {"kind": "bernoulli", "rate": 0.3, "direction": "link"}
BURSTS = {"kind": "gilbert_elliott", "rate": 0.9, "to_bad": 0.1, "to_good": 0.3}
TURNS = {"kind": "in_turn", "graphs": [[[0, 1]], [[2, 1]]]}


@pytest.mark.parametrize(
    "happens",
    [
        {"on_loss": "skip"},
        {"schedule": TURNS},
        {"loss": BURSTS | {"direction": "one_way"}},
        {"delay": {"kind": "fixed", "iterations": 2}},
        {"compression": QSGD, "error_feedback": True},
        {"privacy": {"clip": 1.0, "sigma": 2.0}},
        {"byzantine": {"kind": "sign", "agents": [1]}},
        {"robust": {"kind": "trimmed_mean", "trim": 0}},
    ],
    ids=str,
)
def test_options_are_those_that_a_file_states(happens):
    stated = plain(network("ring", 4, **happens).conditions)
    assert build(Conditions, stated, "x") == build(Conditions, happens, "x")
    assert network("ring", 4, **happens).is_lossless == ("on_loss" in happens)


def test_a_clock_is_no_effect_but_takes_time():
    timed = network("ring", 4, compute={"seconds": 2.0}, link={"latency": 1.0, "bandwidth": 8.0})
    assert timed.is_lossless and timed.keeps_time
    assert timed.conditions.link.seconds(16) == 3.0
    free = network("ring", 4, compute={"seconds": 2.0}, barrier=False, on_loss="reuse_last")
    assert not free.is_lossless and free.conditions.late_option == "barrier"


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ({"kind": "static"}, False),
        ({"kind": "matchings"}, True),
        ({"kind": "pair"}, True),
        ({"kind": "kept", "probability": 0.5}, False),
        (TURNS, True),
        ({"kind": "in_turn", "graphs": [[[0, 1], [1, 2]]]}, False),
    ],
    ids=lambda each: str(each),
)
def test_schedules_that_let_agents_hear_one_at_most(schedule, expected):
    net = network("ring", 4, schedule=schedule)
    assert hears_one_at_most(net.graph, net.conditions) == expected


@pytest.mark.parametrize(
    ("happens", "said"),
    [
        ({"compression": {"kind": "qsgd", "bits": 1}}, "network.compression.bits: 1 does not fit"),
        ({"compression": {"kind": "qsdg"}}, "there is no compression 'qsdg'; did you mean 'qsgd'"),
        ({"compression": {"kind": "top_k", "share": 0.0}}, "network.compression.share: 0"),
        ({"error_feedback": True}, "network.error_feedback: nothing is left out"),
        ({"noise": -1.0}, "network.noise: -1.0 does not fit; give"),
        ({"privacy": {"clip": 1.0}}, "network.privacy: the key 'sigma' is missing"),
        (
            {"privacy": {"clip": 0.0, "sigma": 1.0}},
            "network.privacy.clip: 0.0 does not fit",
        ),
        (
            {"loss": {"kind": "bernoulli", "rate": 1.2, "direction": "link"}},
            "network.loss.rate: 1.2 does not fit; give",
        ),
        (
            {"privacy": {"clip": 1.0, "sigma": 1.0, "delta": 1.0}},
            "network.privacy.delta: 1.0 does not fit; give number > 0 and < 1",
        ),
        ({"compute": {"seconds": 0}}, "network.compute.seconds: 0"),
        (
            {"compute": {"seconds": 1, "spread": 1.0}},
            "network.compute.spread: 1.0 does not fit",
        ),
        (
            {"compute": {"seconds": 1, "slowest": 0.5}},
            "network.compute.slowest: 0.5 does not fit",
        ),
        (
            {"compute": {"seconds": 1, "slow_agents": [0, 5]}},
            r"network.compute.slow_agents\[1\]: there is no agent 5; name agents 0 to 4",
        ),
        ({"link": {"bandwith": 1.0}}, "network.link.bandwith: unknown key; did you mean"),
        ({"barrier": False}, "network.barrier: false says that agents do not wait, .* add compute"),
        (
            {"barrier": False, "compute": {"seconds": 1}},
            "network.on_loss: agents that do not wait take the last .* use reuse_last",
        ),
        (
            {"barrier": False, "compute": {"seconds": 1}, "on_loss": "reuse_last", "awake": 0.5},
            "network.awake: without a barrier the clock says when agents step; remove it",
        ),
        (
            {"delay": {"kind": "fixed", "iterations": 1}, "link": {"latency": 1.0}},
            "network.delay: the clock says how long vectors take; remove it",
        ),
    ],
)
def test_a_mistake_names_its_key(happens, said):
    with pytest.raises(ConcordError, match=said):
        network("ring", 5, **happens)


@pytest.mark.parametrize(
    "happens",
    [
        {"loss": {"kind": "bernoulli", "rate": 0.3, "direction": "link"}},
        {"compression": {"kind": "qsgd", "bits": 4}},
    ],
)
def test_without_edges_nothing_is_sent(happens):
    with pytest.raises(ConcordError, match=r"^x.network: no_edges of 3 has no edges, so nothing"):
        Network(build_graph("no_edges", 3), build(Conditions, happens, "x"), "x.network")


def test_where_nothing_happens_the_network_is_lossless():
    for happens in (None, Conditions()):
        net = Network(RING, happens)
        assert net.is_lossless and net.graph is RING and net.conditions == Conditions()


def test_a_server_hears_all():
    said = "server averages over all agents at once, and what happens .*; remove it, or use topol"
    for happens in ({"loss": LOSS}, {"awake": 0.5}, {"on_loss": "skip"}):
        with pytest.raises(ConcordError, match=said):
            network("server", 5, **happens)
    assert network("server", 5, awake=1.0).is_lossless


@pytest.mark.parametrize(
    ("graph", "happens", "message"),
    [
        (WHEEL, {"schedule": {"kind": "one_peer"}}, "those of edge_list have 1 to 3"),
        (build_graph("star", 4), {"schedule": {"kind": "one_peer"}}, "those of star have 1 to 3"),
        (DIRECTED, {"schedule": {"kind": "pair"}}, "edges of directed_ring have a direction"),
        (DIRECTED, {"schedule": {"kind": "matchings"}}, "edges of directed_ring have a direction"),
        (
            DIRECTED,
            {"schedule": {"kind": "in_turn", "graphs": [[[1, 0]]]}},
            r"graphs\[0\]\[0\]: \[1, 0\] is no edge of the topology",
        ),
        (
            RING,
            {"schedule": {"kind": "in_turn", "graphs": [[[0, 1], [0, 2]]]}},
            r"^x.schedule.graphs\[0\]\[1\]: \[0, 2\] is no edge of",
        ),
        (
            RING,
            {"on_loss": "sender_keeps", "delay": {"kind": "fixed", "iterations": 1}},
            "on_loss: sender_keeps would count what is still on its way twice",
        ),
    ],
    ids=["degrees", "two degrees", "pair", "matchings", "against", "no edge", "late"],
)
def test_what_does_not_suit_the_graph(graph, happens, message):
    with pytest.raises(ConcordError, match=message):
        Network(graph, build(Conditions, happens, "x"), "x")
