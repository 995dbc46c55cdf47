"""Metrics of the papers' theorems: whom they speak of, and what they bound."""

from types import SimpleNamespace

import numpy as np
import pytest

import measurements
from concord.laws.wasserstein import w2
from concord.networks.construction import network
from concord.samplers.d_ula import DULA
from concord.samplers.de_sgld import DESGLD
from concord.sampling.initial import Law
from concord.sampling.schedules import Schedule
from concord_studies.metrics import (
    Measurement,
    condition1,
    w2_point,
)
from variants import problem

RING, DUE = network("ring", 5), np.array([0, 1, 20])
STEP = Schedule(0.002)


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
