"""Samplers over ranks on networks, conditions and options by chance, compiled and not."""

from collections import Counter
from functools import cache, partial
from importlib.util import find_spec
from random import Random

import numpy as np
import pytest

import concord
from concord import compiled, plugins
from concord.contracts import declared
from concord.errors import ConcordError
from concord.sampling import initial, loop
from concord.sampling.recorder import Record
from concord.testing.variants import variants
from networks.over_ranks import BURSTS, LOSS, QSGD, different
from networks.threads import over_ranks as threads

NUMBA = find_spec("numba") is not None
KINDS = {kind: plugins.plugin("samplers", kind, "tests") for kind in plugins.kinds("samplers")}
SAMPLERS = {
    kind: list(variants(module))
    for kind, module in KINDS.items()
    if not declared(module, "WHOLE") and kind not in ("c_ula", "sgd")  # of one agent
}
GRAPHS = [
    *(
        "ring",
        "complete",
        "star",
        "path",
        "torus",
        "hypercube",
        "exponential",
        "server",
        "no_edges",
    ),
    *("directed_ring", "directed_exponential"),
    {"kind": "erdos_renyi", "probability": 0.3, "seed": 1},
    {"kind": "barabasi_albert", "edges": 2, "seed": 2},
]
CONDITIONS = {
    "loss": [None, None, LOSS, LOSS | {"direction": "link"}, BURSTS],
    "on_loss": ["keep_own_weight", "reuse_last", "skip", "sender_keeps"],
    "awake": [1.0, 1.0, 0.7],
    "schedule": [None, None, {"kind": "matchings"}, {"kind": "kept", "probability": 0.6}],
    "delay": [None, None, {"kind": "uniform", "most": 2}, {"kind": "fixed", "iterations": 2}],
    "compression": [None, QSGD, {"kind": "top_k", "share": 0.5}],
    "error_feedback": [False, False, True],
    "noise": [0.0, 0.0, 0.1],
    "privacy": [None, None, {"clip": 2.0, "sigma": 0.1}],
}


@cache
def problem(agents, dim, kind):
    rng = np.random.default_rng(agents)
    if kind == "quadratic":
        root = rng.standard_normal((agents, dim, dim)) / 2
        gram = root @ root.swapaxes(1, 2) + 0.3 * np.eye(dim)
        return concord.problems.quadratic(gram, rng.standard_normal((agents, dim)))
    X = rng.standard_normal((4 * agents + 3, dim))
    if kind == "linear":
        return concord.problems.linear_regression(X, X.sum(axis=1), agents=agents)
    return concord.problems.logistic_regression(X, X[:, 0] > 0, agents=agents)


def drawn(rng, kind):
    """Return what samples a case by chance, or None where the sampler does not take it anyway."""
    agents, dim = rng.choice([4, 5, 9, 16, 36, 64]), rng.choice([1, 2, 3, 9, 33, 40])
    prob = problem(agents, dim, rng.choice(["quadratic", "linear", "logistic"]))
    happens = {key: rng.choice(values) for key, values in CONDITIONS.items()}
    happens = {key: value for key, value in happens.items() if value is not None}
    if rng.random() < 0.3:
        happens = {}
    params, graph, chains = rng.choice(SAMPLERS[kind]), rng.choice(GRAPHS), rng.choice([1, 2, 5])
    record = Record(every=3, probes=("consensus_error",))
    counter = rng.random() < 0.2
    try:
        network = concord.network(graph, agents, **happens)
        KINDS[kind].check(prob, network, params)
    except ConcordError:
        return None

    def sampled(fast, comm=None):
        compiled._awaited = 0 if fast else compiled.PATIENCE
        return loop.sample(
            KINDS[kind], params, prob, network, law=initial.Law("normal"), record=record,
            chains=chains, iterations=7, seed=3, labels=loop.Labels(), comm=comm, counter=counter,
        )  # fmt: skip

    sampled.case = kind, params, graph, agents, dim, chains, happens, counter
    return sampled


@pytest.mark.thorough
@pytest.mark.parametrize("kind", sorted(SAMPLERS))
def test_cases_by_chance_have_the_bytes_of_one_process(kind, effort, monkeypatch):
    monkeypatch.setattr(compiled, "_awaited", 0)
    rng, said = Random(kind), Counter()
    while said["same"] < 30 * effort and said.total() < 4000:
        sampled = drawn(rng, kind)
        try:
            whole = sampled and sampled(False)
        except ConcordError:  # the problem does not offer what options ask for
            whole = None
        said["taken" if whole else "not taken"] += 1
        fast = bool(whole) and NUMBA and rng.random() < 0.5
        assert not fast or not different(whole, sampled(True)), sampled.case
        for ranks in rng.sample((1, 2, 3, 4), 2) if whole else ():
            try:
                parts = threads(ranks, partial(sampled, fast))
            except ConcordError as error:
                assert "be divided over ranks" in str(error)
                break
            assert not different(whole, parts[0]), (ranks, fast, *sampled.case)
        else:
            said["same"] += bool(whole)
    assert said["same"] >= 20
