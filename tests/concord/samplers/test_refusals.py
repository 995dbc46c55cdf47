"""What samplers refuse in a sentence: options, and problems and networks that do not suit them."""

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
    "d_mala": {"step_size": 0.1, "drift": "half"},
    "d_ula": {"step_size": 0.1, "fusion": 0.1},
    "de_sghmc": {"step_size": 0.1, "friction": 1.0},
    "de_psgld": {
        "step_size": 0.01,
        "constraint": {"kind": "box", "lower": -1.0, "upper": 1.0},
        "smoothing": 0.1,
    },
    "dg_lmc": {"step_size": 0.01, "tolerance": 0.1},
    "extra_sgld": {"step_size": 0.1},
    "fsgld": {"step_size": 0.01},
    "graph_gibbs": {"tolerance": 0.1},
    "local_sgld": {"step_size": 0.1},
    "qlsd": {"step_size": 0.02, "compression": {"kind": "qsgd", "bits": 3}},
}
OPTIONS = [  # of a sampler on four agents, and a network that suits it otherwise
    ("choco_sgld", "ring", {"consensus_step": 1.5}, "consensus_step: 1.5 is above 1"),
    ("choco_sgld", "ring", {"consensus_step": 0.0}, "consensus_step: 0.0 is not positive"),
    ("consensus_mc", "server", {"combine": "mean"}, "sampler.combine: 'mean' is not allowed"),
    (
        "d_mala", "ring", {"correction": "released"},
        "correction: released is of moves with drift: whole, not half; use drift: whole, or",
    ),
    (
        "d_mala", "ring", {"drift": "whole", "correction": "mala"},
        "correction: mala is of moves with drift: half, not whole; use drift: half, or",
    ),
    ("d_mala", "ring", {}, "the key 'correction' is missing; add it"),
    (
        "de_psgld", "ring", {"constraint": {"kind": "box", "lower": 1.0, "upper": 1.0}},
        "nothing lies between lower",
    ),
    (
        "de_psgld", "ring", {"constraint": {"kind": "ball", "radius": 0.0}},
        "constraint.radius: 0.0 is not positive",
    ),
    (
        "de_psgld", "ring", {"constraint": {"kind": "simplex"}},
        "constraint.kind: there is no kind 'simplex'; choos",
    ),
    ("de_psgld", "ring", {"smoothing": 0.0}, "smoothing: 0.0 is not positive"),
    ("dg_lmc", "server", {"tolerance": [0.1, 0.2]}, "tolerance: there are 2 for 4 agents; give"),
    ("dg_lmc", "server", {"tolerance": 0.0}, "^sampler.tolerance: 0.0 is not positive; give"),
    ("dg_lmc", "server", {"local_steps": 0}, "^sampler.local_steps: 0 is not a positive integer"),
    ("extra_sgld", "ring", {"h": 0.0}, "^sampler.h: 0.0 is not positive; give a positive number$"),
    ("extra_sgld", "ring", {"h": 0.6}, "^sampler.h: 0.6 is above 0.5; give 0.5 or less$"),
    ("extra_sgld", "ring", {"wights": 0.1}, "^sampler.wights: unknown key; did you mean 'weights"),
    ("fsgld", "server", {"probabilities": [0.5, 0.5]}, "there are 2 for 4 agents; give"),
    (
        "fsgld", "server", {"probabilities": [0.5, 0.5, 0.25, 0.25]},
        "probabilities: they add up to 1.5, and the least is 0.25; give positive",
    ),
    (
        "fsgld", "server", {"probabilities": [0.5, 0.5, 0.0, 0.0]},
        "add up to 1, and the least is 0; give positive",
    ),
    ("fsgld", "server", {"probabilities": [1.5, 0, 0]}, r"probabilities\[0\]: 1.5 is ab"),
    ("graph_gibbs", "ring", {"tolerance": -1.0}, "sampler.tolerance: -1.0 is not positive"),
    (
        "local_sgld", "ring", {"period": 0},
        "^sampler.period: 0 is not a positive integer; give 1 or more$",
    ),
    (
        "local_sgld", "ring", {"communication": 0.0},
        "^sampler.communication: 0.0 is not positive; give a positive number$",
    ),
    (
        "local_sgld", "ring", {"communication": 1.5},
        "^sampler.communication: 1.5 is above 1; give 1 or less$",
    ),
    (
        "local_sgld", "ring", {"renewal": 0.0},
        "^sampler.renewal: 0.0 is not positive; give a positive number$",
    ),
    (
        "local_sgld", "ring", {"common_noise": 2.0},
        "^sampler.common_noise: 2.0 is above 1; give 1 or less$",
    ),
    ("qlsd", "server", {"participants": 9}, "there are no 9 among 4 agents; give 1 to 4"),
    ("qlsd", "server", {"compression": {"bits": 4}}, "sampler.compression: the key 'kind' is miss"),
    ("qlsd", "server", {"memory_rate": 1.5}, "sampler.memory_rate: 1.5 is above 1; give 1 or less"),
]  # fmt: skip
FLAT = Quadratic([[[0.0]], [[1.0]]], [[0.0], [1.0]])
HOLLOW = Quadratic([[[-1.0]], [[3.0]]], [[0.0], [1.0]])
SUITED = Regression(4, 2)
LOSS = {"loss": {"kind": "bernoulli", "rate": 0.1, "direction": "link"}}
UNSUITED = [  # problems and networks
    ("choco_sgld", SUITED, "server", {}, "choco_sgld sends vectors from agent to agent"),
    (
        "choco_sgld", SUITED, network("ring", 4, awake=0.5), {},
        "network: choco_sgld adds up differences, .*; remove network",
    ),
    ("consensus_mc", SUITED, "ring", {}, "consensus_mc needs a server, which ring has not; use"),
    ("consensus_mc", Bare(3), "server", {}, "step_size: it is missing, and Bare has no exact dra"),
    (
        "consensus_mc", FLAT, "server", {},
        r"agent 0 has too few points or no prior, so that exp\(-f_0\) is no density",
    ),
    (
        "consensus_mc", Bare(2, 1001), "server", {"step_size": 0.1},
        "covariances of 1001 dimensions",
    ),
    (
        "d_mala", Bare(3), "ring", {"correction": "mala"},
        "by Hessians of the potentials, which Bare has not; use correction: none",
    ),
    (
        "d_mala", SUITED, network("ring", 4, awake=0.5), {"correction": "mala"},
        "network: d_mala sends positions, gradients and curvatures, .*; remove network",
    ),
    ("dg_lmc", SUITED, "ring", {}, "dg_lmc needs a server, which ring has not; use topology serv"),
    ("fsgld", SUITED, "ring", {}, "fsgld needs a server, which ring has not; use topology"),
    ("fsgld", Bare(3), "server", {"surrogates": "laplace"}, "which Bare has not; use none"),
    (
        "fsgld", HOLLOW, "server", {"surrogates": "laplace"},
        "agent 0 has no unique minimizer|is not positive definite",
    ),
    ("graph_gibbs", SUITED, "server", {}, "graph_gibbs sends vectors from agent to agent, which s"),
    (
        "graph_gibbs", SUITED, network("ring", 4, **LOSS), {},
        r"graph_gibbs draws an agent given .*; remove network",
    ),
    ("graph_gibbs", Bare(4), "ring", {}, "step_size: it is missing, and Bare has no draws given"),
    ("graph_gibbs", FLAT, "no_edges", {}, "agent 0 has too few points, no prior and no neighbors"),
    ("qlsd", SUITED, "ring", {}, "qlsd needs a server, which ring has not; use topology server"),
]  # fmt: skip


