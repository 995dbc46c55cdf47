"""What samplers refuse in a sentence: options, and problems and networks that do not suit them."""

import pytest

import concord
from concord.errors import ConcordError
from concord.testing.variants import Bare
from variants import problem

NEEDED = {
    "choco_sgld": {"step_size": 0.02, "compression": {"kind": "qsgd", "bits": 4}},
    "consensus_mc": {},
    "d_mala": {"step_size": 0.1, "drift": "half"},
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
    (
        "extra_sgld", "ring", {"from": "memory"},
        "^sampler.from: unknown key; did you mean 'form'",
    ),
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
FLAT = concord.problems.quadratic([[[0.0]], [[1.0]]], [[0.0], [1.0]])
HOLLOW = concord.problems.quadratic([[[-1.0]], [[3.0]]], [[0.0], [1.0]])
SUITED = problem(4, 2)
LOSS = {"loss": {"kind": "bernoulli", "rate": 0.1, "direction": "link"}}
UNSUITED = [  # problems and networks
    ("choco_sgld", SUITED, "server", {}, "choco_sgld sends vectors from agent to agent"),
    (
        "choco_sgld", SUITED, concord.network("ring", 4, awake=0.5), {},
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
        "d_mala", SUITED, concord.network("ring", 4, awake=0.5), {"correction": "mala"},
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
        "graph_gibbs", SUITED, concord.network("ring", 4, **LOSS), {},
        r"graph_gibbs draws an agent given .*; remove network",
    ),
    ("graph_gibbs", Bare(4), "ring", {}, "step_size: it is missing, and Bare has no draws given"),
    ("graph_gibbs", FLAT, "no_edges", {}, "agent 0 has too few points, no prior and no neighbors"),
    ("qlsd", SUITED, "ring", {}, "qlsd needs a server, which ring has not; use topology server"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("sampler", "prob", "network", "options", "told"),
    [(sampler, SUITED, *rest) for sampler, *rest in OPTIONS] + UNSUITED,
)
def test_what_samplers_refuse(sampler, prob, network, options, told):
    with pytest.raises(ConcordError, match=told):
        concord.sample(sampler, prob, network, iterations=1, **NEEDED[sampler] | options)
