"""Metrics of parayil2020 on traces whose answer is known."""

from types import SimpleNamespace

import numpy as np
import ot
import pytest

import everything
from concord import streams
from concord.errors import ConcordError
from concord.laws.gaussian import Gaussian
from concord.options import build
from concord.problems.kinds import tied_mixture
from concord_studies.transport import costs
from measurements import array_measurement, intervals, two_modes

accuracy_settling = everything.kind("metrics", "accuracy_settling")
consensus_rate = everything.kind("metrics", "consensus_rate")
kl = everything.kind("metrics", "kl")
sinkhorn = everything.kind("metrics", "sinkhorn")
two_modes_metric = everything.kind("metrics", "two_modes")


def test_the_exponent_of_an_exact_power_law_is_found():
    """Noise of 5 % on 20 chains: the exponent within 0.01, inside its interval."""
    draw = np.arange(0, 200_001, 200)
    rng = np.random.default_rng(0)
    errors = (draw + 1.0) ** -0.5 * (1 + 0.05 * rng.standard_normal((20, len(draw))))
    found = intervals(consensus_rate.rows(array_measurement({"consensus_error": errors}, draw)))
    value, lo, hi = found[200_000, "network", "consensus_exponent"]
    assert value == pytest.approx(0.5, abs=0.01) and lo < value < hi
    assert found[200_000, "network", "consensus_exponent_bound"][0] == pytest.approx(0.45)
    assert found[200_000, "network", "consensus_exponent_ratio"][0] == pytest.approx(0.5)
    bins = {k: row[0] for (k, _, name), row in found.items() if name == "consensus_binned"}
    for k, error in bins.items():
        assert error == pytest.approx((k + 1.0) ** -0.5, rel=0.05)


def test_settling_and_disagreement():
    """Two agents; the network's mean comes within half a point at 300 and stays there."""
    draw = np.array([0, 100, 200, 300, 400])
    network = np.array([0.5, 0.839, 0.8, 0.836, 0.84])
    values = np.stack([network + 0.01, network - 0.01], axis=1)[None].repeat(4, axis=0)
    found = intervals(
        accuracy_settling.rows(array_measurement({"accuracy": values}, draw, agents=(0, 1)))
    )
    assert found[400, "network", "accuracy_settled"] == (300, 300, 300)
    assert found[400, "network", "accuracy_apart"][0] == pytest.approx(0.02)
    assert found[200, "network", "accuracy_network"][0] == pytest.approx(0.8)


def test_sinkhorn_of_two_points_is_the_closed_form():
    """Two points each, at distance c: P = softmax; <P, M> = c e^(-c/r) / (1 + e^(-c/r))."""
    points, distance = np.array([[0.0, 0.0], [0.3, 0.0]]), 0.3
    weight = np.exp(-distance / 0.1)
    expected = distance * weight / (1 + weight)
    assert sinkhorn.sinkhorn(costs(points, points), 0.1) == pytest.approx(expected, rel=1e-5)


def double(cost):
    """The plan's cost, converged much further."""
    weights = [np.full(size, 1 / size) for size in cost.shape]
    plan = ot.sinkhorn(*weights, cost, 0.1, numItermax=100_000, stopThr=1e-12, warn=False)
    return np.sum(plan * cost)


@pytest.mark.parametrize("seed", range(3))
def test_single_precision_meets_the_stated_accuracy(seed):
    law, rng = two_modes(), np.random.default_rng(seed)
    a, b = law.sample(400, rng).reshape(2, 200, 2)
    exact, cost = double(costs(a, b)), costs(a, b)
    assert sinkhorn.sinkhorn(cost, 0.1) == pytest.approx(exact, rel=sinkhorn.ACCURACY, abs=0)


def test_points_beyond_single_precision_are_found_in_double():
    """Two points 20 away from their targets: e^(-200) is zero in single precision, 1e-87 else."""
    points = np.array([[0.0, 0.0], [0.3, 0.0]])
    cost = costs(points, points + np.array([0.0, 20.0]))
    assert np.exp(np.float32(-cost.min() / 0.1)) == 0
    expected = double(cost)
    assert sinkhorn.sinkhorn(cost, 0.1) == pytest.approx(expected, rel=sinkhorn.ACCURACY, abs=0)


