"""Metrics of the papers' theorems: whom they speak of, and what they bound."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import measurements
from concord.errors import ConcordError
from concord.laws import exact, paths
from concord.laws.gaussian import Gaussian
from concord.laws.law import law_of_run, start_of, update_of
from concord.laws.wasserstein import w2
from concord.minibatches import Batches
from concord.networks.construction import network
from concord.networks.network import Network
from concord.samplers.admm import ADMM
from concord.samplers.d_ula import DULA
from concord.samplers.de_sghmc import DESGHMC
from concord.samplers.de_sgld import DESGLD
from concord.sampling.initial import Law
from concord.sampling.schedules import Schedule
from concord.sampling.trace import Trace
from concord_arena.testing.variants import problem
from concord_studies.metrics import (
    Measurement,
    budget,
    condition1,
    consensus_rate,
    lemma12,
    posterior_covariance,
    theorem2,
    theorem3,
    theorem3_bound,
    theorem10,
    w2_point,
)

RING, DUE = network("ring", 5), np.array([0, 1, 20])
STEP = Schedule(0.002)
# Inside the conditions of Theorem 10 (mu = 8 to 14, L = 26 to 30, a ring): beta = 1e-6.
HEAVY = {"step_size": Schedule(0.02), "friction": (1 - 1e-6) / 0.02}
D_ADMMS = ADMM(penalty=5.0)
STAR = network("star", 5)
IN_PLACE = Network(RING.graph, order="in_place")


def measurement(sampler, share="split", initial=None, trace=None) -> Measurement:
    return measurements.measurement(
        trace or SimpleNamespace(agent=np.arange(5), draw=DUE),
        problem=problem(5, 2, share, points=20),
        network=RING,
        sampler=sampler,
        initial=initial or Law("normal"),
    )


def table(family, m) -> dict[tuple[str, int], float]:
    return {(row.metric, row.iteration): row.value for row in family.rows(m)}


# What a theorem says nothing of: changes of a run of DE-SGLD, and whom it does speak of.
BESIDE = {
    "D-ULA": ({"sampler": DULA(STEP, Schedule(0.2))}, theorem2),
    "DE-SGHMC": ({"sampler": DESGHMC(**HEAVY)}, theorem2),
    "mini-batches": ({"batches": Batches(batch_size=1)}, theorem2),
    "in place": ({"network": IN_PLACE}, theorem2),
    "weights not symmetric": (
        {"sampler": DESGLD(STEP, "row_stochastic"), "network": STAR},
        theorem2,
    ),
    "falling steps": ({"sampler": DESGLD(Schedule(0.002, c=1.0))}, theorem2),
    "no normal start": ({"initial": Law("laplace")}, theorem2),
    "a budget of mini-batches": ({"batches": Batches(batch_size=2)}, budget),
    **{
        f"{family.__name__}, {what}": ({"sampler": DESGHMC(**HEAVY), **changes}, family)
        for family in (theorem10, lemma12)
        for what, changes in {
            "in place": {"network": IN_PLACE},
            "weights not symmetric": {
                "sampler": DESGHMC(**HEAVY, weights="row_stochastic"),
                "network": STAR,
            },
            "batches not scaled": {"batches": Batches(batch_size=2, batch_scale="none")},
            "batches of all but one": {"batches": Batches(batch_size=2, batch_pool="all_but_last")},
        }.items()
    },
    "no noise": ({"sampler": ADMM(penalty=5.0, noise=False)}, theorem3_bound),
    "D-ADMMS in place": ({"sampler": D_ADMMS, "network": IN_PLACE}, theorem3_bound),
    "no D-ADMMS": ({}, theorem3_bound),
    "no edges": ({"sampler": D_ADMMS, "network": network("no_edges", 5)}, theorem3_bound),
}
ABOUT = {
    theorem2: "metric theorem2 needs DE-SGLD",
    budget: "metric budget needs DE-SGLD or DE-SGHMC",
    theorem10: "metric theorem10 needs DE-SGHMC.* symmetric W",
    lemma12: "metric lemma12 needs DE-SGHMC.* symmetric W",
    theorem3_bound: "metric theorem3_bound needs D-ADMMS",
}


@pytest.mark.parametrize("what", BESIDE)
def test_a_theorem_is_refused_for_all_it_says_nothing_of(what):
    changes, family = BESIDE[what]
    with pytest.raises(ConcordError, match=ABOUT[family]):
        list(family.rows(replace(measurement(DESGLD(STEP)), **changes)))


@pytest.mark.parametrize("share", ["split", "omitted", "whole"])
def test_theorem2_bounds_the_distance_to_what_the_potentials_sum_to(share):
    """exp(-sum f_i), which is the posterior only where the prior's shares add up to one."""
    m = measurement(DESGLD(STEP), share)
    found = table(theorem2, m)
    law = law_of_run(m)
    curvature, slope = m.problem.gram.sum(axis=0), m.problem.shift.sum(axis=0)
    target = Gaussian(np.linalg.solve(curvature, slope), np.linalg.inv(curvature))
    expected = w2(law.mean, law.cov, target).mean(axis=1)
    for k, value in zip(DUE, expected, strict=True):
        assert found["w2_exact_mean", k] == pytest.approx(value, rel=1e-9)
        assert value < found["theorem2_bound", k] < np.inf
    posterior = w2(law.mean, law.cov, m.problem.posterior).mean(axis=1)
    assert np.allclose(posterior, expected, rtol=1e-9) == (share == "split")


