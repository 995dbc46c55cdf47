"""Conditions of parayil2020's theorems on the schedules: which of them the parameters meet."""

from collections.abc import Iterator

from concord.laws.theory import parayil2020
from concord.metrics import Measurement, Row, conditions, lacking, with_values
from concord.samplers import Fusing

METRICS = with_values(
    *("condition1.delta_2 - delta_1 > 1/2", "condition1.delta_2 < 1"),
    *("condition1.b sigma_max < 1", "condition1.beta_0 sigma_max < [12]"),
)
EXACT = METRICS
NETWORK = "perfect"  # it speaks of networks on which nothing is lost
CONDITIONS = ("condition1.*",)


def rows(m: Measurement) -> Iterator[Row]:
    """Yield for every condition its value and whether it holds (1) or not (0)."""
    params = m.sampler_params
    if not isinstance(params, Fusing):
        raise lacking("condition1", "a sampler with the schedules step_size and fusion")
    step, fusion, largest = params.step_size, params.fusion, m.topology.spectral()["laplacian_max"]
    found = parayil2020.condition1(step.decay, fusion.decay, fusion.a, fusion.initial, largest)
    return conditions(m, "condition1", found)