def test_exact_draws_are_at_the_floor_and_shifted_ones_are_not():
    """300 draws of each of two data sets; W1 of a shift by 1 is 1 but for sampling noise."""
    grids = [two_modes(), two_modes(weight=0.5)]
    rng = np.random.default_rng(2)
    problem = SimpleNamespace(
        sets=[SimpleNamespace(reference=grid) for grid in grids],
        exact_pairs=lambda counts: [
            grid.sample(2 * count, rng).reshape(2, count, 2)
            for grid, count in zip(grids, counts, strict=True)
        ],
    )
    draw = np.arange(0, 1001)
    x = np.stack([grids[c % 2].sample(1001, rng) for c in range(4)])[:, :, None].repeat(2, axis=2)
    x[:, :, 1, 0] += 1.0
    keep = slice(None, None, 6)
    found = intervals(
        sinkhorn.rows(array_measurement({"x": x[:, keep]}, draw[keep], problem, (0, 1)))
    )
    last = int(draw[keep][-1])
    floor = found[last, "network", "w1_pooled_floor"][0]
    assert found[last, "0", "w1_pooled"][0] == pytest.approx(floor, abs=0.08)
    assert found[last, "1", "w1_pooled"][0] == pytest.approx(1.0, abs=0.2)
    assert found[last, "0", "sinkhorn"][0] > floor
    each = [found[last, "0", f"sinkhorn_set_{d}"][0] for d in range(2)]
    assert np.mean(each) == pytest.approx(found[last, "0", "sinkhorn"][0])


def test_the_floor_of_one_data_set_is_a_mean_over_pairs_of_exact_samples():
    """Ten pairs, with an interval; each agent's distance is to one sample, without one."""
    law, draw = two_modes(), np.arange(1, 51)
    x = law.sample(200, np.random.default_rng(4)).reshape(4, 50, 1, 2)
    rows = list(sinkhorn.rows(array_measurement({"x": x}, draw, SimpleNamespace(reference=law))))
    for row in rows:
        floor = row.metric.endswith("_floor")
        assert (row.lo is not None) == floor and "_set_" not in row.metric
        assert row.trials == (sinkhorn.FLOORS if floor else 1)
        if floor:
            assert row.lo < row.value < row.hi


def test_two_modes_are_counted(monkeypatch):
    """One narrow mode for points without spread; two for points of two distant groups."""
    monkeypatch.setattr(two_modes_metric, "SETS", 50)

    def share(**options):
        params = build(tied_mixture.Params, {"points": 40, **options}, "problem")
        problem = tied_mixture.mixture(params, np.zeros(40), [np.arange(40)])
        m = SimpleNamespace(
            problem=problem, iterations=3, stream=lambda label: streams.generator(1, label)
        )
        (row,) = two_modes_metric.rows(m)
        assert row.trials == two_modes_metric.SETS and row.lo <= row.value <= row.hi
        return row.value

    # Either component may be the first of two that are far apart.
    assert share(truth=(-3.0, 6.0), prior_variances=(40.0, 40.0)) == 1
    assert share(truth=(0.0, 0.0), prior_variances=(10.0, 0.01)) == 0
    with pytest.raises(ConcordError, match="tied_mixture"):
        list(two_modes_metric.rows(SimpleNamespace(problem=None)))


def test_condition_26_by_hand():
    """Four agents of Hessians 2 I: rho = 8, L = 2."""
    gram = np.stack([2 * np.eye(3)] * 4)
    largest = (8 * (3 * 0.6 - 1) / (25 * 2**4 * 0.6)) ** (1 / 3) / 16
    for factor, met in ((0.999, True), (1.001, False)):
        found = kl.condition26(gram, factor * largest, 0.6)
        assert found.holds == met
        assert found.value == pytest.approx(factor, rel=1e-12)
    assert kl.condition26(gram, largest, 0.0) is None


def test_divergence_of_gaussians():
    """In one dimension by the textbook's formula; in two coordinates twice it."""
    target = Gaussian(np.array([1.0]), np.array([[4.0]]))
    mean, sd = 0.5, 3.0
    expected = np.log(2 / sd) + (sd**2 + (mean - 1) ** 2) / (2 * 4) - 0.5
    found = kl.compute_divergence(np.array([mean]), np.array([[sd**2]]), target)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    both = Gaussian(np.ones(2), 4 * np.eye(2))
    found = kl.compute_divergence(np.full((5, 2), mean), np.stack([sd**2 * np.eye(2)] * 5), both)
    np.testing.assert_allclose(found, np.full(5, 2 * expected), rtol=1e-12)
    assert kl.compute_divergence(both.mean, both.cov, both) == pytest.approx(0, abs=1e-12)
    assert kl.compute_divergence(both.mean, np.zeros((2, 2)), both) == np.inf