@pytest.mark.parametrize("weights", ["metropolis", "lazy_metropolis"])
def test_theorems_speak_of_the_weights_of_the_run(weights):
    """Eigenvalues of W on a ring of 5: (1 + 2 cos(2 pi j / 5)) / 3, and halfway to 1."""
    cosine = np.cos(2 * np.pi * np.arange(5) / 5)
    eigenvalues = (1 + 2 * cosine) / 3
    if weights == "lazy_metropolis":
        eigenvalues = (1 + eigenvalues) / 2
    found = table(theorem2, measurement(DESGLD(STEP, weights)))
    assert found["theorem2.lambda_N", 20] == pytest.approx(eigenvalues.min())
    assert found["theorem2.gamma_bar", 20] == pytest.approx(np.sort(np.abs(eigenvalues))[-2])
    assert all(found["w2_exact_mean", k] < found["theorem2_bound", k] for k in DUE)
    m = measurement(DESGHMC(**HEAVY, weights=weights))
    mu, L = np.linalg.eigvalsh(m.problem.gram)[:, [0, -1]].T
    most = (1 + eigenvalues.min()) / 2 / (L.max() + mu.min())
    assert found_value(table(lemma12, m), "lemma12.(4.9)") == (HEAVY["step_size"](0) ** 2 <= most)


def found_value(found, name):
    (value,) = (value for (metric, _), value in found.items() if metric == name)
    return value


@pytest.mark.parametrize("share", ["split", "omitted", "whole"])
def test_theorem10_bounds_the_distance_to_what_the_potentials_sum_to(share):
    m = measurement(DESGHMC(**HEAVY), share)
    found = table(theorem10, m)
    update = update_of(m.sampler, m.problem, RING)
    start = start_of(m, update)
    law = paths.single(update, start, 5, 2).law(DUE.tolist())
    expected = w2(law.mean, law.cov, m.problem.sampled).mean(axis=1)
    for k, value in zip(DUE, expected, strict=True):
        assert found["w2_exact_mean", k] == pytest.approx(value, rel=1e-9)
        assert value < found["theorem10_bound", k] < np.inf
        assert found["theorem10_bound", k] != found["theorem10_rederived", k] or k == 0
    # c_5 bounds both moments at every step, and one of them attains it.
    mean, cov = start
    largest = 0.0
    for k in range(3000):
        squares = (mean**2 + cov.diagonal()).reshape(2, -1).sum(axis=1)
        largest = max(largest, *squares)
        mean, cov = (
            update.at(k).matrix @ mean + update.at(k).offset,
            update.at(k).matrix @ cov @ update.at(k).matrix.T + update.at(k).noise,
        )
    assert found["theorem10.c_5", 20] == pytest.approx(largest, rel=1e-6)


def test_theorem10_claims_nothing_at_the_parameters_of_fig3():
    m = measurement(DESGHMC(Schedule(0.08), friction=15.0))
    found = table(theorem10, m)
    assert found["theorem10.1 - gamma eta", 20] == pytest.approx(-0.2)
    assert found["theorem10.beta", 20] == 0  # the condition
    assert all(found["theorem10_bound", k] == np.inf for k in DUE)


