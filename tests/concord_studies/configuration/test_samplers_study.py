"""Metrics of the study of samplers: stationary laws at parts of the largest step, exact moments."""

import numpy as np
import pytest

import everything
from concord.errors import ConcordError
from concord.laws.law import exact_law
from concord.samplers.de_sgld import DESGLD
from concord.sampling.schedules import Schedule
from concord_studies.metrics import stable_step, stationary
from laws_of_runs import measurement
from steps import Quadratic
from variants import problem

exact_moments = everything.kind("metrics", "exact_moments")
stationary_steps = everything.kind("metrics", "stationary_steps")


def table(family, m) -> dict[str, float]:
    return {f"{row.metric} {row.agent}": row for row in family.rows(m)}


def test_steps_are_parts_of_the_largest_and_have_their_own_stationary_law():
    prob = problem(5, 2, points=50)
    m = measurement(DESGLD(Schedule(1e-3)), prob=prob)
    rows = table(stationary_steps, m)
    at = [r.iteration for r in stationary_steps.rows(m) if r.metric == "by_step.step_size"]
    assert (
        at == list(stationary_steps.PERCENT) and rows["by_step.step_size network"].iteration == 99
    )
    found = {(r.iteration, r.agent, r.metric): r for r in stationary_steps.rows(m)}
    assert not any(row.chance for row in found.values())
    largest = table(stable_step, m)["stable.step_size network"].value
    assert found[50, "network", "by_step.step_size"].value == pytest.approx(largest / 2)
    half = measurement(DESGLD(Schedule(largest / 2)), prob=prob)
    expected = table(stationary, half)
    for agent in ("0", "average"):
        for name in ("w2", "bias", "trace"):
            value = found[50, agent, f"by_step.stationary_{name}"].value
            assert value == pytest.approx(expected[f"stationary_{name} {agent}"].value)
    below, above = (found[p, "0", "by_step.stationary_w2"].value for p in (50, 99))
    assert 0 < below < above < np.inf


def test_a_sampler_that_no_step_makes_unstable_has_no_steps_to_show():
    flat = Quadratic(np.zeros((5, 1, 1)), np.zeros((5, 1)))
    still = measurement(DESGLD(Schedule(1.0)), prob=flat)
    with pytest.raises(ConcordError, match=r"^metric stationary_steps needs .*; remove it"):
        list(stationary_steps.rows(still))


def test_exact_moments_are_those_of_the_law():
    prob = problem(5, 2, points=50)
    m = measurement(DESGLD(Schedule(1e-3)), prob=prob)
    m.trace.draw = np.array([0, 4, 10])
    law = exact_law(m)
    found = {(r.iteration, r.agent, r.metric): r.value for r in exact_moments.rows(m)}
    assert len(found) == 3 * 6 * 2
    cov = prob.posterior.cov
    for row, k in enumerate((0, 4, 10)):
        expected = np.trace(law.average_cov[row]) / np.trace(cov)
        assert found[k, "average", "exact_trace"] == pytest.approx(expected)
        off = law.mean[row, 2] - prob.posterior.mean
        expected = np.sqrt(off @ np.linalg.solve(cov, off))
        assert found[k, "2", "exact_bias"] == pytest.approx(expected)


def test_exact_moments_of_a_law_that_is_no_number_any_more_are_infinite():
    m = measurement(DESGLD(Schedule(1e30)), iterations=40)
    m.trace.draw = np.array([40])
    assert all(row.value == np.inf for row in exact_moments.rows(m))
