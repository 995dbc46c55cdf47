"""What samplers refuse in a sentence: problems and networks that do not suit them or their options.

Each case is a sampler, options and a network of four agents, the problem if it is not a regression,
and a part of the sentence.
"""

import pytest

from concord.arguments import ChosenSampler
from concord.errors import ConcordError
from concord.networks.clock import ComputeTime
from concord.networks.conditions import Conditions
from concord.networks.construction import network
from concord.networks.network import Network
from steps import Bare, Quadratic, Regression

NEEDED = {
    "choco_sgld": {"step_size": 0.02, "compression": {"kind": "qsgd", "bits": 4}},
    "consensus_mc": {},
    "admm": {"penalty": 1.0},
    "d_mala": {"step_size": 0.1, "drift": "half", "correction": "mala"},
    "d_ula": {"step_size": 0.1, "fusion": 0.1},
    "de_sghmc": {"step_size": 0.1, "friction": 1.0},
    "de_psgld": {
        "step_size": 0.01,
        "constraint": {"kind": "box", "lower": -1.0, "upper": 1.0},
        "smoothing": 0.1,
    },
    "dg_lmc": {"step_size": 0.01, "tolerance": 0.1},
    "graph_gibbs": {"tolerance": 0.1},
    "qlsd": {"step_size": 0.02, "compression": {"kind": "qsgd", "bits": 3}},
}
OF_SERVERS = ("consensus_mc", "dg_lmc", "fsgld", "qlsd")
MIXING = ("de_sgld", "de_sghmc", "extra_sgld", "diging_sgld", "local_sgld", "de_psgld")
PEERS = ("choco_sgld", "graph_gibbs", "gossip_ula")
LOSS = {"loss": {"kind": "bernoulli", "rate": 0.1, "direction": "link"}}
LOSSY = network("ring", 4, **LOSS)
APART = network("edge_list", 4, edges=[[0, 1], [2, 3]])
DIRECTED = network("directed_ring", 4, every=2)
HIDDEN = {"privacy": {"clip": 1.0, "sigma": 2.0}}
LATE = {"delay": {"kind": "fixed", "iterations": 1}}
WAITLESS = {"compute": {"seconds": 1.0}, "barrier": False, "on_loss": "reuse_last"}
TRIGGER = {"communication": "triggered", "threshold": 1.0, "decay": 1.0}
FLAT = Quadratic([[[0.0]], [[1.0]], [[1.0]], [[1.0]]], [[0.0]] * 4)
HOLLOW = Quadratic([[[-1.0]], [[1.0]], [[1.0]], [[1.0]]], [[0.0]] * 4)
REFUSED = [
    *((kind, {}, "ring", "needs a server, which ring has not") for kind in OF_SERVERS),
    *((kind, {}, network("ring", 4), "cannot run on 4 agents; set") for kind in ("c_ula", "sgd")),
    *((kind, {}, APART, "is not connected") for kind in (*MIXING, *PEERS, "admm", "push_sum_sgld")),
    *((kind, {}, DIRECTED, "that hear each other") for kind in ("admm", "d_ula", *MIXING)),
    *((kind, {}, "server", "sends vectors from agent to agent") for kind in PEERS),
    *((kind, {}, LOSSY, "; remove network") for kind in ("choco_sgld", "graph_gibbs", "d_mala")),
    *(
        ("de_sgld", {"weights": f"{sums}_stochastic"}, DIRECTED, f"{sums}_stochastic are not")
        for sums in ("row", "column")
    ),
    ("de_sgld", {"weights": "pairwise"}, "ring", "pairwise is for networks on which an agent"),
    ("de_sgld", {"weights": 0.5}, "star", r"weights: 0.5 gives an agent the weight -0\.5 on"),
    ("admm", {}, LOSSY, "use on_loss: reuse_last"),
    *(
        ("admm", {}, network("ring", 4, **{**happens, "on_loss": "reuse_last"}), "a barrier and no")
        for happens in (LATE, WAITLESS)
    ),
    ("admm", {}, "ring", Bare(4), "needs proximal steps, which a problem of Bare does not offer"),
    ("d_mala", {"drift": "whole"}, "ring", "mala needs drift: half; use it, or"),
    ("d_mala", {}, "ring", Bare(4), "Hessians of the potentials.*; use correction: none"),
    ("d_ula", {"prior_gradient": "after_mixing"}, "ring", Bare(4), "prior's gradient apart"),
    ("de_psgld", {"constraint": {"kind": "box", "lower": 1.0, "upper": 1.0}}, "ring", "nothing"),
    ("dg_lmc", {"coupling": [[1.0, 2.0], [2.0, 4.0]]}, "server", "rows of an invertible matrix"),
    ("dg_lmc", {"coupling": [[1.0]]}, "server", "give the 2 rows of an invertible matrix"),
    ("dg_lmc", {"particles": 2}, "server", Bare(4), "values of the potentials.*; remove particles"),
    ("diging_sgld", {}, network("ring", 4, **HIDDEN, on_loss="reuse_last"), "does not hide"),
    ("fsgld", {"surrogates": "laplace"}, "server", Bare(4), "proximal steps.*; use"),
    ("fsgld", {"surrogates": "laplace"}, "server", HOLLOW, "agent 0 has too few points"),
    ("consensus_mc", {}, "server", Bare(4), "quadratic potentials.*; add step_size=0.001"),
    ("consensus_mc", {}, "server", FLAT, "agent 0 has too few points"),
    ("graph_gibbs", {}, "ring", Bare(4), "quadratic potentials.*; add step_size=0.001"),
    ("graph_gibbs", {}, "no_edges", FLAT, "agent 0 has too few points"),
    *(
        ("local_sgld", sends, LOSSY, "agents must send x, and nothing else")
        for sends in ({"renewal": 0.5}, {"communication": 0.5})
    ),
    ("push_sum_sgld", {}, LOSSY, "keep_own_weight leaves weights that are not column stochastic"),
    *(
        ("push_sum_sgld", {}, network("ring", 4, on_loss="sender_keeps", **hides), "push-sum")
        for hides in ({"noise": 1.0}, HIDDEN, {"compression": {"kind": "top_k", "share": 0.5}})
    ),
    ("qlsd", {"participants": 9}, "server", "there are no 9 among 4 agents; give 1 to 4"),
    ("qlsd", {"renewal": 3}, "server", Bare(4), "mini-batches, .*; give a batch_size"),
    ("qlsd", {"memory_start": "mode"}, "server", Bare(4), "a Gaussian posterior, which Bare"),
    ("gossip_ula", {}, "no_edges", "no_edges' of 4 has no pair to gossip"),
    ("gossip_ula", TRIGGER, LOSSY, "a trigger, which relies on what all"),
    *(
        ("gossip_ula", {}, network("ring", 4, **happens), "wakes pairs of its own")
        for happens in ({**LOSS, "on_loss": "reuse_last"}, {"awake": 0.5}, HIDDEN, LATE, WAITLESS)
    ),
    *(
        ("gossip_ula", half, "ring", "a trigger needs the first two")
        for half in ({**TRIGGER, "decay": None}, {"threshold": 1.0}, {"known": "start"})
    ),
]  # fmt: skip
TAKEN = [  # and no golden case of tests/golden
    ("de_sgld", {"weights": "row_stochastic"}, network("directed_ring", 4)),
    ("de_sgld", {"weights": "pairwise"}, network("ring", 4, schedule={"kind": "pair"})),
    ("dg_lmc", {"coupling": [[1.0, 0.0], [0.0, 1.0]]}, "server"),
]


