"""The Gaussian that fits a posterior, from gradients: closed forms, and what it refuses."""

import numpy as np
import pytest

import concord
from concord.errors import ConcordError
from concord.problems.gaussian_fit import find_mode, fit, gradient_field, linearize, normal_points


def test_the_fit_of_a_quadratic_potential_is_its_posterior():
    rng = np.random.default_rng(1)
    roots = rng.standard_normal((4, 3, 3))
    H, b = roots @ roots.swapaxes(1, 2), rng.standard_normal((4, 3))
    exact = concord.problems.quadratic(H=H, b=b)
    blind = concord.Problem(lambda x: np.einsum("ade,cae->cad", H, x) - b, agents=4, dim=3)
    normal_fit = fit(blind, start=2.0)
    assert normal_fit.converged
    np.testing.assert_allclose(normal_fit.mean, exact.posterior.mean, atol=1e-9)
    np.testing.assert_allclose(normal_fit.cov, exact.posterior.cov, rtol=1e-8)
    np.testing.assert_allclose(normal_fit.hessians, H, atol=1e-8)


def test_the_fit_of_exponential_gradients_solves_its_equations():
    """f = e^x - a x: E e^x = a and 1/v = E e^x, so m = log a - v / 2 and v = 1 / a."""
    problem = concord.Problem(lambda x: (np.exp(x) - 8) / 2, agents=2, dim=1)
    normal_fit = fit(problem)
    assert normal_fit.cov[0, 0] == pytest.approx(1 / 8, rel=5e-3)  # of 256 points
    assert normal_fit.mean[0] == pytest.approx(np.log(8) - 1 / 16, abs=1e-3)
    assert normal_fit.mode[0] == pytest.approx(np.log(8), abs=1e-6)


def test_points_have_the_moments_of_normal_numbers():
    z = normal_points(64, 5)
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(z.T @ z / len(z), np.eye(5), atol=1e-12)
    assert (z**4).mean() == pytest.approx(3, rel=0.15)


def test_linearized_gradients_of_agents_are_exact_where_they_are_affine():
    rng = np.random.default_rng(2)
    gram, shift = np.array([[[2.0]], [[-1.0]]]), np.array([[3.0], [0.5]])
    at = gradient_field(concord.Problem(lambda x: gram[:, :, 0] * x - shift, agents=2, dim=1))
    mean, cov = rng.standard_normal((3, 2, 1)), rng.uniform(0.1, 1, (3, 2, 1, 1))
    affine = linearize(at, mean, cov, 64)
    np.testing.assert_allclose(affine[0], np.broadcast_to(gram, (3, 2, 1, 1)), atol=1e-12)
    np.testing.assert_allclose(affine[1], np.broadcast_to(shift, (3, 2, 1)), atol=1e-12)


def test_newton_goes_downhill_from_where_the_potential_is_concave():
    at = gradient_field(concord.Problem(lambda x: x**3 - x, agents=1, dim=1))  # modes at -1 and 1
    assert find_mode(at, 1, np.array([0.1]))[0][0] == pytest.approx(1.0)


def test_units_of_coordinates_do_not_make_a_mode_flat():
    """A slope over calendar years, say: the condition number is 4e13."""
    units = np.array([1e-3, 1e3])
    H = np.array([[1.0, 0.95], [0.95, 1.0]]) * np.outer(units, units)
    normal_fit = fit(concord.Problem(lambda x: x @ H / 2, agents=2, dim=2))
    assert normal_fit.converged
    np.testing.assert_allclose(
        normal_fit.cov * np.outer(units, units),
        np.linalg.inv([[1.0, 0.95], [0.95, 1.0]]),
        rtol=1e-6,
    )


@pytest.mark.parametrize(
    ("gradient", "says"),
    [
        (lambda x: np.ones_like(x), "no mode was found"),
        (lambda x: x * np.nan, "no mode was found"),
        (lambda x: np.stack([x[..., 0], 0 * x[..., 1]], axis=-1), "singular .* no proper prior"),
        (lambda x: np.stack([x[..., 0], x[..., 1] ** 3 - x[..., 1]], axis=-1), "a saddle at .0, 0"),
    ],
)
def test_what_has_no_mode_is_refused_in_one_sentence(gradient, says):
    with pytest.raises(ConcordError, match=says):
        fit(concord.Problem(gradient, agents=2, dim=2))
