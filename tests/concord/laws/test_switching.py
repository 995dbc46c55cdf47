"""Moments of updates with a random choice: closed forms, and the affine special case."""

import numpy as np
import pytest

import concord
from concord.laws import exact
from concord.laws.read_off import StepReader
from concord.laws.switching import Choices
from concord.problems.quadratic_problem import QuadraticProblem
from concord.samplers.local_sgld import LocalSGLD


def scalar(probability, matrix, offset, noise) -> Choices:
    a, b, q = (np.array(values, dtype=float) for values in (matrix, offset, noise))
    return Choices(np.array(probability), a[:, None, None], b[:, None], q[:, None, None])


def two_by_two(seed: int, choices: int) -> Choices:
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((choices, 2, 2))
    probability = rng.dirichlet(np.ones(choices))
    matrix = 0.5 * rng.standard_normal((choices, 2, 2))
    return Choices(
        probability, matrix, rng.standard_normal((choices, 2)), factors @ factors.swapaxes(1, 2)
    )


def test_the_limit_of_a_scalar_by_hand() -> None:
    """m = E b/(1 - E a), and E x^2 (1 - E a^2) = E q + E b^2 + 2 m E ab."""
    p, a, b, q = [0.25, 0.75], [0.9, -0.4], [1.0, 2.0], [0.3, 0.1]
    mean, cov = scalar(p, a, b, q).stationary()

    def average(values):
        return float(np.dot(p, values))

    expected = average(b) / (1 - average(a))
    square = average(q) + average(np.square(b)) + 2 * expected * average(np.multiply(a, b))
    assert mean == pytest.approx(expected)
    assert cov == pytest.approx(square / (1 - average(np.square(a))) - expected**2)


def test_one_choice_is_an_affine_update() -> None:
    one = two_by_two(1, 1)
    law = exact.stationary(exact.Affine(one.matrix[0], one.offset[0], one.noise[0]))
    for part, expected in zip(one.stationary(), law, strict=True):
        assert np.allclose(part, expected, rtol=1e-9)
    assert one.radius() == pytest.approx(exact.spectral_radius(one.matrix[0]))


def test_the_limit_is_that_of_the_recursion() -> None:
    choices = two_by_two(2, 3)
    law = np.array([5.0, -3.0]), 4 * np.eye(2)
    for _ in range(300):
        law = choices.apply(*law)
    for part, expected in zip(choices.stationary(), law, strict=True):
        assert np.allclose(part, expected, rtol=1e-9)


def test_a_mean_that_settles_is_not_enough() -> None:
    """E a = 0.5, but E a^2 > 1: the variance grows without end."""
    wild = scalar([0.5, 0.5], [1.6, -0.6], [0.0, 0.0], [1.0, 1.0])
    assert wild.radius() > 1
    assert wild.stationary() is None


@pytest.mark.parametrize("options", [{}, {"renewal": 0.2, "common_noise": 0.5}])
def test_chains_that_average_and_renew_at_random_have_the_law(options) -> None:
    """Within 4.5 standard errors, which are those of the chains' own moments."""
    gram = np.array([np.diag([1.0, 2.0]), np.diag([3.0, 1.0]), [[2.0, 0.5], [0.5, 1.0]]])
    problem = QuadraticProblem(gram, np.array([[3.0, -1.0], [0.0, 4.0], [-5.0, 1.0]]))
    sampler, network = LocalSGLD(0.1, communication=0.3, **options), concord.network("server", 3)
    law = StepReader(sampler, problem, network).read_step(1).choices.stationary()
    mean, cov = law[0][:6], law[1][:6, :6]  # of all clients' positions
    trace = concord.sample(
        sampler, problem, network, iterations=150, chains=4000, record={"every": 150}
    )
    away = trace["x"][:, -1].reshape(-1, 6) - mean
    for drawn, exactly in ((away, 0.0), (away[:, :, None] * away[:, None, :], cov)):
        error = drawn.std(axis=0) / np.sqrt(len(drawn))
        assert (np.abs(drawn.mean(axis=0) - exactly) < 4.5 * error).all()
