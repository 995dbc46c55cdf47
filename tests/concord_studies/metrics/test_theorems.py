"""Metrics of the papers' theorems: whom they speak of, and what they bound."""

import pytest

from concord.samplers.d_ula import DULA
from concord.sampling.schedules import Schedule
from concord_studies.metrics import (
    condition1,
)
from measurements import ring_measurement, values_by_iteration


def test_a_constant_schedule_does_not_decay():
    step = Schedule(0.1, b=2.0, c=1.0, exponent=0.55)
    assert step.decay == 0.55
    for constant in (Schedule(0.3), Schedule(0.3, c=1.0, exponent=0.0)):
        assert constant.decay == 0
    m = ring_measurement(DULA(step, fusion=Schedule(0.1)))
    found = values_by_iteration(condition1, m)
    assert found["condition1.delta_2 - delta_1 > 1/2.value", 20] == pytest.approx(0.55)
    assert found["condition1.delta_2 - delta_1 > 1/2", 20] == 1
