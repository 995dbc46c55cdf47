"""The problems and weights of kungurtsev2023: what agents see, and who hears whom."""

import numpy as np
import pytest

import everything
from concord.errors import ConcordError
from concord.sampling.partition import Partition
from concord_studies.datasets import readers

partial_views = everything.kind("problems", "partial_views")
softmax_digits = everything.kind("problems", "softmax_digits")
inverse_laplacian = everything.kind("topologies", "inverse_laplacian")
CONSECUTIVE = Partition.parse({"kind": "consecutive"}, "partition")


def stream(label):
    return np.random.default_rng(1)


def regression(**options):
    params = partial_views.Params(**options)
    return partial_views.build(params, 4, CONSECUTIVE, stream, None)


def test_agents_see_their_features_and_the_intercept():
    """Potentials are those of least squares on the features seen, with a share of the prior."""
    problem, own = regression(), [range(3), range(3, 6), range(6, 8), range(8, 10)]
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((2, 1, 4, 11))
    features, targets = readers.diabetes()
    order = np.arange(442)
    stream("test").shuffle(order)
    rows = np.sort(order[133:])
    table = np.column_stack([features, targets])[rows]
    table = (table - table.mean(axis=0)) / table.std(axis=0)

    def potential(w, agent):
        error = table[:, -1] - table[:, own[agent]] @ w[own[agent]] - w[-1]
        return 5 * error @ error + w @ w / 8

    found = problem.potential(x)[0] - problem.potential(y)[0]
    expected = [potential(x[0, i], i) - potential(y[0, i], i) for i in range(4)]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_all_features_have_the_posterior_of_least_squares():
    whole = regression(posterior_of="all")
    views = regression()
    np.testing.assert_array_equal(whole.gram, views.gram)
    assert np.trace(views.posterior.cov) != pytest.approx(np.trace(whole.posterior.cov), rel=0.1)
    # A single agent sees all, so that both are the same.
    params = partial_views.Params()
    alone = partial_views.build(params, 1, CONSECUTIVE, stream, None)
    np.testing.assert_allclose(alone.posterior.mean, whole.posterior.mean, atol=1e-10)
    np.testing.assert_allclose(alone.posterior.cov, whole.posterior.cov, atol=1e-12)


@pytest.mark.parametrize(("views", "agents"), [("labels", 5), ("quarters", 4)])
def test_softmax_has_the_curvature_of_its_gradient(views, agents):
    problem = softmax_digits.build(
        softmax_digits.Params(views=views), agents, CONSECUTIVE, stream, None
    )
    rng = np.random.default_rng(3)
    x, v = 0.3 * rng.standard_normal((2, 2, agents, problem.dim))
    step = 1e-5
    slope = (problem.gradient(x + step * v) - problem.gradient(x - step * v)) / (2 * step)
    np.testing.assert_allclose(problem.hessian_product(x, v), slope, rtol=1e-5, atol=1e-5)


def test_agents_have_two_digits_or_a_quarter_of_all():
    labels, quarters = (
        softmax_digits.build(softmax_digits.Params(views=v), n, CONSECUTIVE, stream, None).data
        for v, n in (("labels", 5), ("quarters", 4))
    )
    for agent in range(5):
        held = labels.targets[agent, : labels.counts[agent]]
        assert set(held) == {2 * agent, 2 * agent + 1}
    assert quarters.counts.tolist() == [1437] * 4
    seen = (quarters.features != 0).any(axis=1)
    assert (seen.sum(axis=0)[:-1] <= 1).all() and seen[:, -1].all()
    whole = quarters.features.sum(axis=0)[:, :-1]
    np.testing.assert_array_equal(np.unique(whole), np.arange(17) / 16)
    with pytest.raises(ConcordError, match="for 4 agents, not 5"):
        softmax_digits.check(softmax_digits.Params(views="quarters"), 5)


def test_weights_of_the_code_are_dense():
    params = inverse_laplacian.Params()
    weights = inverse_laplacian.weights(params, 5)
    np.testing.assert_allclose(weights.sum(axis=0), 1)
    np.testing.assert_allclose(weights, weights.T)
    assert weights.min() > 0 and len(inverse_laplacian.graph(params, 5)) == 10
    # (I + L) W = I: what an agent has is what it hears, and what its neighbors differ by.
    assert 2 * weights[0, 0] - weights[1, 0] == pytest.approx(1)
