"""Laws on long rings by their modes, against dense ones, and against chains."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import concord
from concord.arena import laws, rings, scores
from concord.arena.chains import Chains
from concord.options import build
from concord.plugins import plugin
from concord.sampling.initial import Law

SIZE = 50
KINDS = {
    "de_sgld": {"step_size": 0.2},
    "de_sghmc": {"step_size": 0.1, "friction": 1.0},
    "admm": {"penalty": 1.0},
    "extra_sgld": {"step_size": 0.1},
    "diging_sgld": {"step_size": 0.1},
    "local_sgld": {"step_size": 0.1, "period": 4},
    "push_sum_sgld": {"step_size": 0.2},
}


def alike(agents=SIZE, dim=2, seed=0, scale=0.2):
    gram = np.array([[2.0, 0.5], [0.5, 1.0]])[:dim, :dim] * scale
    shift = np.random.default_rng(seed).standard_normal((agents, dim))
    return concord.problems.quadratic(np.tile(gram, (agents, 1, 1)), shift)


def both(kind, options, problem, graph):
    module = plugin("samplers", kind, "")
    params, start = build(module.Params, options, ""), Law("normal").moments(problem.dim)
    modes = rings.path(module, [problem], graph, [params], start)
    return modes, laws.path(module, [problem], graph, [params], start)


@pytest.mark.parametrize("kind", KINDS)
def test_modes_have_the_law_of_the_whole_ring(kind):
    modes, dense = both(kind, KINDS[kind], alike(), concord.network("ring", SIZE))
    assert isinstance(modes, rings.Modes)
    for one, other in zip(modes.at([1, 7, 64, 1000]), dense.at([1, 7, 64, 1000]), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10 * np.abs(other).max())
    for one, other in zip(modes.averaged(33), dense.averaged(33), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10 * np.abs(other).max())


def test_other_agents_rings_and_samplers_have_no_modes():
    problem, ring = alike(), concord.network("ring", SIZE)
    assert both("de_sgld", KINDS["de_sgld"], problem, ring)[0] is not None
    other = problem.gram.copy()
    other[3] *= 1.01
    apart = concord.problems.quadratic(other, problem.shift)
    assert both("de_sgld", KINDS["de_sgld"], apart, ring)[0] is None
    assert both("de_sgld", KINDS["de_sgld"], problem, concord.network("path", SIZE))[0] is None
    lossy = concord.network("ring", SIZE, awake=0.5)
    assert both("de_sgld", KINDS["de_sgld"], problem, lossy)[0] is None
    assert both("graph_gibbs", {"tolerance": 1.0}, problem, ring)[0] is None  # by colors


def test_a_sampler_that_counts_agents_has_no_modes():
    class Counts:
        check = init = None

        @staticmethod
        def affine(problem, topology, params):
            return plugin("samplers", "de_sgld", "").affine(
                concord.problems.quadratic(problem.gram * problem.agents, problem.shift),
                topology, params,
            )  # fmt: skip

    module = plugin("samplers", "de_sgld", "")
    params = build(module.Params, {"step_size": 0.001}, "")
    graph, start = concord.network("ring", SIZE), Law("normal").moments(2)
    assert rings.path(module, [alike()], graph, [params], start) is not None
    assert rings.path(Counts, [alike()], graph, [params], start) is None
    assert both("d_ula", {"step_size": 0.05, "fusion": 0.2}, alike(), graph)[0] is None


def test_chains_on_a_ring_too_large_for_dense_laws_have_that_of_modes():
    agents, chains, due = 1024, 200, [1, 20]
    problem, graph = alike(agents, 1, scale=1 / agents), concord.network("ring", agents)
    module = plugin("samplers", "de_sgld", "")
    params = build(module.Params, {"step_size": 1.0}, "")
    run = SimpleNamespace(paper="p", experiment="e", name="r", seed=3, chains=chains)
    drawn = Chains(module, [("a", problem)], graph, [params], run, Law("normal")).bias(due)
    modes, dense = both("de_sgld", {"step_size": 1.0}, problem, graph)
    exactly = scores.bias(modes.at(due), problem.posterior)
    assert dense is None
    for level in ("average", "pooled"):  # that of the worst of a thousand is the worst noise
        b2, wanted = drawn[level][:, 0], np.maximum(exactly[level][:, 0], 1 / chains)
        assert (np.abs(b2 - wanted) < 15 * np.sqrt(wanted / chains)).all(), level
