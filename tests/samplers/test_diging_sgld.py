"""DIGing-SGLD against its equations by hand, and what it reduces to."""

import numpy as np
import pytest
from chains import EXACT, chain

import concord
from concord.errors import ConcordError
from concord.networks import topology
from concord.samplers import diging_sgld
from variants import CONSTANT, DECAYING, GRAPHS, problem


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda g: f"{g.name}-{g.agents}")
def test_a_step_is_the_equation(graph):
    prob, weights = problem(graph.agents, 2), graph.metropolis().dense()
    found = chain(diging_sgld, prob, graph, diging_sgld.Params(DECAYING), chains=1)[:, 0]

    def gradient(x):
        return np.einsum("ade,ae->ad", prob.gram, x) - prob.shift

    rng, x = np.random.default_rng(1), found[0]
    y = gradient(x)
    for k in range(5):
        eta, noise = DECAYING(k), rng.standard_normal(x.shape)
        new = weights @ x - eta * y + np.sqrt(2 * eta) * noise
        y = weights @ y + gradient(new) - gradient(x)
        x = new
        np.testing.assert_allclose(found[k + 1], x, rtol=0, atol=EXACT)


def test_mini_batches_are_tracked_as_they_were_drawn():
    """The sum of v stays zero: each batch that enters y leaves it again, and no other does."""
    graph, prob = topology.build("star", 4), problem(4, 2)
    rng, params = np.random.default_rng(1), diging_sgld.Params(CONSTANT, batch_size=1)
    state, step = diging_sgld.init(prob, graph, params, np.ones((5, 4, 2)), rng)
    for k in range(30):
        state, info = step(state, k, rng)
        assert abs(state.v.sum(axis=1)).max() < 1e-10 * abs(state.v).max()
    assert info.unicasts.tolist() == [6, 2, 2, 2] and info.broadcasts.tolist() == [2] * 4


def test_what_it_begins_with_is_hidden_or_refused():
    hidden = {"privacy": {"clip": 1.0, "sigma": 2.0}}
    options = {"step_size": 0.01, "iterations": 2, "chains": 2}
    network = concord.network("ring", 5, **hidden, on_loss="reuse_last")
    with pytest.raises(ConcordError, match="neighbors know the gradients that DIGing-SGLD begins"):
        concord.sample("diging_sgld", problem(5, 2), network, **options)
    concord.sample("diging_sgld", problem(5, 2), concord.network("ring", 5, **hidden), **options)
    known = concord.network("ring", 5, awake=0.5, on_loss="reuse_last")
    concord.sample("diging_sgld", problem(5, 2), known, **options)
