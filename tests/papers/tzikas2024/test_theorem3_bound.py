"""Theorem 3: its bound, and the exact law that it bounds."""

from dataclasses import replace

import numpy as np
import pytest

import everything
from concord.errors import ConcordError
from concord.laws.gaussian import Gaussian
from concord.laws.law import law_of_run
from concord.laws.wasserstein import w2
from concord.networks.construction import network
from concord.networks.network import Network
from concord.samplers.admm import ADMM
from concord.samplers.de_sgld import DESGLD
from concord.sampling.schedules import Schedule
from measurements import DUE, RING, ring_measurement, values_by_iteration
from variants import problem

posterior_covariance = everything.kind("metrics", "posterior_covariance")
theorem3 = everything.kind("metrics", "theorem3")
theorem3_bound = everything.kind("metrics", "theorem3_bound")
D_ADMMS = ADMM(penalty=5.0)


def incidence(net) -> tuple[np.ndarray, np.ndarray]:
    """Return the unoriented and the oriented incidence matrix of the directed graph, (N, 2 E)."""
    arcs = [*net.edges, *((j, i) for i, j in net.edges)]
    first, second = (np.eye(net.agents)[[arc[end] for arc in arcs]].T for end in (0, 1))
    return first + second, first - second


@pytest.mark.parametrize("kind", ["ring", "complete", "star"])
def test_the_bound_of_theorem3_follows_from_its_recursion(kind):
    """From the incidence matrices, by (16) and (80) step by step, with the noise's moments."""
    net = network(kind, 5)
    prob = problem(5, 2, points=1000)
    m = replace(ring_measurement(D_ADMMS), problem=prob, network=net)
    found = values_by_iteration(theorem3_bound, m)
    constants = theorem3.compute_theorem(prob, net)
    assert constants.rate < 1
    rho, strong, smooth = found["theorem3_penalty", 20], constants.strong, constants.smooth
    plus, minus = incidence(net)
    values = [np.linalg.svd(matrix, compute_uv=False) for matrix in (plus, minus)]
    most, least = values[0][0] ** 2, values[1][values[1] > 1e-9].min() ** 2
    # The penalty and kappa of the proof give both parts of (20) the same, largest delta.
    kappa = np.geomspace(1.001, 100, 100_000)
    parts = (
        (kappa - 1) * least / (kappa * most),
        strong / (rho / 4 * most + kappa * smooth**2 / (rho * least)),
    )
    a = constants.rate
    delta = (2 * strong + 1) / (2 * strong * a) - 1
    assert delta == pytest.approx(np.minimum(*parts).max(), rel=1e-3)
    curvature, slope = prob.gram.sum(axis=0), prob.shift.sum(axis=0)
    target = Gaussian(np.linalg.solve(curvature, slope), np.linalg.inv(curvature))
    beta = np.linalg.pinv(minus) @ (prob.gram @ target.mean - prob.shift)
    # Z^(0) - Z* = M_+^T (X^(0) - X*) / 2 with X^(0) ~ N(0, I), so the mean of its square is
    mean = plus.T @ np.tile(-target.mean, (5, 1)) / 2
    spread = 2 * np.sum((plus / 2) ** 2)
    distance = np.sqrt(rho * (np.sum(mean**2) + spread) + np.sum(beta**2) / rho)
    degrees = net.degrees.astype(float)
    square = 2 * np.sum(degrees**2)
    wide = (1 / (np.sqrt(2) * strong) + np.sqrt(2)) * np.sqrt(square)
    b, c = 1 / (2 * (1 + delta)), 2 * np.sqrt(2) * delta / ((1 + delta) * least)
    top = values[1].max() ** 2
    d, e = rho * top / 2, 2 * delta / ((1 + delta) * rho * least)
    y = 2 * b * wide / np.sqrt(strong) + c * np.sqrt(square) * (
        np.sqrt(top * rho) + d / np.sqrt(strong)
    )
    r = np.sqrt(2) * b * wide * np.sqrt(square) / strong + b * wide**2
    r += square * (b / (2 * strong**2) + np.sqrt(2) * c * d / strong - e)
    last = np.sqrt(
        sum(w2(target.mean, (n**2 / (2 * strong**2)) * np.eye(2), target) ** 2 for n in degrees)
    )
    for k in range(1, 21):
        bound = distance / np.sqrt(strong) + np.sqrt(square) / (np.sqrt(2) * strong) + last
        if k in (1, 20):
            # The theorem adds the noise of all later steps; the recursion that of k - 1.
            assert bound < found["theorem3_bound", k]
            assert found["theorem3_distance", k] < bound
        distance = np.sqrt(a) * distance + y / np.sqrt(a) + np.sqrt(abs(r))
    still = (y / np.sqrt(a) + np.sqrt(abs(r))) / (np.sqrt(strong) * (1 - np.sqrt(a)))
    first = found["theorem3_bound", 1]
    at_first = np.sqrt(rho * (np.sum(mean**2) + spread) + np.sum(beta**2) / rho) / np.sqrt(strong)
    rest = np.sqrt(square) / (np.sqrt(2) * strong) + last
    assert first == pytest.approx(at_first + still + rest, rel=1e-9)
    fallen = first - found["theorem3_bound", 20]
    assert fallen == pytest.approx(at_first * (1 - np.sqrt(a) ** 19), rel=1e-9)


def test_the_distance_of_theorem3_is_that_of_all_agents_together():
    """Farther than the agents one by one, and of the law at the theorem's penalty."""
    m = ring_measurement(D_ADMMS)
    found = values_by_iteration(theorem3_bound, m)
    law = law_of_run(replace(m, sampler=ADMM(penalty=found["theorem3_penalty", 20])))
    target = m.problem.posterior
    each = np.sqrt((w2(law.mean, law.cov, target) ** 2).sum(axis=1))
    at = [found["theorem3_distance", k] for k in DUE]
    assert at[0] == pytest.approx(each[0], rel=1e-12)
    assert (each[1:] < at[1:]).all()


def test_theorem3_claims_nothing_where_its_condition_fails():
    few = replace(ring_measurement(D_ADMMS), problem=problem(5, 2, points=3))
    assert theorem3.compute_theorem(few.problem, RING).rate >= 1
    found = values_by_iteration(theorem3_bound, few)
    assert all(found["theorem3_bound", k] == np.inf for k in DUE)


def test_the_largest_entry_of_the_posterior_covariance():
    m = ring_measurement(D_ADMMS)
    (row,) = posterior_covariance.rows(m)
    cov = np.linalg.inv(m.problem.gram.sum(axis=0))
    assert (row.metric, row.chance) == ("posterior_covariance_max", False)
    assert row.value == pytest.approx(np.abs(cov).max(), rel=1e-12)


@pytest.mark.parametrize(
    "changes",
    [
        {"sampler": ADMM(penalty=5.0, noise=False)},
        {"network": Network(RING.graph, order="in_place")},
        {"sampler": DESGLD(Schedule(0.002))},
        {"sampler": everything.kind("samplers", "admm_in_place")(penalty=5.0)},
        {"network": network("no_edges", 5)},
    ],
    ids=["no noise", "in place", "no D-ADMMS", "in turn", "no edges"],
)
def test_the_theorem_is_refused_for_all_it_says_nothing_of(changes):
    with pytest.raises(ConcordError, match="metric theorem3_bound needs D-ADMMS"):
        list(theorem3_bound.rows(replace(ring_measurement(D_ADMMS), **changes)))
