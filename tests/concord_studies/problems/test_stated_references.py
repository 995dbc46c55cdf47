"""References: moments and draws that problems state, against quadrature of their potentials."""

import math

import numpy as np
import pytest

import concord
import concord_studies  # noqa: F401  adds its kinds of problems
from concord import kinds
from concord.errors import ConcordError
from concord.laws.quadrature import from_log_density
from concord.problems.from_options import from_options
from concord.reference import reference_of


def made(kind, agents=3, **options):
    return from_options(kinds.find("problems", kind, "tests"))(agents, **options)


# Two parameters each, so that a grid is a second method; the dial is up where there is one.
DIAL = {"heterogeneity": 10.0, "curvature_heterogeneity": 3.0}
CASES = {
    "gaussian": {"condition": 30.0, **DIAL},
    "banana": {"sd": 1.3, "bend": 0.6, **DIAL},
    "funnel": {"sd": 0.8, **DIAL},
    "unknown_noise": {"points": 25, "dim": 1},
    "gamma_poisson": {"points": 12},
    "eight_schools": {},
    "tied_mixture": {"points": 20},
    "logistic_regression": {"points": 30, "feature_variance": 1.0},
}
AGENTS = {"eight_schools": 8}


def case(kind):
    return made(kind, AGENTS.get(kind, 3), **CASES[kind])


def total(problem, first, second):
    """Return -sum_i f_i on a grid, from the potentials of all agents."""
    first, second = np.broadcast_arrays(first, second)
    x = np.stack([first.ravel(), second.ravel()], axis=-1)
    values = [
        problem.potential(np.repeat(part[:, None], problem.agents, axis=1)).sum(axis=1)
        for part in np.array_split(x, 20)
    ]
    return -np.concatenate(values).reshape(first.shape)


@pytest.mark.parametrize("kind", CASES)
def test_moments_are_those_of_the_potentials_by_quadrature(kind):
    problem = case(kind)
    exact = reference_of(problem)
    draws = exact.sample(100_000, np.random.default_rng(2))
    reach = 4 * np.ptp(draws, axis=0)
    center = np.median(draws, axis=0)
    box = [(float(c - r), float(c + r)) for c, r in zip(center, reach, strict=True)]
    with np.errstate(over="ignore"):
        grid = from_log_density(lambda a, b: total(problem, a, b), (box[0], box[1]), 500)
    assert exact.draws == math.inf
    for found, wanted in zip(exact.moments(), grid.moments(), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=1e-4)
    means, variances = exact.monomials()
    other, others = grid.monomials()
    # In standard deviations: the grid's cells bring errors of their width squared.
    np.testing.assert_allclose((means - other) / np.sqrt(others), 0, atol=1e-3)
    np.testing.assert_allclose(variances, others, rtol=2e-2)


@pytest.mark.parametrize("kind", CASES)
def test_draws_have_the_moments_that_are_stated(kind):
    """Within five standard errors, which follow from the draws' own spread."""
    exact = reference_of(case(kind))
    draws = exact.sample(100_000, np.random.default_rng(3))
    values = np.concatenate([draws, draws**2], axis=1)
    means, variances = exact.monomials()
    errors = (values.mean(axis=0) - means) / np.sqrt(variances / len(values))
    assert np.abs(errors).max() < 5
    mean, cov = exact.moments()
    assert np.allclose(np.diag(cov), variances[: len(mean)], rtol=1e-9)
    centered = draws - mean
    product = centered[:, 0] * centered[:, 1]
    assert abs(product.mean() - cov[0, 1]) < 5 * product.std() / np.sqrt(len(product))


@pytest.mark.parametrize("kind", ["banana", "funnel"])
def test_the_dial_leaves_the_sum_of_all_potentials_where_it_is(kind):
    x = np.random.default_rng(0).standard_normal((50, 1, 2))
    sums = [
        made(kind, agents, **dial).potential(np.repeat(x, agents, axis=1)).sum(axis=1)
        for agents, dial in ((1, {}), (4, {}), (4, DIAL), (16, {"heterogeneity": 1.0}))
    ]
    for other in sums[1:]:
        np.testing.assert_allclose(other, sums[0], rtol=0, atol=1e-12 * (1 + np.abs(sums[0]).max()))
    differing = made(kind, 4, **DIAL)
    slopes = differing.gradient(np.repeat(x, 4, axis=1))
    assert np.ptp(slopes, axis=1).min() > 0.1  # agents do differ


def test_unknown_noise_is_conjugate():
    """In three dimensions: coefficients by least squares, the noise by its own posterior."""
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((40, 2)), rng.standard_normal(40)
    exact = concord.problems.unknown_noise(X, y, agents=4, prior_variance=3.0).reference
    rows = np.vstack([X, np.eye(2) / np.sqrt(3)])
    found, rest, *_ = np.linalg.lstsq(rows, np.concatenate([y, [0, 0]]), rcond=None)
    np.testing.assert_allclose(exact.mean[:2], found, rtol=1e-10)
    draws = exact.sample(200_000, rng)
    precision = np.exp(-draws[:, 2])  # Gamma(3 + 20, 2 + rest / 2)
    expected = 23 / (2 + rest[0] / 2)
    assert abs(precision.mean() - expected) < 5 * expected / np.sqrt(23 * 200_000)


def test_eight_schools_agree_with_nested_quadrature():
    """scipy's adaptive rule in tau, of mu's conditional Gaussian: no grid and no logarithm."""
    from scipy.integrate import quad

    from concord_studies.problems.eight_schools import EFFECTS, ERRORS

    y, squares = np.array(EFFECTS), np.array(ERRORS) ** 2

    def weigh(tau, power):
        variances = squares + tau**2
        precision = (1 / variances).sum() + 1 / 25
        mean = (y / variances).sum() / precision
        log = -0.5 * (np.log(variances) + y**2 / variances).sum() + 0.5 * mean**2 * precision
        return np.exp(log) / np.sqrt(precision) / (1 + tau**2 / 25) * (mean, 1)[power] * 1e14

    first, mass = (quad(weigh, 0, np.inf, args=(p,), epsabs=0, epsrel=1e-10)[0] for p in (0, 1))
    exact = case("eight_schools").reference.moments()[0]
    assert exact[0] == pytest.approx(first / mass, rel=1e-4)
    with pytest.raises(ConcordError, match="eight schools are 8 agents, not 5; set agents to 8"):
        made("eight_schools", 5)


def test_own_data_that_do_not_fit_are_refused():
    with pytest.raises(ConcordError, match=r"counts of shape \(2,\): give \(rows, rates\)"):
        concord.problems.gamma_poisson([1, 2], agents=2)
    with pytest.raises(ConcordError, match="some are negative"):
        concord.problems.gamma_poisson([[1], [-1]], agents=2)
    with pytest.raises(ConcordError, match="leave coefficients without a fourth moment"):
        concord.problems.unknown_noise([[1.0]], [1.0], agents=1, shape=1.0)
