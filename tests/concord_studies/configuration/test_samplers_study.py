"""The metric of the study of samplers: stationary laws at parts of the largest step."""

import numpy as np
import pytest

import everything
from concord.errors import ConcordError
from concord.samplers.de_sgld import DESGLD
from concord.sampling.schedules import Schedule
from concord_studies.metrics import stable_step, stationary
from measurements import law_measurement
from steps import Quadratic
from variants import problem

stationary_steps = everything.kind("metrics", "stationary_steps")


def table(family, m) -> dict[str, float]:
    return {f"{row.metric} {row.agent}": row for row in family.rows(m)}


def test_steps_are_parts_of_the_largest_and_have_their_own_stationary_law():
    prob = problem(5, 2, points=50)
    m = law_measurement(DESGLD(Schedule(1e-3)), prob=prob)
    rows = table(stationary_steps, m)
    at = [r.iteration for r in stationary_steps.rows(m) if r.metric == "by_step.step_size"]
    assert (
        at == list(stationary_steps.PERCENT) and rows["by_step.step_size network"].iteration == 99
    )
    found = {(r.iteration, r.agent, r.metric): r for r in stationary_steps.rows(m)}
    assert not any(row.chance for row in found.values())
    largest = table(stable_step, m)["stable.step_size network"].value
    assert found[50, "network", "by_step.step_size"].value == pytest.approx(largest / 2)
    half = law_measurement(DESGLD(Schedule(largest / 2)), prob=prob)
    expected = table(stationary, half)
    for agent in ("0", "average"):
        for name in ("w2", "bias", "trace"):
            value = found[50, agent, f"by_step.stationary_{name}"].value
            assert value == pytest.approx(expected[f"stationary_{name} {agent}"].value)
    below, above = (found[p, "0", "by_step.stationary_w2"].value for p in (50, 99))
    assert 0 < below < above < np.inf


def test_a_sampler_that_no_step_makes_unstable_has_no_steps_to_show():
    flat = Quadratic(np.zeros((5, 1, 1)), np.zeros((5, 1)))
    still = law_measurement(DESGLD(Schedule(1.0)), prob=flat)
    with pytest.raises(ConcordError, match=r"^metric stationary_steps needs .*; remove it"):
        list(stationary_steps.rows(still))
