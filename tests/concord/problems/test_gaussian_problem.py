"""The Gaussian problem and its dial, which moves agents and leaves the posterior."""

import numpy as np
import pytest

from concord.errors import ConcordError
from concord.problems.from_options import from_options
from concord.problems.kinds import gaussian


def build(agents=5, **options):
    return from_options(gaussian)(agents, **options)


DIALS = [(0.0, 0.0), (1.0, 0.0), (10.0, 0.0), (0.0, 0.5), (10.0, 3.0)]


@pytest.mark.parametrize("dial", DIALS)
@pytest.mark.parametrize(("condition", "dim"), [(1, 1), (10, 2), (1e4, 20)])
@pytest.mark.parametrize("agents", [2, 5, 16])
def test_the_dial_leaves_the_posterior_where_it_is(dial, condition, dim, agents):
    """In posterior standard deviations, to 1e-11: agents' potentials add up to f."""
    zeta, eta = dial
    options = {"condition": condition, "dim": dim}
    plain = build(2, **options)
    problem = build(agents, heterogeneity=zeta, curvature_heterogeneity=eta, **options)
    law = problem.posterior
    np.testing.assert_array_equal(law.mean, plain.posterior.mean)
    np.testing.assert_array_equal(law.cov, plain.posterior.cov)
    root = np.linalg.cholesky(law.cov)
    precision = root.T @ problem.gram.sum(axis=0) @ root
    np.testing.assert_allclose(precision, np.eye(dim), rtol=0, atol=1e-11)
    slope = root.T @ (problem.gram.sum(axis=0) @ law.mean - problem.shift.sum(axis=0))
    np.testing.assert_allclose(slope, 0, rtol=0, atol=1e-11)


def test_the_condition_number_is_that_of_the_covariance():
    values = np.linalg.eigvalsh(build(condition=300, dim=7).posterior.cov)
    np.testing.assert_allclose(values, np.geomspace(1 / 300, 1, 7), rtol=1e-12)


@pytest.mark.parametrize("zeta", [1.0, 10.0])
def test_agents_own_minimizers_are_so_many_standard_deviations_away(zeta):
    problem = build(16, condition=100, dim=3, heterogeneity=zeta)
    minimizers = np.linalg.solve(problem.gram, problem.shift[..., None])[..., 0]
    away = np.linalg.solve(
        np.linalg.cholesky(problem.posterior.cov), (minimizers - problem.posterior.mean).T
    )
    assert np.sqrt((away**2).mean()) == pytest.approx(zeta, rel=1e-10)
    np.testing.assert_allclose(away.mean(axis=1), 0, atol=1e-10 * zeta)


def test_a_single_agent_cannot_differ():
    assert build(1).posterior.mean.shape == (2,)
    with pytest.raises(ConcordError, match="heterogeneity 2 is for two agents or more"):
        build(1, heterogeneity=2.0)
    with pytest.raises(ConcordError, match=r"condition: 0\.5 does not fit; give"):
        build(condition=0.5)
