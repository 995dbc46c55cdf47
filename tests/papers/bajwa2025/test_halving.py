"""The metric of geometric convergence, compared with the rate of one agent's closed form."""

import numpy as np
import pytest

import everything
from concord.networks.construction import network
from concord.samplers.de_sgld import DESGLD
from concord.sampling.schedules import Schedule
from measurements import law_measurement
from steps import Quadratic

halving = everything.kind("metrics", "halving")


def measured(step, curvature=2.0, at=(0, 10, 30)):
    """Return what the metric finds of one agent on a quadratic, by iteration and agent."""
    alone = Quadratic(np.full((1, 1, 1), curvature), np.ones((1, 1)))
    m = law_measurement(DESGLD(Schedule(step)), net=network("no_edges", 1), prob=alone)
    m.trace.draw = np.array(at)
    return {(row.iteration, row.agent): row.value for row in halving.rows(m)}


def test_the_mean_of_one_agent_halves_as_its_contraction_says():
    """m' = (1 - eta h) m, so that ln 2 / -ln(1 - eta h) iterations halve it."""
    found = measured(0.05)
    expected = np.log(2) / -np.log(1 - 0.05 * 2.0)
    assert found.keys() == {(k, agent) for k in (10, 30) for agent in ("0", "average")}
    assert list(found.values()) == pytest.approx([expected] * 4, rel=1e-9)


def test_what_grows_is_never_halved():
    assert set(measured(1.1).values()) == {np.inf}


def test_rounding_is_not_taken_for_a_bias():
    """After 200 iterations 0.9^200 of the start is below 1e-8."""
    assert {k for k, _ in measured(0.05, at=(0, 10, 200))} == {10}