DIRECTED = network("directed_ring", 6, every=2, reach=3)
PARTS = network("edge_list", 4, edges=[[0, 1], [2, 3]])
LOSSY = network("ring", 4, **LOSS)
KEPT = network("ring", 4, **LOSS, on_loss="reuse_last")
TRIGGER = {"communication": "triggered", "threshold": 1.0, "decay": 1.0}
HIDDEN = {"privacy": {"clip": 1.0, "sigma": 2.0}}
NETWORKS = [  # whatever the problem
    *(
        (sampler, PARTS, {}, r"is not connected, so its agents cannot .*no_edges")
        for sampler in (
            "de_sgld", "de_sghmc", "d_ula", "diging_sgld", "extra_sgld", "local_sgld",
            "graph_gibbs", "admm", "push_sum_sgld", "choco_sgld", "de_psgld", "gossip_ula",
        )
    ),
    *(
        (sampler, DIRECTED, {}, "directed_ring' is directed, and the sampler needs neighbors that")
        for sampler in ("d_ula", "gossip_ula", "admm", "graph_gibbs")
    ),
    *(
        (sampler, DIRECTED, {}, "^weights: metropolis needs neighbors that hear each other")
        for sampler in ("de_sgld", "extra_sgld", "diging_sgld", "local_sgld")
    ),
    *(
        ("de_sgld", DIRECTED, {"weights": f"{sums}_stochastic"}, f"^weights: {sums}_stochastic are")
        for sums in ("row", "column")
    ),
    ("de_sgld", "ring", {"weights": "pairwise"}, "pairwise is for networks on which an agent"),
    ("de_sgld", "star", {"weights": 0.5}, r"^weights: 0.5 gives an agent the weight -0\.5 on"),
    ("de_sgld", "star", {"weights": "best_constant"}, "^weights: best_constant gives an agent the"),
    ("c_ula", network("ring", 3), {}, "cannot run on 3 agents; set agents to 1"),
    ("sgd", network("ring", 3), {}, "cannot run on 3 agents; set agents to 1"),
    ("local_sgld", LOSSY, {"renewal": 0.5}, "^renewal: 0.5 sends .* remove it, or remove network$"),
    ("local_sgld", LOSSY, {"communication": 0.5}, "^communication: 0.5 sends .* use 1.0, or rem"),
    ("push_sum_sgld", LOSSY, {}, "keep_own_weight leaves weights that are not column stochastic"),
    *(
        ("push_sum_sgld", network("ring", 4, on_loss="sender_keeps", **hides), {}, "push-sum divid")
        for hides in ({"noise": 1.0}, HIDDEN, {"compression": {"kind": "top_k", "share": 0.5}})
    ),
    (
        "diging_sgld", network("ring", 4, **HIDDEN, on_loss="reuse_last"), {},
        "neighbors know the gradients that DIGing-SGLD begins with, which privacy does not hide",
    ),
    ("admm", LOSSY, {}, "^network: ADMM adds up differences .* use on_loss: reuse_last"),
    (
        "admm", network("ring", 4, delay={"kind": "fixed", "iterations": 1}, on_loss="reuse_last"),
        {}, "^network: ADMM adds up differences .* a barrier and no delay",
    ),
    (
        "admm", network("ring", 4, barrier=False, compute={"seconds": 1.0}, on_loss="reuse_last"),
        {}, "^network: ADMM adds up differences .* a barrier and no delay",
    ),
    ("gossip_ula", network("no_edges", 4), {}, "no_edges' with 4 agents has no pair to gossip"),
    ("gossip_ula", "server", {}, "gossip_ula sends vectors from agent to agent"),
    ("gossip_ula", LOSSY, TRIGGER, "^communication: triggered relies on what all neighbors have"),
    ("gossip_ula", KEPT, {}, "^network: gossip ULA wakes pairs .* give loss alone"),
    *(
        ("gossip_ula", network("ring", 4, **happens), {}, "^network: gossip ULA wakes pairs of its")
        for happens in (
            {"noise": 1.0}, HIDDEN, {"awake": 0.5}, {"delay": {"kind": "fixed", "iterations": 1}},
            {"compression": {"kind": "qsgd", "bits": 4}},
            {"compute": {"seconds": 1.0}, "barrier": False, "on_loss": "reuse_last"},
        )
    ),
    ("gossip_ula", "ring", {"communication": "triggered"}, "^threshold, decay: a trigger needs"),
    ("gossip_ula", "ring", {**TRIGGER, "decay": None}, "^threshold, decay: a trigger needs both"),
    ("gossip_ula", "ring", {"threshold": 1.0}, "^threshold, decay: .* nothing else takes them"),
    ("gossip_ula", "ring", {"known": "start"}, "^known: communication: always does not use start"),
    ("gossip_ula", "ring", {**TRIGGER, "local_steps": 2}, "^local_steps: a trigger compares"),
    ("gossip_ula", "ring", {"local_steps": 0}, "^sampler.local_steps: 0 is not a positive integer"),
    ("dg_lmc", "server", {"coupling": [[[1.0, 2.0], [2.0, 4.0]]]}, "coupling: give one invertible"),
    ("dg_lmc", "server", {"coupling": [[[1.0]]]}, "coupling: give one invertible matrix of 2 rows"),
    (
        "dg_lmc", "server", {"coupling": [[[1.0, 0.0], [0.0, 1.0]]] * 2},
        "coupling: give one invertible matrix of 2 rows of 2 numbers, or one for each of 4 agents",
    ),
]  # fmt: skip
MISSING = [  # of a problem
    ("admm", "ring", {}, "admm minimizes each agent's potential, and Bare has no proximal step"),
    (
        "dg_lmc",
        "server",
        {"particles": 2},
        "Bare states no potentials, by which theta would be acc",
    ),
    (
        "d_ula",
        "ring",
        {"prior_gradient": "after_mixing"},
        "Bare does not give its prior's gradient",
    ),
    (
        "qlsd",
        "server",
        {"renewal": 3},
        "full gradients have no control variates; give a batch_size",
    ),
    ("qlsd", "server", {"memory_start": "mode"}, "needs a Gaussian posterior, which Bare has not"),
]


