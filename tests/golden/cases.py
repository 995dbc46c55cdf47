"""The list of cases whose draws and laws are recorded, and how each is computed.

A case is a dictionary of plain data. All goes through ``concord.sample``, ``concord.law``,
``concord.network`` and ``concord.problems``, so that the list outlives what lies behind them. A
case that the package refuses is a case, too: its outcome is ``refused``.
"""

import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

import concord
import concord_studies  # noqa: F401  adds the banana

Case = dict[str, Any]

QUANTITIES = (
    *("x", "x_average", "unicasts", "broadcasts", "gradients", "seconds", "waited"),
    *("consensus_error", "potential", "diverged_at"),
)
BY_AGENT = ("unicasts", "broadcasts", "gradients")  # may be stored without an axis of chains

LOSS = {"kind": "bernoulli", "rate": 0.3, "direction": "one_way"}
BURSTS = {"kind": "gilbert_elliott", "rate": 0.9, "to_bad": 0.2, "to_good": 0.3}
CLOCK = {
    "compute": {"seconds": 1.0, "spread": 0.4, "slowest": 3.0},
    "link": {"latency": 0.1, "bandwidth": 100.0},
}
QSGD, TOP_K = {"kind": "qsgd", "bits": 3}, {"kind": "top_k", "share": 0.5}
LAST = {"on_loss": "reuse_last"}
EFFECTS: dict[str, Case] = {
    "loss_keep_own_weight": {"loss": LOSS},
    "loss_reuse_last": {"loss": LOSS, **LAST},
    "loss_skip": {"loss": LOSS, "on_loss": "skip"},
    "loss_sender_keeps": {"loss": LOSS, "on_loss": "sender_keeps"},
    "loss_link": {"loss": LOSS | {"direction": "link"}},
    "loss_bursts": {"loss": BURSTS | {"direction": "one_way"}},
    "sleep": {"awake": 0.7},
    "sleep_reuse_last": {"awake": 0.7, **LAST},
    "links_kept": {"schedule": {"kind": "kept", "probability": 0.6}},
    "links_matchings": {"schedule": {"kind": "matchings"}},
    "links_pair": {"schedule": {"kind": "pair"}},
    "links_one_peer": {"schedule": {"kind": "one_peer"}, "on_loss": "sender_keeps"},
    "links_in_turn": {
        "schedule": {"kind": "in_turn", "graphs": [[[0, 1], [2, 3]], [[1, 2], [0, 3]]]}
    },
    "qsgd": {"compression": QSGD},
    "qsgd_feedback": {"compression": QSGD, "error_feedback": True},
    "top_k": {"compression": TOP_K},
    "top_k_feedback": {"compression": TOP_K, "error_feedback": True},
    "rand_k": {"compression": TOP_K | {"kind": "rand_k"}},
    "noise": {"noise": 0.1},
    "privacy": {"privacy": {"clip": 2.0, "sigma": 0.1}},
    "clock": CLOCK,
    "clock_no_barrier": {**CLOCK, "barrier": False, **LAST},
    "clock_loss_sleep_qsgd": {**CLOCK, "loss": LOSS, "awake": 0.8, "compression": QSGD},
}
BATCHES = [
    {"batch_size": 2},
    {"batch_size": 2, "batch_scale": "mean"},
    {"batch_size": 2, "batch_scale": "none", "batch_pool": "all_but_last"},
]
ORDERS = [{"batch_size": 2, "batch_order": o} for o in ("epochs", "whole_batches")]
WEIGHTS = ["lazy_metropolis", "max_degree", "best_constant", "row_stochastic", "pairwise", 0.3]
IN_PLACE = {"update_order": "in_place"}
STEPS = [
    {"step_size": {"kind": "harmonic", "a": 0.02, "c": 0.1}},
    {"step_size": {"kind": "power", "a": 0.05, "b": 3.0, "exponent": 0.6}},
]
# What each sampler is sampled with, and which options replace these, one case each.
SAMPLERS: dict[str, tuple[Case, list[Case]]] = {
    "admm": (
        {"penalty": 2.0},
        [{"noise": False}, {"penalty": 0.5}],
    ),
    "c_ula": ({"step_size": 0.01}, [*STEPS, {"batch_size": 2}, *ORDERS]),
    "choco_sgld": (
        {"step_size": 0.01, "compression": QSGD, "consensus_step": 0.5},
        [*STEPS, {"compression": TOP_K}, {"consensus_step": 1.0}, *BATCHES[:1], {"weights": 0.3}],
    ),
    "consensus_mc": (
        {"step_size": 0.01},
        [*STEPS, {"step_size": None}, {"combine": "gaussian"}, {"warm_up": 5}],
    ),
    "d_mala": (
        {"step_size": 0.1, "drift": "half", "correction": "mala"},
        [
            *STEPS,
            {"correction": "none"},
            {"drift": "whole", "correction": "energy"},
            {"drift": "whole", "correction": "released"},
            {"weights": "lazy_metropolis"},
        ],
    ),
    "d_ula": (
        {"step_size": 0.003, "fusion": 0.2},
        [
            *STEPS,
            {"fusion": {"kind": "harmonic", "a": 0.3, "c": 0.1}},
            {"gradient_scale": "one"},
            {"noise_variance": "one"},
            {"batch_size": 2},
            *ORDERS,
            {"prior_gradient": "after_mixing"},
            IN_PLACE,
        ],
    ),
    "de_psgld": (
        {"step_size": 0.01, "smoothing": 0.1, "constraint": {"kind": "ball", "radius": 0.8}},
        [
            *STEPS,
            *BATCHES,
            IN_PLACE,
            {"constraint": {"kind": "box", "lower": -0.4, "upper": 0.4}},
        ],
    ),
    "de_sghmc": (
        {"step_size": 0.1, "friction": 2.0},
        [*STEPS, *BATCHES, IN_PLACE, {"initial_velocity_sd": 0.5}, {"weights": "max_degree"}],
    ),
    "de_sgld": (
        {"step_size": 0.01},
        [*STEPS, *BATCHES, IN_PLACE, *({"weights": weights} for weights in WEIGHTS)],
    ),
    "dg_lmc": (
        {"step_size": 0.01, "tolerance": 0.1},
        [
            *STEPS,
            {"local_steps": 3},
            {"particles": 3},
        ],
    ),
    "diging_sgld": ({"step_size": 0.01}, [*STEPS, *BATCHES, {"weights": "lazy_metropolis"}]),
    "extra_sgld": (
        {"step_size": 0.01},
        [*STEPS, *BATCHES, {"h": 0.2}, {"weights": "lazy_metropolis"}],
    ),
    "fsgld": (
        {"step_size": 0.005},
        [
            *STEPS,
            {"surrogates": "laplace"},
            {"local_steps": 3},
        ],
    ),
    "gossip_ula": (
        {"step_size": 0.005},
        [
            *STEPS,
            {"fusion": {"kind": "harmonic", "a": 0.5, "c": 0.1}},
            {"communication": "never"},
            {"communication": "triggered", "threshold": 0.1, "decay": 0.5},
            {"communication": "triggered", "threshold": 0.3, "decay": 0.1, "known": "start"},
            {"drift": "whole"},
        ],
    ),
    "graph_gibbs": ({"tolerance": 0.2}, [{"step_size": 0.02}, {"tolerance": 0.05}]),
    "local_sgld": (
        {"step_size": 0.01, "period": 2},
        [
            *STEPS,
            {"period": 1},
            {"communication": 0.4},
            {"common_noise": 0.6},
            {"renewal": 0.2},
            {"renewal": 0.2, "batch_size": 2},
            {"batch_size": 2},
            {"weights": "lazy_metropolis"},
        ],
    ),
    "push_sum_sgld": ({"step_size": 0.01}, [*STEPS, {"batch_size": 2}]),
    "qlsd": (
        {"step_size": 0.005, "compression": QSGD},
        [
            *STEPS,
            {"compression": {"kind": "rand_k", "share": 0.5}},
            {"memory_rate": 0.3},
            {"participants": 2},
            {"memory_start": "mode"},
            {"batch_size": 2},
            {"batch_size": 2, "renewal": 10},
        ],
    ),
    "sgd": ({"step_size": 0.01}, [*STEPS, {"batch_size": 2}, *ORDERS]),
}
ALONE, OF_SERVER = ("c_ula", "sgd"), ("consensus_mc", "dg_lmc", "fsgld", "qlsd")
PROBLEMS = ["quadratic", "logistic", "laplace", "skewed", "sizes", "mixture", "banana", "own"]
GRAPHS: list[Any] = [
    *("complete", "star", "path", "torus", "no_edges", "server", "directed_ring"),
    {"kind": "erdos_renyi", "probability": 0.6, "seed": 3},
    [[0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0]],
    [[0.5, 0.5, 0, 0], [0.5, 0.25, 0.25, 0], [0, 0.25, 0.5, 0.25], [0, 0, 0.25, 0.75]],
]
RUNS: list[Case] = [  # how a run is started and recorded
    {"seed": 2},
    {"initial": {"kind": "normal", "mean": 1.0, "sd": 0.0}},
    {"initial": {"kind": "laplace", "scale": 2.0}},
    {"initial": {"kind": "random_normal", "mean": [1.0, -1.0]}},
    {"record": {"at": [60], "agents": [1], "probes": ["consensus_error", "potential"]}},
    {"record": {"every": 20, "draws": False}},
    {"chains": 53, "record": {"at": [60], "agents": [0]}},  # more than one block of chains
    {"options": {"step_size": 5.0}, "iterations": 400},  # which diverges
]


