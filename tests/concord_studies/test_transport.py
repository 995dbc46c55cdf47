"""Distances between draws and a posterior on a grid."""

import numpy as np
import pytest
import scipy.optimize
import scipy.stats

from concord.laws import quadrature
from concord_studies import transport


def normal(mean=(0.0, 0.0), sd=(1.0, 2.0), cells: int = 800) -> quadrature.Grid:
    return quadrature.from_log_density(
        lambda a, b: -0.5 * (((a - mean[0]) / sd[0]) ** 2 + ((b - mean[1]) / sd[1]) ** 2),
        ((-30, 30), (-30, 30)),
        cells,
    )


def test_shift_and_spread_in_one_dimension() -> None:
    law = normal()
    levels = (np.arange(5000) + 0.5) / 5000
    exact = scipy.stats.norm.ppf(levels)
    # The quantiles themselves are nearest; each stands for its 1/5000 of the mass.
    assert transport.marginal_w1(exact, law, 0) < 1e-3
    assert transport.marginal_w1(exact + 0.7, law, 0) == pytest.approx(0.7, abs=1e-3)
    spread = 0.5 * np.sqrt(2 / np.pi)  # E|1.5 z - z|
    assert transport.marginal_w1(1.5 * exact, law, 0) == pytest.approx(spread, rel=5e-3)


def test_marginal_distance_of_few_draws_is_the_area_between_the_functions() -> None:
    law = normal()
    draws = np.array([[-0.4, 1.1, 0.2], [2.0, 2.0, -1.0]])
    x = np.linspace(-12, 12, 400_001)
    for row in draws:
        empirical = (row[:, None] <= x).mean(axis=0)
        area = np.abs(empirical - scipy.stats.norm.cdf(x)).sum() * (x[1] - x[0])
        assert transport.marginal_w1(row, law, 0) == pytest.approx(area, rel=2e-3)
    both = transport.marginal_w1(draws, law, 0)
    assert both == pytest.approx([transport.marginal_w1(row, law, 0) for row in draws])


def test_exact_distances_between_points() -> None:
    rng = np.random.default_rng(1)
    a = rng.standard_normal((40, 2))
    shifted = transport.costs(a, a + np.array([3.0, 4.0]))
    assert transport.distances(shifted, (1, 2)) == pytest.approx([5.0, 5.0])
    b = rng.standard_normal((40, 2))
    cost = np.linalg.norm(a[:, None] - b[None], axis=-1)
    rows, columns = scipy.optimize.linear_sum_assignment(cost)
    assert transport.distances(transport.costs(a, b), (1,))[0] == pytest.approx(
        cost[rows, columns].mean(), abs=1e-9
    )
    rows, columns = scipy.optimize.linear_sum_assignment(cost**2)
    expected = np.sqrt((cost[rows, columns] ** 2).mean())
    assert transport.distances(cost, (2,))[0] == pytest.approx(expected, abs=1e-9)
    b[3] = np.nan
    assert transport.distances(transport.costs(a, b), (1, 2)) == [np.inf, np.inf]


def test_thinning_is_even() -> None:
    rows = np.arange(10, 101)
    few = transport.thin(rows, 9)
    assert len(few) == 9 and few[-1] == rows[-1]
    assert np.ptp(np.diff(few)) <= 1
    assert transport.thin(rows, 10_000) is rows
