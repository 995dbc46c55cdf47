"""Laws on long rings by their modes, against dense ones, and against chains."""

from types import SimpleNamespace

import numpy as np
import pytest

import concord
from concord.arena import scores
from concord.arena.chains import Chains
from concord.laws import rings
from concord.metrics import _laws
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


def law_of(kind, options, problem, graph):
    module = plugin("samplers", kind, "")
    params, start = build(module.Params, options, ""), Law("normal").moments(problem.dim)
    return _laws.of_versions(module, [problem], graph, [params], start)


@pytest.mark.parametrize("kind", KINDS)
def test_modes_have_the_law_of_the_whole_ring(kind, monkeypatch):
    given = kind, KINDS[kind], alike(), concord.network("ring", SIZE)
    modes = law_of(*given)
    monkeypatch.setattr(rings, "FROM", SIZE + 1)
    dense = law_of(*given)
    assert isinstance(modes, rings.Modes) and not isinstance(dense, rings.Modes)
    for one, other in zip(modes.at([1, 7, 64, 1000]), dense.at([1, 7, 64, 1000]), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10 * np.abs(other).max())
    for one, other in zip(modes.averaged(33), dense.averaged(33), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10 * np.abs(other).max())


def has_modes(kind, options, problem, graph):
    return isinstance(law_of(kind, options, problem, graph), rings.Modes)


def test_other_agents_rings_and_samplers_have_no_modes():
    problem, ring = alike(), concord.network("ring", SIZE)
    assert has_modes("de_sgld", KINDS["de_sgld"], problem, ring)
    other = problem.gram.copy()
    other[3] *= 1.01
    apart = concord.problems.quadratic(other, problem.shift)
    assert not has_modes("de_sgld", KINDS["de_sgld"], apart, ring)
    assert not has_modes("de_sgld", KINDS["de_sgld"], problem, concord.network("path", SIZE))
    lossy = concord.network("ring", SIZE, awake=0.5)
    assert not has_modes("de_sgld", KINDS["de_sgld"], problem, lossy)
    assert not has_modes("graph_gibbs", {"tolerance": 1.0}, problem, ring)  # by colors


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
    given = [alike()], concord.network("ring", SIZE), [params], Law("normal").moments(2)
    assert isinstance(_laws.of_versions(module, *given), rings.Modes)
    assert not isinstance(_laws.of_versions(Counts, *given), rings.Modes)
    assert not has_modes("d_ula", {"step_size": 0.05, "fusion": 0.2}, alike(), given[1])


def test_chains_on_a_ring_too_large_for_dense_laws_have_that_of_modes(monkeypatch):
    agents, chains, due = 1024, 200, [1, 20]
    problem, graph = alike(agents, 1, scale=1 / agents), concord.network("ring", agents)
    module = plugin("samplers", "de_sgld", "")
    params = build(module.Params, {"step_size": 1.0}, "")
    run = SimpleNamespace(paper="p", experiment="e", name="r", seed=3, chains=chains)
    drawn = Chains(module, [("a", problem)], graph, [params], run, Law("normal")).bias(due)
    given = "de_sgld", {"step_size": 1.0}, problem, graph
    modes = law_of(*given)
    exactly = scores.bias(modes.at(due), problem.posterior)
    for level in ("average", "pooled"):  # that of the worst of a thousand is the worst noise
        b2, wanted = drawn[level][:, 0], np.maximum(exactly[level][:, 0], 1 / chains)
        assert (np.abs(b2 - wanted) < 15 * np.sqrt(wanted / chains)).all(), level
    monkeypatch.setattr(rings, "FROM", agents + 1)
    with pytest.raises(_laws.NoLaw, match="1024 agents of dimension 1 exceed the 250 entries"):
        law_of(*given)