def cases() -> Iterator[Case]:
    """Yield every case, the sampler's name first in its own."""
    for sampler, (usual, others) in SAMPLERS.items():
        network = None if sampler in ALONE else "server" if sampler in OF_SERVER else "ring"
        base: Case = {"sampler": sampler, "problem": "linear", "network": network}

        def case(name: str, *, base: Case = base, usual: Case = usual, **more: Any) -> Case:
            options = usual | more.pop("options", {})
            return {"name": f"{base['sampler']}/{name}", **base, **more, "options": options}

        yield case("usual")
        for options in others:
            yield case(f"options/{_text(options)}", options=options)
        for problem in PROBLEMS:
            yield case(f"problem/{problem}", problem=problem)
        if sampler not in ALONE:
            for effect, happens in EFFECTS.items():
                yield case(f"network/{effect}", happens=happens)
        if sampler in ("de_sgld", "gossip_ula", "push_sum_sgld"):
            for number, graph in enumerate(GRAPHS):
                name = graph if isinstance(graph, str) else number
                yield case(f"graph/{name}", network=graph)
            for run in RUNS:
                yield case(f"run/{_text(run)}", **run)


def _text(options: Case) -> str:
    # The numbers are of 0.3.0, which called a warm-up so.
    old = {"warm_up": "burn_in"}
    inner = {old.get(k, k): _text(v) if isinstance(v, dict) else v for k, v in options.items()}
    return ",".join(f"{key}={value}" for key, value in inner.items()).replace(" ", "")


