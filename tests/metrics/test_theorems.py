"""Metrics of the papers' theorems: whom they speak of, and what they bound."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from concord.errors import ConcordError
from concord.laws import exact
from concord.laws.gaussian import Gaussian, w2
from concord.metrics import (
    Measurement,
    budget,
    condition1,
    consensus_rate,
    lemma12,
    theorem2,
    theorem10,
    w2_point,
)
from concord.networks import topology
from concord.samplers import d_ula, de_sghmc, de_sgld
from concord.sampling import streams
from concord.sampling.initial import Laplace, Normal
from concord.sampling.schedules import Schedule
from concord.sampling.trace import Trace
from variants import problem

RING, DUE = topology.build("ring", 5), np.array([0, 1, 20])
STEP = Schedule(0.002)


def measurement(sampler, params, share="split", initial=None, trace=None) -> Measurement:
    return Measurement(
        trace=trace or SimpleNamespace(agent=np.arange(5), draw=DUE),
        problem=problem(5, 2, share, points=20),
        topology=RING,
        sampler=sampler,
        sampler_params=params,
        initial=initial or Normal(),
        iterations=20,
        stream=lambda what: streams.generator(1, what),
    )


def table(family, m) -> dict[tuple[str, int], float]:
    return {(row.metric, row.iteration): row.value for row in family.rows(m)}


@pytest.mark.parametrize(
    ("sampler", "params"),
    [
        (d_ula, d_ula.Params(step_size=STEP, fusion=Schedule(0.2))),
        (de_sghmc, de_sghmc.Params(step_size=STEP, friction=5.0)),
        (de_sgld, de_sgld.Params(step_size=STEP, batch_size=1)),
        (de_sgld, de_sgld.Params(step_size=STEP, update_order="in_place")),
        (de_sgld, de_sgld.Params(step_size=STEP, weights="next_two")),
        (de_sgld, de_sgld.Params(step_size=Schedule(0.002, c=1.0))),
    ],
    ids=["d_ula", "de_sghmc", "batches", "in_place", "next_two", "decaying"],
)
def test_theorem2_is_refused_for_all_it_says_nothing_of(sampler, params):
    with pytest.raises(ConcordError, match="metric theorem2 needs DE-SGLD"):
        list(theorem2.rows(measurement(sampler, params)))


def test_theorem2_needs_a_normal_start():
    m = measurement(de_sgld, de_sgld.Params(step_size=STEP), initial=Laplace())
    with pytest.raises(ConcordError, match="metric theorem2 needs DE-SGLD"):
        list(theorem2.rows(m))


@pytest.mark.parametrize("share", ["split", "omitted", "whole"])
def test_theorem2_bounds_the_distance_to_what_the_potentials_sum_to(share):
    """exp(-sum f_i), which is the posterior only where the prior's shares add up to one."""
    m = measurement(de_sgld, de_sgld.Params(step_size=STEP), share)
    found = table(theorem2, m)
    update = de_sgld.affine(m.problem, RING, m.sampler_params)
    start = exact.initial(5, 2, m.initial.moments(2))
    law = exact.propagate(update.at, *start, 20, DUE.tolist(), 5, 2)
    curvature, slope = m.problem.gram.sum(axis=0), m.problem.shift.sum(axis=0)
    target = Gaussian(np.linalg.solve(curvature, slope), np.linalg.inv(curvature))
    expected = w2(law.mean, law.cov, target).mean(axis=1)
    for k, value in zip(DUE, expected, strict=True):
        assert found["w2_exact_mean", k] == pytest.approx(value, rel=1e-9)
        assert value < found["theorem2_bound", k] < np.inf
    posterior = w2(law.mean, law.cov, m.problem.posterior).mean(axis=1)
    assert np.allclose(posterior, expected, rtol=1e-9) == (share == "split")


# Inside the conditions of Theorem 10 (mu = 8 to 14, L = 26 to 30, a ring): beta = 1e-6.
HEAVY = {"step_size": Schedule(0.02), "friction": (1 - 1e-6) / 0.02}


@pytest.mark.parametrize("family", [theorem10, lemma12])
@pytest.mark.parametrize(
    "changes",
    [
        {"update_order": "in_place"},
        {"weights": "next_two"},
        {"batch_size": 2, "batch_scale": "none"},
        {"batch_size": 2, "batch_pool": "all_but_last"},
    ],
    ids=lambda changes: next(reversed(changes.values())),
)
def test_theorem10_and_lemma12_are_refused_for_what_released_code_computes(family, changes):
    m = measurement(de_sghmc, de_sghmc.Params(**HEAVY, **changes))
    with pytest.raises(ConcordError, match=r"metric \w+ needs DE-SGHMC.* symmetric W"):
        list(family.rows(m))


