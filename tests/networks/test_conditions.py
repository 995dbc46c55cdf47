"""What happens on a network: options that do not fit, or not together, are refused by their key."""

import pytest

import concord
from concord.errors import ConcordError
from concord.networks import topology
from concord.networks.conditions import Conditions
from concord.networks.network import under
from concord.samplers import gossip_ula


@pytest.mark.parametrize(
    ("happens", "said"),
    [
        ({"compression": {"kind": "qsgd", "bits": 1}}, "network.compression.bits: 1 is"),
        ({"compression": {"kind": "qsdg"}}, "there is no compression 'qsdg'; did you mean 'qsgd'"),
        ({"compression": {"kind": "top_k", "share": 0.0}}, "network.compression.share: 0"),
        ({"error_feedback": True}, "network.error_feedback: nothing is left out"),
        ({"noise": -1.0}, "network.noise: -1.0 is below 0"),
        ({"privacy": {"clip": 1.0}}, "network.privacy: the key 'sigma' is missing"),
        ({"privacy": {"clip": 0.0, "sigma": 1.0}}, "network.privacy.clip: 0.0 is not positive"),
        (
            {"loss": {"kind": "bernoulli", "rate": 1.2, "direction": "link"}},
            "network.loss.rate: 1.2 is above 1; give 1 or less",
        ),
        (
            {"privacy": {"clip": 1.0, "sigma": 1.0, "delta": 1.0}},
            "network.privacy.delta: 1.0 is not below 1",
        ),
        ({"compute": {"seconds": 0}}, "network.compute.seconds: 0"),
        ({"compute": {"seconds": 1, "spread": 1.0}}, "network.compute.spread: 1.0 is not below 1"),
        ({"compute": {"seconds": 1, "slowest": 0.5}}, "network.compute.slowest: 0.5 is below 1"),
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
        concord.network("ring", 5, **happens)


@pytest.mark.parametrize(
    "happens",
    [
        {"loss": {"kind": "bernoulli", "rate": 0.3, "direction": "link"}},
        {"compression": {"kind": "qsgd", "bits": 4}},
    ],
)
def test_without_edges_nothing_is_sent(happens):
    with pytest.raises(ConcordError, match=r"^x.network: no_edges of 3 has no edges, so nothing"):
        under(topology.build("no_edges", 3), Conditions(**happens), "x.network")


def test_where_nothing_happens_the_topology_is_as_it_was():
    ring = topology.build("ring", 4)
    assert under(ring, Conditions(), "x") is under(ring, None, "x") is ring


@pytest.mark.parametrize(
    "happens",
    [
        {"compression": {"kind": "qsgd", "bits": 4}},
        {"noise": 1.0},
        {"privacy": {"clip": 1.0, "sigma": 1.0}},
        {"awake": 0.5},
        {"delay": {"kind": "fixed", "iterations": 1}},
        {"compute": {"seconds": 1.0}, "barrier": False, "on_loss": "reuse_last"},
    ],
)
def test_gossip_takes_loss_alone(happens):
    network = concord.network("ring", 5, **happens)
    with pytest.raises(ConcordError, match=r"^network: gossip ULA wakes pairs .* give loss alone"):
        gossip_ula.check(None, network, gossip_ula.Params(step_size=0.1))