@cache
def problem_of(kind: str, agents: int) -> Any:
    """Return a problem of two dimensions; all that is random in it is numpy's, by a seed."""
    rng, make = np.random.default_rng(7), concord.problems
    X = rng.standard_normal((22, 2))
    y = X @ [1.0, -0.5] + 0.5 * rng.standard_normal(22)
    partition: Any = {
        "skewed": {"kind": "skewed", "ratio": 3.0},
        "sizes": {"kind": "sizes", "sizes": [3, 4, 5, 10] if agents == 4 else [22]},
    }.get(kind, "equal")
    if kind in ("linear", "skewed", "sizes"):
        return make.linear_regression(X, y, agents=agents, partition=partition)
    if kind in ("logistic", "laplace"):
        prior = {"logistic": "gaussian", "laplace": "laplace"}[kind]
        return make.logistic_regression(X, (y > 0).astype(int), agents=agents, prior=prior)
    if kind == "quadratic":
        root = rng.standard_normal((agents, 2, 2))
        H = root @ root.swapaxes(1, 2) + 0.5 * np.eye(2)
        return make.quadratic(H, rng.standard_normal((agents, 2)))
    if kind == "mixture":
        return make.tied_mixture(2.0 * rng.standard_normal(20), agents=agents)
    if kind == "banana":
        return make.banana(agents=agents)
    return concord.Problem(gradient=lambda x: x + np.tanh(x), agents=agents, dim=2)


def outcome(case: Case, laws: bool = True) -> dict[str, np.ndarray]:
    """Return what sampling gives, and the exact law where there is one, by name."""
    given = case["options"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", concord.DivergenceWarning)
        try:
            problem = problem_of(case["problem"], 1 if case["sampler"] in ALONE else 4)
            network = case["network"]
            if network is not None:
                own = 4 if isinstance(network, (str, dict)) else None
                network = concord.network(network, own, **case.get("happens", {}))
            start = (case["sampler"], problem, network)
            shared = {"initial": case.get("initial"), **given}
            trace = concord.sample(
                *start,
                iterations=case.get("iterations", 60),
                chains=case.get("chains", 4),
                seed=case.get("seed", 1),
                record=case.get("record", {"at": [1, 7, 60]}),
                progress=False,
                **shared,
            )
        except concord.ConcordError:
            return {"refused": np.array(1)}
        found = {name: np.asarray(trace[name]) for name in QUANTITIES if name in trace}
        for name in found.keys() & set(BY_AGENT):
            if found[name].ndim == 2:
                found[name] = np.repeat(found[name][None], trace.chains, axis=0)
        if not laws:
            return found
        try:  # the last is stationary to rounding, where the law has a limit
            law = concord.law(*start, iterations=600, record={"at": [2, 60, 600]}, **shared)
        except concord.ConcordError:
            return found
        for part in ("mean", "cov", "average_mean", "average_cov"):
            found[f"law.{part}"] = getattr(law, part)
    return found
