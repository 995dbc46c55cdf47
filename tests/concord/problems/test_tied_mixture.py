"""The tied-means mixture and its grid posterior."""

import numpy as np
import pytest

import concord
from concord.errors import ConcordError
from concord.problems.from_options import from_options
from concord.problems.kinds import tied_mixture
from concord.problems.kinds.tied_mixture import MEANS


def build(second_mean: str = MEANS[0], agents: int = 5, **options):
    return from_options(tied_mixture)(agents, second_mean=second_mean, **options)


def test_own_points_have_the_posterior_of_the_model() -> None:
    """At theta the posterior is the product of likelihoods and priors, up to one constant."""
    points = np.array([-1.0, 0.5, 1.0, 2.5, 3.0])
    problem = concord.problems.tied_mixture(points, agents=2, variance=1.5, grid=64)
    assert problem.counts.sum() == 5
    theta = np.random.default_rng(0).standard_normal((20, 2))
    means = np.stack([theta[:, 0], theta.sum(axis=1)])
    parts = np.exp(-((points[:, None, None] - means) ** 2) / 3).sum(axis=1)
    priors = theta[:, 0] ** 2 / 20 + theta[:, 1] ** 2 / 2
    expected = np.log(parts).sum(axis=0) - priors
    potential = problem.potential(np.repeat(theta[:, None], 2, axis=1)).sum(axis=1)
    for log in (problem.log_posterior(*theta.T), -potential):
        np.testing.assert_allclose(log - expected, (log - expected)[0], rtol=1e-12, atol=1e-12)
    for wrong, message in (([[points]], "shape"), ("text", "no array")):
        with pytest.raises(ConcordError, match=message):
            concord.problems.tied_mixture(wrong, agents=2)


@pytest.fixture(scope="module", params=MEANS)
def problem(request):
    return build(request.param)


def test_grid_is_normalized_to_a_millionth(problem) -> None:
    grid = problem.reference
    # Gauss-Legendre quadrature on the prior's own box, whose nodes the grid knows nothing of.
    nodes, weights = np.polynomial.legendre.leggauss(500)
    log = problem.log_posterior(8 * nodes[:, None], 6 * nodes[None, :])
    integral = 48 * np.einsum("i,j,ij->", weights, weights, np.exp(log - log.max()))
    row, column = np.unravel_index(grid.density.argmax(), grid.density.shape)
    first, second = grid.centers[0][row], grid.centers[1][column]
    exact = np.exp(problem.log_posterior(first, second) - log.max()) / integral
    assert grid.density[row, column] == pytest.approx(exact, rel=1e-6)
    assert grid.mass.sum() == pytest.approx(1, abs=1e-12)


def test_draws_follow_the_grid(problem) -> None:
    grid = problem.reference
    draws = grid.sample(40_000, np.random.default_rng(6))
    mean, cov = grid.moments()
    error = np.sqrt(np.diag(cov) / len(draws))
    assert (np.abs(draws.mean(axis=0) - mean) < 4 * error).all()
    edges = (np.linspace(-3, 4, 8), np.linspace(-4, 4, 9))
    expected = grid.rebin(edges)
    shares = np.histogram2d(*draws.T, bins=edges)[0] / len(draws)
    # Four binomial standard errors for each of 56 cells.
    assert (np.abs(shares - expected) < 4 * np.sqrt(expected / len(draws)) + 1e-4).all()
    for axis in range(2):
        below = (draws[:, axis] < 0.5).mean()
        exact = np.interp(0.5, grid.edges[axis], grid.cdf(axis))
        assert abs(below - exact) < 4 * np.sqrt(0.25 / len(draws))


def test_two_modes_are_told_from_one_and_can_be_asked_for() -> None:
    """Points in two clumps, theta_2 = +-4 apart, against points in one; then a drawn set."""
    apart, together = (
        concord.problems.tied_mixture(points, agents=1)
        for points in (np.repeat([-2.0, 2.0], 50), np.zeros(100))
    )
    assert apart.has_two_modes and not together.has_two_modes
    bimodal = build(modes="two")
    assert bimodal.has_two_modes
    marginal = bimodal.reference.mass.sum(axis=0)
    middle = np.abs(bimodal.reference.centers[1]) < 0.4
    sides = bimodal.reference.centers[1] > 0.4, bimodal.reference.centers[1] < -0.4
    assert marginal[middle].min() < 0.95 * min(marginal[side].max() for side in sides)


def test_two_modes_that_do_not_come_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five points as wide as this have one mode; the search for two must end."""
    monkeypatch.setattr(tied_mixture, "POINTS", 300)
    with pytest.raises(ConcordError, match=r"no draw of 60 .* two modes; .* modes: any"):
        build(modes="two", points=5, variance=100.0)