@pytest.mark.parametrize("share", ["split", "omitted", "whole"])
def test_theorem10_bounds_the_distance_to_what_the_potentials_sum_to(share):
    m = measurement(de_sghmc, de_sghmc.Params(**HEAVY), share)
    found = table(theorem10, m)
    update = de_sghmc.affine(m.problem, RING, m.sampler_params)
    start = exact.initial(5, 2, m.initial.moments(2), *update.auxiliary)
    law = exact.propagate(update.at, *start, 20, DUE.tolist(), 5, 2)
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
    m = measurement(de_sghmc, de_sghmc.Params(step_size=Schedule(0.08), friction=15.0))
    found = table(theorem10, m)
    assert found["theorem10.1 - gamma eta", 20] == pytest.approx(-0.2)
    assert found["theorem10.beta", 20] == 0  # the condition
    assert all(found["theorem10_bound", k] == np.inf for k in DUE)


@pytest.mark.parametrize("sampler", [de_sgld, de_sghmc])
def test_the_distance_after_a_budget_is_that_of_as_many_steps(sampler):
    """DE-SGHMC with gamma = 1/eta is DE-SGLD with the square of the step: so are the numbers."""
    params = {de_sgld: de_sgld.Params(STEP), de_sghmc: de_sghmc.Params(STEP, friction=1.0)}
    m = measurement(sampler, params[sampler])
    found = {(row.iteration, row.agent): row for row in budget.rows(m) if "w2" in row.metric}
    assert {k for k, _ in found} == set(budget.BUDGETS)
    mu = np.linalg.eigvalsh(m.problem.gram).min()
    eta = np.log(np.sqrt(400)) / (mu * 400)
    update = de_sgld.affine(m.problem, RING, de_sgld.Params(Schedule(eta)))
    law = exact.propagate(update.at, *exact.initial(5, 2, (0.0, 1.0)), 400, [400], 5, 2)
    expected = w2(law.mean[0], law.cov[0], m.problem.posterior)
    for agent in range(5):
        assert found[400, str(agent)].value == pytest.approx(expected[agent], rel=1e-9)
    ratios = {r.iteration: r.value for r in budget.rows(m) if r.metric == "budget_ratio"}
    last = found[400, "4"].value / np.sqrt(np.log(400) / 400)
    assert ratios[400] == pytest.approx(last, rel=1e-12)


def test_a_budget_is_of_full_gradients():
    m = measurement(de_sgld, de_sgld.Params(STEP, batch_size=2))
    with pytest.raises(ConcordError, match="metric budget needs DE-SGLD or DE-SGHMC"):
        list(budget.rows(m))


def test_a_point_is_as_far_as_the_posterior_is_wide():
    m = measurement(de_sgld, de_sgld.Params(STEP))
    (row,) = w2_point.rows(m)
    target = m.problem.posterior
    assert row.value == pytest.approx(w2(target.mean, np.zeros((2, 2)), target), rel=1e-9)
    assert not row.chance


def test_a_constant_schedule_does_not_decay():
    step = Schedule(0.1, b=2.0, c=1.0, exponent=0.55)
    assert step.decay == 0.55
    for constant in (Schedule(0.3), Schedule(0.3, c=1.0, exponent=0.0)):
        assert constant.decay == 0
    m = measurement(d_ula, d_ula.Params(step_size=step, fusion=Schedule(0.1)))
    found = table(condition1, m)
    assert found["condition1.delta_2 - delta_1 > 1/2.value", 20] == pytest.approx(0.55)
    assert found["condition1.delta_2 - delta_1 > 1/2", 20] == 1


def test_the_consensus_bound_of_a_constant_fusion():
    """delta_1 = 0, so the bound and the ratio both fall like the step."""
    step = Schedule(0.1, b=2.0, c=1.0, exponent=0.55)
    errors = np.random.default_rng(0).uniform(1, 2, (4, len(DUE)))
    trace = Trace({"consensus_error": (("chain", "draw"), errors)}, DUE, np.arange(5))
    params = d_ula.Params(step_size=step, fusion=Schedule(0.1))
    found = table(consensus_rate, measurement(d_ula, params, trace=trace))
    assert found["consensus_exponent_bound", 20] == pytest.approx(0.55)
    assert found["consensus_exponent_ratio", 20] == pytest.approx(0.55)
