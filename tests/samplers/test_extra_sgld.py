"""EXTRA-SGLD against its equations by hand, what it reduces to, and what its released code does."""

import numpy as np
import pytest
from chains import EXACT, chain

from concord.errors import ConcordError
from concord.networks import topology
from concord.networks.conditions import Conditions
from concord.networks.network import under
from concord.samplers import extra_sgld
from variants import CONSTANT, DECAYING, GRAPHS, problem

NAMED = pytest.mark.parametrize("graph", GRAPHS, ids=lambda g: f"{g.name}-{g.agents}")


@NAMED
def test_it_is_extra_with_differenced_noise(graph):
    """Without u: x'' = (I + W) x' - W~ x - eta (g' - g) + sqrt(2 eta) (w' - w)."""
    prob, params = problem(graph.agents, 2), extra_sgld.Params(CONSTANT, h=0.3)
    x = chain(extra_sgld, prob, graph, params, chains=1)[:, 0]
    rng, eta, one = np.random.default_rng(1), 0.013, np.eye(graph.agents)
    weights = graph.metropolis().dense()
    tilde = 0.3 * one + 0.7 * weights
    noise = [rng.standard_normal(x[0].shape) for _ in range(5)]
    g = np.einsum("ade,kae->kad", prob.gram, x) - prob.shift
    first = weights @ x[0] - eta * g[0] + np.sqrt(2 * eta) * noise[0]
    np.testing.assert_allclose(x[1], first, rtol=0, atol=EXACT)
    for k in range(4):
        expected = (one + weights) @ x[k + 1] - tilde @ x[k] - eta * (g[k + 1] - g[k])
        expected += np.sqrt(2 * eta) * (noise[k + 1] - noise[k])
        np.testing.assert_allclose(x[k + 2], expected, rtol=0, atol=EXACT)


@NAMED
def test_two_steps_are_what_released_code_does(graph):
    """Agent by agent: by W~, then by W, with fresh gradients and noise, from where agents are."""
    prob = problem(graph.agents, 2)
    params = extra_sgld.Params(DECAYING, h=0.3, form="two_steps")
    found = chain(extra_sgld, prob, graph, params, chains=1)[:, 0]
    rng, x = np.random.default_rng(1), found[0].copy()
    weights = graph.metropolis().dense()
    tilde = 0.3 * np.eye(graph.agents) + 0.7 * weights
    for k in range(5):
        eta, noise = DECAYING(k), [rng.standard_normal(x.shape) for _ in range(2)]
        for i in range(graph.agents):
            for matrix, kicks in zip((tilde, weights), noise, strict=True):
                gradient = prob.gram[i] @ x[i] - prob.shift[i]
                x[i] = matrix[i] @ x - eta * gradient + np.sqrt(2 * eta) * kicks[i]
        np.testing.assert_allclose(found[k + 1], x, rtol=0, atol=EXACT)


def test_two_steps_send_one_vector_for_two_gradients():
    """Neighbors move before both of an agent's steps, or after them: they need where it ends."""
    graph, x0 = topology.build("star", 4), np.zeros((3, 4, 2))
    for form in ("memory", "two_steps"):
        rng, params = np.random.default_rng(1), extra_sgld.Params(CONSTANT, form=form)
        state, step = extra_sgld.init(problem(4, 2), graph, params, x0, rng)
        info = step(state, 0, rng)[1]
        assert info.unicasts.tolist() == [3, 1, 1, 1]
        assert info.broadcasts.tolist() == [1] * 4
        assert (info.gradients is None) if form == "memory" else (info.gradients == 2).all()


BATCHES = {"batch_size": 4, "batch_scale": "none", "batch_pool": "all_but_last"}


@pytest.mark.parametrize("options", [{}, {"batch_size": 4}, BATCHES])
def test_two_steps_compute_the_gradients_that_they_use(options, monkeypatch):
    """Of each agent two, and no others where the problem can be divided: the same draws."""
    graph, whole = topology.build("ring", 5), problem(5, 2, share="twice")
    params, computed = extra_sgld.Params(CONSTANT, form="two_steps", **options), []
    name, kind = "batch_gradient" if options else "gradient", type(whole)
    compute = getattr(kind, name)

    def counting(self, *shape):
        inner = compute(self, *shape)

        def gradient(x, *given):
            computed.append(x.shape[1])
            return inner(x, *given)

        return gradient

    monkeypatch.setattr(kind, name, counting)
    found = chain(extra_sgld, whole, graph, params, steps=3)
    assert sum(computed) == 3 * 2 * 5
    monkeypatch.setattr(kind, "PARTS", ())  # so that it cannot be divided
    expected = chain(extra_sgld, whole, graph, params, steps=3)
    assert sum(computed) == 3 * 2 * 5 + 3 * (5 + 5 * 5)
    np.testing.assert_allclose(found, expected, rtol=0, atol=EXACT)


def test_two_steps_take_batches_of_all_points_but_the_last(monkeypatch):
    graph, prob = topology.build("complete", 3), problem(3, 2, share="twice")
    partial, last = type(prob).batch_gradient, []

    def noting(self, chains, size):
        inner = partial(self, chains, size)

        def gradient(x, rows, out):
            last.append(rows.max(axis=(0, 2)) - self.counts)
            return inner(x, rows, out)

        return gradient

    monkeypatch.setattr(type(prob), "batch_gradient", noting)
    params = extra_sgld.Params(CONSTANT, form="two_steps", **BATCHES)
    chain(extra_sgld, prob, graph, params, steps=20)
    assert np.concatenate(last).max() == -2
    assert (np.max([of for of in last if len(of) == 3], axis=0) == -2).all()
    assert extra_sgld.affine(prob, graph, params) is None


def test_networks_it_has_no_meaning_for_are_refused():
    loss = {"kind": "bernoulli", "rate": 0.1, "direction": "link"}
    lossy = under(topology.build("ring", 4), Conditions(loss=loss), "tests")
    with pytest.raises(ConcordError, match=r"^form: two_steps has no meaning .* use memory, or"):
        extra_sgld.check(None, lossy, extra_sgld.Params(CONSTANT, form="two_steps"))