def check(sampler, problem, net, options):
    """Let a sampler of these options check a problem and a network."""
    given = {"kind": sampler, **NEEDED.get(sampler, {"step_size": 0.1}), **options}
    chosen = ChosenSampler.parse(given, "sampler")
    if not isinstance(net, Network):
        net = network(net, problem.agents)
    chosen.params.check(problem, net)


@pytest.mark.parametrize(
    ("sampler", "problem", "net", "options", "message"),
    [(sampler, SUITED, *rest) for sampler, *rest in [*OPTIONS, *NETWORKS]]
    + [(sampler, Bare(4), *rest) for sampler, *rest in MISSING]
    + UNSUITED,
)
def test_what_samplers_refuse(sampler, problem, net, options, message):
    with pytest.raises(ConcordError, match=message):
        check(sampler, problem, net, options)


@pytest.mark.parametrize(
    ("sampler", "net", "options"),
    [
        ("de_sgld", "no_edges", {}),
        ("de_sgld", network("directed_ring", 4), {"weights": "row_stochastic"}),
        ("de_sgld", network("ring", 4, schedule={"kind": "matchings"}), {"weights": "pairwise"}),
        ("de_sgld", network("ring", 4, schedule={"kind": "pair"}), {"weights": "pairwise"}),
        ("de_sgld", network("ring", 4, schedule={"kind": "one_peer"}), {}),
        ("local_sgld", LOSSY, {"period": 4}),
        ("push_sum_sgld", network("ring", 4, **LOSS, on_loss="sender_keeps"), {}),
        ("diging_sgld", network("ring", 4, **HIDDEN), {}),
        ("diging_sgld", network("ring", 4, awake=0.5, on_loss="reuse_last"), {}),
        ("admm", KEPT, {}),
        ("gossip_ula", LOSSY, {}),
        ("gossip_ula", "ring", TRIGGER),
        ("dg_lmc", "server", {}),
        ("dg_lmc", "server", {"coupling": [[[1.0, 0.0], [0.0, 1.0]]] * 4}),
        ("d_ula", "ring", {"prior_gradient": "after_mixing"}),
    ],
)
def test_what_suits_them_is_taken(sampler, net, options):
    check(sampler, SUITED, net, options)


def test_options_of_mini_batches_and_orders_are_refused_where_they_have_no_meaning():
    for given, message in (
        ({"kind": "admm", "penalty": 1.0, "batch_size": 2}, "batch_size"),
        ({"kind": "extra_sgld", "step_size": 0.1, "update_order": "in_place"}, "update_order"),
        ({"kind": "de_sgld", "step_size": 0.1, "batch_scale": "none"}, "batch_scale: none is of"),
        (
            {"kind": "de_sgld", "step_size": 0.1, "batch_pool": "all_but_last"},
            "batch_pool: all_but_last is of mini-batches",
        ),
    ):
        with pytest.raises(ConcordError, match=message):
            ChosenSampler.parse(given, "sampler")
    late = Conditions(barrier=False, compute=ComputeTime(seconds=1.0), on_loss="reuse_last")
    for kind, happens in (("ring", Conditions(awake=0.5)), ("ring", late), ("server", None)):
        with pytest.raises(ConcordError, match=r"^update_order: in_place has no meaning where not"):
            Network(network(kind, 4).graph, happens, order="in_place")
