"""D-ULA against its equation by hand, and what it reduces to."""

from types import SimpleNamespace

import numpy as np
import pytest
from chains import EXACT, chain

from concord.errors import ConcordError
from concord.networks import topology
from concord.samplers import c_ula, d_ula
from concord.samplers.d_ula import in_turn_weights
from concord.sampling.schedules import Schedule
from variants import DECAYING, GRAPHS, problem

ONE = {"gradient_scale": "one", "noise_variance": "one"}


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda g: f"{g.name}-{g.agents}")
def test_a_step_is_the_printed_equation(graph):
    prob, n = problem(graph.agents, 2), graph.agents
    params = d_ula.Params(DECAYING, Schedule(0.3, c=0.5))
    found = chain(d_ula, prob, graph, params, chains=1)
    rng = np.random.default_rng(1)
    x = found[0, 0]
    for k in range(5):
        alpha, beta = 0.02 / (2 + k) ** 0.7, 0.3 / (1 + 0.5 * k)
        noise = np.sqrt(n) * rng.standard_normal(x.shape)
        new = np.empty_like(x)
        for i in range(n):
            apart = sum((x[i] - x[j] for j in graph.neighbors[i]), np.zeros(2))
            gradient = prob.gram[i] @ x[i] - prob.shift[i]
            new[i] = x[i] - beta * apart - alpha * n * gradient + np.sqrt(2 * alpha) * noise[i]
        x = new
        np.testing.assert_allclose(found[k + 1, 0], x, rtol=0, atol=EXACT)


# Its variants, against a naive loop.


def params(**options):
    steps = {"step_size": Schedule(0.05, b=2.0, c=1.0, exponent=0.55), "fusion": Schedule(0.2)}
    return d_ula.Params(**{**steps, **options})


@pytest.mark.parametrize("kind", ["ring", "star", "path"])
@pytest.mark.parametrize("neighbors", ["together", "in_turn"])
@pytest.mark.parametrize("taken", ["with_likelihood", "after_mixing"])
@pytest.mark.parametrize("scale", ["agents", "one"])
def test_options_against_a_loop_over_chains_agents_and_neighbors(kind, neighbors, taken, scale):
    agents, steps = 5, 3
    p, graph = problem(agents, 2), topology.build(kind, agents)
    options = params(
        neighbors=neighbors, prior_gradient=taken, gradient_scale=scale, noise_variance="one"
    )
    found = chain(d_ula, p, graph, options, steps)
    noise, expected = np.random.default_rng(1), found[0].copy()
    for k in range(steps):
        alpha, beta = options.step_size(k), options.fusion(k)
        v, old = noise.standard_normal(expected.shape), expected.copy()
        for c in range(3):
            for i in range(agents):
                w = old[c, i].copy()
                for j in graph.neighbors[i]:
                    at = w if neighbors == "in_turn" else old[c, i]
                    w = w - beta * (at - old[c, j])
                likelihood = p.gram[i] - p.prior_precision * np.eye(2)
                prior = p.prior_precision * (w if taken == "after_mixing" else old[c, i])
                grad = likelihood @ old[c, i] - p.shift[i] + prior
                gain = alpha * (agents if scale == "agents" else 1)
                expected[c, i] = w - gain * grad + np.sqrt(2 * alpha) * v[c, i]
    np.testing.assert_allclose(found[-1], expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("sampler", [c_ula, d_ula])
def test_no_law_is_stated_for_epochs(sampler):
    p, graph = problem(1, 2), topology.build("ring", 1)
    make = params if sampler is d_ula else lambda **o: c_ula.Params(step_size=Schedule(0.1), **o)
    assert sampler.affine(p, graph, make(batch_size=2, batch_order="epochs")) is None
    assert sampler.affine(p, graph, make(batch_size=2)) is not None
    assert sampler.affine(p, graph, make(batch_order="epochs")) is not None


def test_in_turn_weights_sum_to_one_by_row_only():
    weights = in_turn_weights(topology.build("ring", 5), 0.3)
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-14)
    assert np.abs(weights.sum(axis=0) - 1).max() > 0.05
    np.testing.assert_allclose(weights[2], [0, 0.21, 0.49, 0.3, 0], atol=1e-15)


def test_no_law_is_stated_for_a_prior_after_mixing():
    """Its step differs from that of the law with the prior at the iterate, which is not its law."""
    agents, ring = 4, topology.build("ring", 4)
    p = problem(agents, 2)
    assert d_ula.affine(p, ring, params()) is not None
    late = params(prior_gradient="after_mixing")
    assert d_ula.affine(p, ring, late) is None
    iterate, mixed = (chain(d_ula, p, ring, options, 1)[1] for options in (params(), late))
    assert np.abs(iterate - mixed).max() > 0.01


def test_refusals():
    ring = topology.build("ring", 4)
    with pytest.raises(ConcordError, match="use simultaneous"):
        d_ula.check(None, ring, params(neighbors="in_turn", update_order="in_place"))
    with pytest.raises(ConcordError, match="does not give its prior's gradient apart"):
        d_ula.check(SimpleNamespace(), ring, params(prior_gradient="after_mixing"))
    d_ula.check(problem(4, 2), ring, params(prior_gradient="after_mixing"))
