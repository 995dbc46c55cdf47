"""D-ADMMS and C-ADMM against their equations, and their stationary law."""

import itertools
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from chains import chain

from concord.errors import ConcordError
from concord.laws import exact
from concord.laws.gaussian import w2
from concord.networks import topology
from concord.options import build
from concord.problems.kinds import linear_regression, logistic_regression
from concord.samplers import admm
from concord.sampling.partition import Partition

CONSECUTIVE = Partition.parse({"kind": "consecutive"}, "partition")
ORDERS = ("simultaneous", "in_place")


def stream(label: str) -> np.random.Generator:
    return np.random.default_rng([len(label), 3])


def linear(agents: int, dim: int = 2, **options):
    options = {"points_per_agent": 12, "noise_sd": 2.0, "prior_variance": 10.0, **options}
    params = build(linear_regression.Params, {"dim": dim, **options}, "problem")
    return linear_regression.build(params, agents, CONSECUTIVE, stream, Path())


def logistic(agents: int, dim: int = 3):
    options = {"points_per_agent": 15, "dim": dim, "prior_scale": 10.0, "feature_variance": 4.0}
    params = build(logistic_regression.Params, options, "problem")
    return logistic_regression.build(params, agents, CONSECUTIVE, stream, Path())


def run(problem, graph, params, chains: int, iterations: int):
    return chain(admm, problem, graph, params, iterations, chains)


def options(**given) -> admm.Params:
    return build(admm.Params, {"penalty": 0.7, **given}, "sampler")


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("pulls_to", ["neighbors", "first_agents"])
@pytest.mark.parametrize("kind", ["ring", "complete", "star", "no_edges"])
@pytest.mark.parametrize("make", [linear, logistic])
def test_every_step_satisfies_the_equations(make, kind, pulls_to, order):
    """Optimality of the primal step and the dual step, agent by agent, with the noise known."""
    problem, graph = make(5), topology.build(kind, 5)
    params = options(update_order=order, primal_neighbors=pulls_to)
    rho, iterations, chains = 0.7, 3, 2
    path = run(problem, graph, params, chains, iterations)
    rng, shape = np.random.default_rng(1), (chains, 5, problem.dim)
    p = np.zeros(shape)
    gradient = problem.gradient(chains)
    for old, new in itertools.pairwise(path):
        w = rng.standard_normal(shape)
        slope = gradient(new, np.empty(shape))
        for i in range(5):
            degree = len(graph.neighbors[i])
            others = range(degree) if pulls_to == "first_agents" else graph.neighbors[i]
            residual = slope[:, i] + p[:, i]
            for j in others:
                seen = new if order == "in_place" and j < i else old
                middle = (old[:, i] + seen[:, j]) / 2 - np.sqrt(2) / (2 * rho) * w[:, i]
                residual = residual + 2 * rho * (new[:, i] - middle)
            # Newton stops at 1e-10 in the gradient.
            assert np.abs(residual).max() < 2e-10
        for i in range(5):
            for j in graph.neighbors[i]:
                p[:, i] += rho * (new[:, i] - new[:, j])


def test_without_noise_it_is_c_admm_and_finds_the_minimizer():
    problem, graph = linear(6), topology.build("ring", 6)
    path = run(problem, graph, options(noise=False, penalty=2.0), 3, 400)
    mean = np.broadcast_to(problem.posterior.mean, path[-1].shape)
    np.testing.assert_allclose(path[-1], mean, atol=1e-9)


def test_without_edges_all_of_them_find_the_local_minimizers_at_once():
    """The closed form of end W2 per agent: a point mass at the minimizer of f_i."""
    problem, graph = linear(5), topology.build("no_edges", 5)
    local = np.linalg.solve(problem.gram, problem.shift[..., None])[..., 0]
    target = problem.posterior
    distance = np.sqrt(((local - target.mean) ** 2).sum(axis=1) + np.trace(target.cov))
    ends = []
    for given in ({"noise": False}, {}, {"update_order": "in_place"}):
        path = run(problem, graph, options(**given), 4, 7)
        np.testing.assert_allclose(path[1:], np.broadcast_to(local, path[1:].shape), atol=1e-12)
        ends.append(path[-1])
        fitted = w2(path[-1].mean(axis=0), np.zeros((5, 2, 2)), target)
        np.testing.assert_allclose(fitted, distance, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(ends[0], ends[1])


def test_the_stationary_law_of_d_admms_exists_apart_from_what_it_conserves():
    """The sum of the dual variables is conserved; the rest contracts at the paper's penalty."""
    problem, graph = linear(6), topology.build("ring", 6)
    update = admm.affine(problem, graph, options(penalty=5.0)).at(0)
    assert exact.spectral_radius(update.matrix) == pytest.approx(1.0, abs=1e-9)
    reduced, basis = exact.restrict(update)
    assert basis.shape == (24, 22)
    assert exact.spectral_radius(reduced.matrix) < 1
    mean, _ = exact.stationary(update)
    # Unbiased: the mean follows C-ADMM, whose fixed point is the minimizer.
    np.testing.assert_allclose(
        mean[:12].reshape(6, 2), np.broadcast_to(problem.posterior.mean, (6, 2)), atol=1e-9
    )


@pytest.mark.parametrize("order", ORDERS)
def test_a_thousand_agents_need_no_dense_matrix(order):
    """A long ring takes less memory than one byte for each pair of agents."""
    agents, params = 1000, options(update_order=order)
    problem, graph = linear(agents), topology.build("ring", agents)
    run(problem, graph, params, 1, 1)  # imports what it needs
    tracemalloc.start()
    try:
        path = run(problem, graph, params, 1, 3)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert np.isfinite(path).all()
    assert path.nbytes < peak < agents**2


def test_unsuited_combinations_are_refused():
    with pytest.raises(ConcordError, match="no proximal step"):
        admm.check(object(), topology.build("ring", 4), options())  # type: ignore[arg-type]
