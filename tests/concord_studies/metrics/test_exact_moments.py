"""The metric of exact moments along the iterations, compared with the law's."""

import numpy as np
import pytest

from concord.laws.law import exact_law
from concord.samplers.de_sgld import DESGLD
from concord.sampling.schedules import Schedule
from concord_studies.metrics import exact_moments
from measurements import law_measurement
from variants import problem


def test_exact_moments_are_those_of_the_law():
    prob = problem(5, 2, points=50)
    m = law_measurement(DESGLD(Schedule(1e-3)), prob=prob)
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
    m = law_measurement(DESGLD(Schedule(1e30)), iterations=40)
    m.trace.draw = np.array([40])
    assert all(row.value == np.inf for row in exact_moments.rows(m))
