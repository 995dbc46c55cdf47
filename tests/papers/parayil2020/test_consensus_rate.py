"""The rate of consensus that the paper states."""

import numpy as np
import pytest

import everything
from concord.samplers.d_ula import DULA
from concord.sampling.schedules import Schedule
from concord.sampling.trace import Trace
from measurements import DUE, ring_measurement, values_by_iteration

consensus_rate = everything.kind("metrics", "consensus_rate")


def test_the_consensus_bound_of_a_constant_fusion():
    """delta_1 = 0, so the bound and the ratio both fall like the step."""
    step = Schedule(0.1, b=2.0, c=1.0, exponent=0.55)
    errors = np.random.default_rng(0).uniform(1, 2, (4, len(DUE)))
    trace = Trace({"consensus_error": (("chain", "draw"), errors)}, DUE, np.arange(5))
    sampler = DULA(step, fusion=Schedule(0.1))
    found = values_by_iteration(consensus_rate, ring_measurement(sampler, trace=trace))
    assert found["consensus_exponent_bound", 20] == pytest.approx(0.55)
    assert found["consensus_exponent_ratio", 20] == pytest.approx(0.55)