@pytest.mark.parametrize("sampler", [DESGLD(STEP), DESGHMC(STEP, friction=1.0)])
def test_the_distance_after_a_budget_is_that_of_as_many_steps(sampler):
    """DE-SGHMC with gamma = 1/eta is DE-SGLD with the square of the step: so are the numbers."""
    m = measurement(sampler)
    found = {(row.iteration, row.agent): row for row in budget.rows(m) if "w2" in row.metric}
    assert {k for k, _ in found} == set(budget.BUDGETS)
    mu = np.linalg.eigvalsh(m.problem.gram).min()
    eta = np.log(np.sqrt(400)) / (mu * 400)
    update = update_of(DESGLD(Schedule(eta)), m.problem, RING)
    law = paths.single(update, exact.initial(5, 2, (0.0, 1.0)), 5, 2).law([400])
    expected = w2(law.mean[0], law.cov[0], m.problem.posterior)
    for agent in range(5):
        assert found[400, str(agent)].value == pytest.approx(expected[agent], rel=1e-9)
    ratios = {r.iteration: r.value for r in budget.rows(m) if r.metric == "budget_ratio"}
    last = found[400, "4"].value / np.sqrt(np.log(400) / 400)
    assert ratios[400] == pytest.approx(last, rel=1e-12)


def test_a_point_is_as_far_as_the_posterior_is_wide():
    m = measurement(DESGLD(STEP))
    (row,) = w2_point.rows(m)
    target = m.problem.posterior
    assert row.value == pytest.approx(w2(target.mean, np.zeros((2, 2)), target), rel=1e-9)
    assert not row.chance


def test_a_constant_schedule_does_not_decay():
    step = Schedule(0.1, b=2.0, c=1.0, exponent=0.55)
    assert step.decay == 0.55
    for constant in (Schedule(0.3), Schedule(0.3, c=1.0, exponent=0.0)):
        assert constant.decay == 0
    m = measurement(DULA(step, fusion=Schedule(0.1)))
    found = table(condition1, m)
    assert found["condition1.delta_2 - delta_1 > 1/2.value", 20] == pytest.approx(0.55)
    assert found["condition1.delta_2 - delta_1 > 1/2", 20] == 1


def test_the_consensus_bound_of_a_constant_fusion():
    """delta_1 = 0, so the bound and the ratio both fall like the step."""
    step = Schedule(0.1, b=2.0, c=1.0, exponent=0.55)
    errors = np.random.default_rng(0).uniform(1, 2, (4, len(DUE)))
    trace = Trace({"consensus_error": (("chain", "draw"), errors)}, DUE, np.arange(5))
    sampler = DULA(step, fusion=Schedule(0.1))
    found = table(consensus_rate, measurement(sampler, trace=trace))
    assert found["consensus_exponent_bound", 20] == pytest.approx(0.55)
    assert found["consensus_exponent_ratio", 20] == pytest.approx(0.55)


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
    m = replace(measurement(D_ADMMS), problem=prob, network=net)
    found = table(theorem3_bound, m)
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
    m = measurement(D_ADMMS)
    found = table(theorem3_bound, m)
    law = law_of_run(replace(m, sampler=ADMM(penalty=found["theorem3_penalty", 20])))
    target = m.problem.posterior
    each = np.sqrt((w2(law.mean, law.cov, target) ** 2).sum(axis=1))
    at = [found["theorem3_distance", k] for k in DUE]
    assert at[0] == pytest.approx(each[0], rel=1e-12)
    assert (each[1:] < at[1:]).all()


def test_theorem3_claims_nothing_where_its_condition_fails():
    few = replace(measurement(D_ADMMS), problem=problem(5, 2, points=3))
    assert theorem3.compute_theorem(few.problem, RING).rate >= 1
    found = table(theorem3_bound, few)
    assert all(found["theorem3_bound", k] == np.inf for k in DUE)


def test_the_largest_entry_of_the_posterior_covariance():
    m = measurement(D_ADMMS)
    (row,) = posterior_covariance.rows(m)
    cov = np.linalg.inv(m.problem.gram.sum(axis=0))
    assert (row.metric, row.chance) == ("posterior_covariance_max", False)
    assert row.value == pytest.approx(np.abs(cov).max(), rel=1e-12)
