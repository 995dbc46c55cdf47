"""Layered ULA as released: the variance of its errors, and the bits that its code counts."""

import numpy as np
import pytest
from scipy.integrate import quad

import everything
from concord.networks.construction import network
from concord.problems.quadratic_problem import QuadraticProblem
from concord.sampling.schedules import Schedule
from steps import steps_of

CHAINS, GAMMA, LEVELS = 20_000, 0.01, 4
RELEASED = everything.kind("samplers", "layered_ula_released")


def share_of_widths():
    """The variance of uniform errors within layers of N(0, 1), by an integral over layers."""

    def integrand(y):
        width = np.sqrt(-2 * np.log1p(-y)) + np.sqrt(-2 * np.log(y))
        return width**3 / (12 * np.sqrt(2 * np.pi))

    return quad(integrand, 0, 1)[0]


def test_errors_have_a_part_of_the_variance_that_the_server_takes_off():
    """One agent whose gradient is (M, 1): with its own noise a step varies by less than 2 gamma."""
    largest, sigma = 40.0, 1 / (2 * (LEVELS - 2) * np.sqrt(np.log(4)))
    problem = QuadraticProblem(np.eye(2)[None], np.array([[-largest, -1.0]]))
    sampler = RELEASED(step_size=Schedule(GAMMA), levels=LEVELS)
    x0 = np.zeros((CHAINS, 1, 2))
    moved = steps_of(sampler, problem, network("no_edges", 1), 1, x0=x0).x[1][:, 0]
    share = share_of_widths()
    assert share == pytest.approx(0.536, abs=5e-4)
    quantized = GAMMA**2 * sigma**2
    expected = 2 * GAMMA - quantized * (1 - share) * (largest**2 - 1)
    assert quantized * largest**2 < 2 * GAMMA  # so that the server adds something
    error = expected * np.sqrt(2 / CHAINS)
    assert np.abs(moved.var(axis=0, ddof=1) - expected).max() < 5 * error
    assert 2 * GAMMA - expected > 20 * error


def test_bits_are_counted_as_the_code_does():
    """Places of the first and the second binary digit, at least one each, and the sign."""
    count = __import__(RELEASED.__module__, fromlist=["count_digits"]).count_digits
    assert count(np.array([-1.0, 0, 1, 2, 3, 6, 7, 12])).tolist() == [2, 2, 2, 3, 3, 4, 5, 6]
