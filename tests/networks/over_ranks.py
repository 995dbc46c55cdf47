"""Runs over several ranks, of which each trace is compared with that of one process."""

import itertools
from functools import cache

import numpy as np

import concord
from concord.errors import ConcordError
from concord.library.sampling import _prepared
from concord.sampling import loop

STEP = {"step_size": 0.02}
QSGD = {"kind": "qsgd", "bits": 4}
SAMPLERS = [
    ("de_sgld", STEP),
    ("de_sgld", {**STEP, "batch_size": 2}),
    ("de_sgld", {**STEP, "weights": "next_two"}),
    ("de_sghmc", {**STEP, "friction": 2.0, "initial_velocity_sd": 1.0}),
    ("de_psgld", {**STEP, "constraint": {"kind": "ball", "radius": 1.0}, "smoothing": 0.1}),
    ("extra_sgld", STEP),
    ("diging_sgld", STEP),
    ("admm", {"penalty": 0.5}),
    ("d_mala", {**STEP, "drift": "half", "correction": "none"}),
    ("d_mala", {**STEP, "drift": "half", "correction": "mala"}),
    ("choco_sgld", {**STEP, "compression": QSGD, "consensus_step": 0.3}),
    ("push_sum_sgld", STEP),
    ("push_sum_sgld", {**STEP, "read": "averaged"}),
    ("local_sgld", {**STEP, "period": 2}),
    ("local_sgld", {**STEP, "common_noise": 0.5, "communication": 0.5}),
    ("d_ula", {**STEP, "fusion": 0.1}),
    ("d_ula", {**STEP, "fusion": 0.1, "neighbors": "in_turn"}),
    ("graph_gibbs", {"tolerance": 0.5}),
    ("graph_gibbs", {**STEP, "tolerance": 0.5}),
    ("dg_lmc", {**STEP, "tolerance": 0.5}),
]
GRAPHS = [
    {"kind": "ring"},
    {"kind": "complete"},
    {"kind": "star"},
    {"kind": "erdos_renyi", "probability": 0.3, "seed": 1},
    {"kind": "grid"},
    {"kind": "directed_exponential"},
    {"kind": "server"},
]
LOSS = {"kind": "bernoulli", "rate": 0.3, "direction": "one_way"}
BURSTS = {**LOSS, "kind": "gilbert_elliott", "to_bad": 0.2, "to_good": 0.4}
COMPUTE = {"seconds": 0.02, "spread": 0.5, "slowest": 4.0, "slow_agents": [1]}
CONDITIONS = {
    "perfect": {},
    "loss": {"loss": LOSS},
    "loss, reused": {"loss": LOSS, "on_loss": "reuse_last"},
    "loss, kept by senders": {"loss": LOSS, "on_loss": "sender_keeps"},
    "bursts": {"loss": BURSTS, "on_loss": "skip"},
    "sleep": {"awake": 0.7},
    "schedule": {"schedule": {"kind": "matchings"}},
    "delay": {"delay": {"kind": "uniform", "most": 2}, "on_loss": "reuse_last"},
    "compression": {"compression": QSGD, "error_feedback": True, "on_loss": "reuse_last"},
    "clock": {"compute": COMPUTE, "link": {"latency": 0.01}, "loss": LOSS, "awake": 0.7},
    "no barrier": {"compute": COMPUTE, "barrier": False, "on_loss": "reuse_last"},
    "privacy": {"privacy": {"clip": 2.0, "sigma": 0.1}, "noise": 0.1},
}
RECORD = {"every": 3, "probes": ["consensus_error", "potential"]}
AGENTS = 9, 36  # of which the latter exchange boundaries where vectors may be lost, too


@cache
def problem(agents, kind):
    """Return a problem whose parts are inverted, or one of mini-batches."""
    X = np.random.default_rng(agents).standard_normal((5 * agents + 3, 3))
    if kind == "linear":
        return concord.problems.linear_regression(X, X @ [1.0, -1.0, 0.5], agents=agents)
    return concord.problems.logistic_regression(X, X[:, 0] > 0, agents=agents)


def cases():
    """Return all cases: sampler, options, graph, condition, agents, problem."""
    kinds = itertools.product(SAMPLERS, GRAPHS, CONDITIONS, AGENTS, ("linear", "logistic"))
    return [(*sampler, *rest) for sampler, *rest in kinds]


def trace(case, comm=None, **more):
    """Return the trace of a case; None where the sampler does not take it anyway."""
    kind, options, graph, name, agents, target = case
    prob, chains, iterations = problem(agents, target), 2 + agents % 2, 7
    try:
        network = concord.network(graph, agents, **CONDITIONS[name])
        own = _prepared(kind, prob, network, iterations, chains, None, RECORD, options)
        own.sampler.check(prob, own.topology, own.params)
    except ConcordError:
        return None
    return loop.sample(
        own.sampler,
        own.params,
        prob,
        own.topology,
        law=own.keys.initial,
        record=own.keys.record,
        chains=chains,
        iterations=iterations,
        seed=3,
        labels=loop.Labels(run="ranks"),
        comm=comm,
        **more,
    )


def different(one, other):
    """Return the variables that are not the same bytes in two traces."""
    names = {*one.variables, *other.variables}
    return [
        name
        for name in sorted(names)
        if name not in one or name not in other or one[name].tobytes() != other[name].tobytes()
    ]
