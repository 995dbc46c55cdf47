"""The rate of consensus that the paper states."""

from types import SimpleNamespace

import numpy as np
import pytest

import everything
import measurements
from concord.networks.construction import network
from concord.samplers.d_ula import DULA
from concord.sampling.initial import Law
from concord.sampling.schedules import Schedule
from concord.sampling.trace import Trace
from concord_studies.metrics import Measurement
from variants import problem

consensus_rate = everything.kind("metrics", "consensus_rate")
RING, DUE = network("ring", 5), np.array([0, 1, 20])


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


def test_the_consensus_bound_of_a_constant_fusion():
    """delta_1 = 0, so the bound and the ratio both fall like the step."""
    step = Schedule(0.1, b=2.0, c=1.0, exponent=0.55)
    errors = np.random.default_rng(0).uniform(1, 2, (4, len(DUE)))
    trace = Trace({"consensus_error": (("chain", "draw"), errors)}, DUE, np.arange(5))
    sampler = DULA(step, fusion=Schedule(0.1))
    found = table(consensus_rate, measurement(sampler, trace=trace))
    assert found["consensus_exponent_bound", 20] == pytest.approx(0.55)
    assert found["consensus_exponent_ratio", 20] == pytest.approx(0.55)
