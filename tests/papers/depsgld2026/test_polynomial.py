"""The polynomial potential on an interval, against quadrature."""

import numpy as np
import pytest

import everything
from concord import streams
from concord.sampling.partition import Partition

polynomial = everything.kind("problems", "polynomial")
EQUAL = Partition.parse({"kind": "equal"}, "partition")


def stream(what):
    return streams.generator(3, what)


def on_interval(agents=30, **options):
    return polynomial.build(polynomial.Params(**options), agents, EQUAL, stream, None)


def moments(law):
    mean, cov = law.moments()
    return mean[0], np.sqrt(cov[0, 0])


def test_the_laws_of_depsgld2026_are_those_of_quadrature_done_elsewhere():
    """Target, envelope of one chain, and what 30 agents with the whole potential tend to."""
    soften, f = polynomial.soften, polynomial.POTENTIAL
    assert moments(on_interval().reference) == pytest.approx((0.2702, 0.4960), abs=1e-4)
    assert moments(soften(f, 0.0099)) == pytest.approx((0.3230, 0.5396), abs=1e-4)
    assert moments(soften(30 * f, 3.3e-4)) == pytest.approx((0.7538, 0.1273), abs=1e-4)


def test_a_flat_density_is_uniform():
    law = polynomial.soften(np.zeros(1), 0.0)
    np.testing.assert_allclose(law.quantiles(np.array([0.1, 0.5])), [[-0.8], [0]], atol=1e-9)
    means, variances = law.monomials()  # of x and its square
    assert means == pytest.approx([0, 1 / 3], abs=1e-8)
    assert variances == pytest.approx([1 / 3, 1 / 5 - 1 / 9], rel=1e-6)
    draws = law.sample(4000, np.random.default_rng(0))
    assert abs(draws.mean()) < 4 * np.sqrt(1 / 3 / 4000)


@pytest.mark.parametrize("share", ["split", "whole"])
def test_errors_of_gradients_have_their_standard_deviation(share):
    problem = on_interval(agents=2, share=share, error_sd=0.5)
    x = np.full((1, 2, 1), 0.3)
    exact = problem.gradient(x)
    assert exact[0, 0, 0] == pytest.approx(
        (0.3 + 0.5 * 0.3**3 - 1) / (2 if share == "split" else 1)
    )
    rows = np.arange(polynomial.ERRORS)
    errors = [
        problem.batch_gradient(x, np.full((1, 2, 1), row))[0, 0, 0] - exact[0, 0, 0] for row in rows
    ]
    assert np.mean(errors) == pytest.approx(0, abs=1e-9)
    assert np.std(errors) == pytest.approx(0.5)
    every = problem.batch_gradient(x, np.tile(rows, (1, 2, 1)))
    np.testing.assert_allclose(every, exact)
