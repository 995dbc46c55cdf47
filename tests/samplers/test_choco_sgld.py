"""CHOCO-SGLD: DE-SGLD without compression, and the same average with any."""

import numpy as np
import pytest

import concord
from concord.networks import topology
from concord.networks.compressions import Compression
from concord.samplers import choco_sgld, de_sgld
from concord.sampling.schedules import Schedule
from variants import GRAPHS, problem

RING = topology.build("ring", 5)
COMPRESSIONS = [
    {"kind": "qsgd", "bits": 3}, {"kind": "top_k", "share": 0.5}, {"kind": "rand_k", "share": 0.5}
]  # fmt: skip


class Same:
    """The same normal numbers whatever else is drawn."""

    def __init__(self):
        self.normal, self.other = np.random.default_rng(1), np.random.default_rng(2)

    def standard_normal(self, out, dtype=float):
        return self.normal.standard_normal(out=out, dtype=dtype)

    def random(self, out, dtype=float):
        return self.other.random(out=out, dtype=dtype)


def states(module, params, graph=RING, start=0.0, steps=6):
    prob = problem(graph.agents, 2)
    x0 = start + np.random.default_rng(3).standard_normal((4, graph.agents, 2))
    rng = Same()
    state, step = module.init(prob, graph, params, x0, rng)
    found = []
    for k in range(steps):
        state, _ = step(state, k, rng)
        found.append(state.x.copy())
    return np.array(found)


@pytest.mark.parametrize("graph", GRAPHS[:6], ids=lambda g: g.name)
def test_without_compression_it_is_de_sgld(graph):
    whole = Compression("top_k", share=1.0)
    found = states(choco_sgld, choco_sgld.Params(Schedule(0.02), whole), graph)
    wanted = states(de_sgld, de_sgld.Params(Schedule(0.02)), graph)
    np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("compression", COMPRESSIONS, ids=lambda c: c["kind"])
def test_the_average_does_not_depend_on_the_compression(compression):
    """In a step from the same positions; later ones have other gradients."""
    params = choco_sgld.Params(Schedule(0.02), compression, consensus_step=0.4)
    prob, rng = problem(5, 2), Same()
    x0 = np.random.default_rng(3).standard_normal((4, 5, 2))
    state, step = choco_sgld.init(prob, RING, params, x0, rng)
    for k in range(6):
        before = state.x.copy()
        other = rng.normal.bit_generator.state
        state, _ = step(state, k, rng)
        fresh = np.random.default_rng(1)
        fresh.bit_generator.state = other
        noise = fresh.standard_normal(x0.shape)
        gradients = np.einsum("aij,caj->cai", prob.gram, before) - prob.shift
        wanted = (before - 0.02 * gradients + 0.2 * noise).mean(axis=1)
        np.testing.assert_allclose(state.x.mean(axis=1), wanted, rtol=1e-10, atol=1e-12)


def test_far_from_zero_differences_are_what_is_left_to_send():
    """Compressed positions are as wrong as they are large, differences are not."""
    far = np.array([1000.0, 1000.0])
    prob = concord.problems.quadratic(np.tile(np.eye(2) / 5, (5, 1, 1)), np.tile(far / 5, (5, 1)))
    start = {"kind": "normal", "mean": 1000.0, "sd": 0.1}
    common = {"step_size": 0.05, "iterations": 300, "chains": 100, "initial": start}
    compression, ring = {"kind": "qsgd", "bits": 4}, {"kind": "ring"}
    plain = concord.sample("de_sgld", prob, ring, **common)
    crude = concord.network("ring", 5, compression=compression)
    apart = concord.sample("de_sgld", prob, crude, **common)
    sent = concord.sample("choco_sgld", prob, ring, compression=compression, **common)
    spread = [t["x"][:, 100:].std(axis=2).mean() for t in (plain, apart, sent)]
    assert spread[1] > 20 * spread[0]
    assert spread[2] < 1.5 * spread[0]


def test_its_bytes_are_those_of_the_compression():
    params = choco_sgld.Params(Schedule(0.02), {"kind": "qsgd", "bits": 3})
    assert choco_sgld.size(params, 12, 8) == 8 + np.ceil(36 / 8)
