"""What happens on a network: options that do not fit, or not together, are refused by their key."""

import pytest

from concord.errors import ConcordError
from concord.networks.conditions import Conditions, hears_one_at_most
from concord.networks.construction import network
from concord.networks.network import Network
from concord.networks.topology import build_graph
from concord.options import build

RING = build_graph("ring", 4)
WHEEL = build_graph("edge_list", 5, edges=[[0, 1], [0, 2], [0, 3], [1, 2], [3, 4]])
DIRECTED = build_graph("directed_ring", 6, every=2)
LOSS = {"kind": "bernoulli", "rate": 0.3, "direction": "link"}
TURNS = {"kind": "in_turn", "graphs": [[[0, 1]], [[2, 1]]]}


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
        ({"compression": {"kind": "qsdg"}}, "there is no compression 'qsdg'; did you mean 'qsgd'"),
        ({"error_feedback": True}, "network.error_feedback: nothing is compressed; remove it"),
        ({"privacy": {"clip": 1.0}}, "network.privacy: the key 'sigma' is missing"),
        ({"barrier": False}, "network.barrier: false needs the time of a step; add compute"),
        (
            {"barrier": False, "compute": {"seconds": 1}},
            "network.on_loss: agents that do not wait need reuse_last; use it",
        ),
        (
            {"barrier": False, "compute": {"seconds": 1}, "on_loss": "reuse_last", "awake": 0.5},
            "network.awake: without a barrier the clock wakes; remove it",
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


def test_where_nothing_happens_the_network_is_lossless():
    for happens in (None, Conditions()):
        net = Network(RING, happens)
        assert net.is_lossless and net.graph is RING and net.conditions == Conditions()


@pytest.mark.parametrize(
    ("graph", "happens", "message"),
    [
        (
            RING,
            {"on_loss": "sender_keeps", "delay": {"kind": "fixed", "iterations": 1}},
            "on its way",
        ),
        (WHEEL, {"schedule": {"kind": "one_peer"}}, "agents of edge_list have 1 to 3"),
        (DIRECTED, {"schedule": {"kind": "pair"}}, "edges of directed_ring have a direction"),
        (DIRECTED, {"schedule": {"kind": "matchings"}}, "edges of directed_ring have a direction"),
        (DIRECTED, {"schedule": {"kind": "in_turn", "graphs": [[[1, 0]]]}}, "is no edge of direct"),
        (
            RING,
            {"schedule": {"kind": "in_turn", "graphs": [[[0, 1], [0, 2]]]}},
            r"^x.schedule.graphs\[0\]\[1\]: \[0, 2\] is no edge of",
        ),
        (build_graph("no_edges", 3), {"loss": LOSS}, "no_edges of 3 has no edges; remove"),
        (build_graph("server", 5), {"awake": 0.5}, "the way to a server is not modelled"),
    ],
    ids=lambda each: getattr(each, "name", str(each)),
)
def test_what_does_not_suit_the_graph(graph, happens, message):
    with pytest.raises(ConcordError, match=message):
        Network(graph, build(Conditions, happens, "x"), "x")
