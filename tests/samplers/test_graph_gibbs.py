"""Graph Gibbs: its stationary law in closed form, and the posterior as its tolerance falls."""

from dataclasses import replace

import numpy as np
import pytest

from concord.errors import ConcordError
from concord.laws import exact
from concord.metrics import Measurement, stable_step
from concord.networks import topology
from concord.samplers import graph_gibbs
from concord.sampling import initial
from concord.sampling.schedules import Schedule
from concord.sampling.trace import Trace
from variants import GRAPHS, problem


def closed_form(prob, graph, rho):
    """Mean and covariance of the graph-coupled target."""
    laplacian = np.zeros((graph.agents, graph.agents))
    for i, j in graph.edges:
        laplacian[[i, j], [i, j]] += 1
        laplacian[[i, j], [j, i]] -= 1
    precision = np.kron(laplacian / rho, np.eye(prob.dim)) + exact.block_diagonal(prob.gram)
    cov = np.linalg.inv(precision)
    return cov @ prob.shift.ravel(), cov


@pytest.mark.parametrize("graph", GRAPHS[:-1], ids=lambda g: f"{g.name}-{g.agents}")
def test_draws_have_the_graph_coupled_law(graph):
    prob = problem(graph.agents, 2)
    update = graph_gibbs.affine(prob, graph, graph_gibbs.Params(tolerance=0.1)).at(0)
    mean, cov = exact.stationary(update)
    expected = closed_form(prob, graph, 0.1)
    np.testing.assert_allclose(mean, expected[0], rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(cov, expected[1], rtol=1e-9, atol=1e-10)


def test_the_posterior_is_approached_as_the_tolerance_falls():
    prob, graph, off = problem(6, 2), GRAPHS[0], []
    for rho in (2e-3, 1e-3):
        mean, cov = exact.stationary(
            graph_gibbs.affine(prob, graph, graph_gibbs.Params(tolerance=rho)).at(0)
        )
        _, each, _, average = exact.marginals(mean, cov, 6, 2)
        off.append([np.abs(part - prob.posterior.cov).max() for part in (*each, average)])
        assert max(off[-1]) < 0.05 * prob.posterior.cov.max()
    assert (np.array(off[1]) < 0.6 * np.array(off[0])).all()


def test_small_langevin_steps_have_the_graph_coupled_law():
    prob, graph = problem(5, 2), GRAPHS[1]
    expected, found = closed_form(prob, graph, 0.5), []
    for gamma in (2e-3, 1e-3):
        params = graph_gibbs.Params(tolerance=0.5, step_size=Schedule(gamma))
        found.append(exact.stationary(graph_gibbs.affine(prob, graph, params).at(0))[1])
    first, second = (np.abs(cov - expected[1]).max() for cov in found)
    assert first < 0.05 * expected[1].max()
    assert 1.8 < first / second < 2.2


@pytest.mark.parametrize("graph", GRAPHS[:-1], ids=lambda g: f"{g.name}-{g.agents}")
def test_neighbors_have_other_colors(graph):
    classes = graph_gibbs.colors(graph)
    assert (sum(own.astype(int) for own in classes) == 1).all()
    assert not any(own[i] and own[j] for own in classes for i, j in graph.edges)
    assert len(classes) <= graph.degrees.max() + 1


def test_exact_draws_have_no_step_to_be_stable():
    m = Measurement(
        Trace({}, np.array([4]), np.arange(4)), problem(4, 2), topology.build("ring", 4),
        graph_gibbs, graph_gibbs.Params(tolerance=0.1), initial.Law("normal"), 4, None,
    )  # fmt: skip
    with pytest.raises(ConcordError, match="stable_step needs an affine sampler with a step size"):
        list(stable_step.rows(m))
    params = graph_gibbs.Params(tolerance=0.1, step_size=Schedule(0.01))
    values = {row.metric: row.value for row in stable_step.rows(replace(m, sampler_params=params))}
    assert 0.01 < values["stable.step_size"] < 0.2