def check(kind, options, net, problem=None):
    """Let a sampler of these options check a network, and a problem: a regression if none."""
    given = {"kind": kind, **NEEDED.get(kind, {"step_size": 0.1}), **options}
    chosen = ChosenSampler.parse(given, "sampler").params
    net = network(net, 4) if isinstance(net, str) else net
    chosen.check(None, net) if problem else None
    chosen.check(problem or Regression(4, 2), net)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: f"{case[0]} {case[-1]}")
def test_what_does_not_suit_is_refused(case):
    with pytest.raises(ConcordError, match=case[-1]):
        check(*case[:-1])


@pytest.mark.parametrize("case", TAKEN, ids=str)
def test_what_suits_is_taken(case):
    check(*case)


def test_in_place_is_refused_where_not_every_agent_hears_each_neighbor():
    late = Conditions(barrier=False, compute=ComputeTime(seconds=1.0), on_loss="reuse_last")
    for kind, happens in (("ring", Conditions(awake=0.5)), ("ring", late), ("server", None)):
        with pytest.raises(ConcordError, match=r"^update_order: in_place needs neighbors"):
            Network(network(kind, 4).graph, happens, order="in_place")
    with pytest.raises(ConcordError, match="batch_scale: none is of mini-batches"):
        ChosenSampler.parse({"kind": "de_sgld", "step_size": 0.1, "batch_scale": "none"}, "sampler")
