"""Conditions of parayil2020's theorems on the schedules: which of them the parameters meet."""

from __future__ import annotations

from collections.abc import Iterator

from concord.laws.theory import parayil2020
from concord.metrics import Measurement, Row, need

METRICS = ("condition1.*",)


def rows(m: Measurement) -> Iterator[Row]:
    """Yield for every condition its value and whether it holds (1) or not (0)."""
    named = hasattr(m.sampler_params, "step_size") and hasattr(m.sampler_params, "fusion")
    need(named, "condition1", "a sampler with the schedules step_size and fusion")
    conditions = parayil2020.condition1(
        m.sampler_params.step_size,
        m.sampler_params.fusion,
        m.topology.spectral()["laplacian_max"],
    )
    for condition in conditions:
        name = f"condition1.{condition.name}"
        yield Row(m.iterations, "network", f"{name}.value", condition.value, chance=False)
        yield Row(m.iterations, "network", name, float(condition.holds), chance=False)
