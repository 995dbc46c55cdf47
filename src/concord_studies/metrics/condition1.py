"""Conditions of parayil2020's theorems on the schedules: which of them the parameters meet."""

from collections.abc import Iterator

from concord.networks.spectrum import spectrum_of
from concord.samplers.d_ula import DULA
from concord.samplers.gossip_ula import GossipULA
from concord_studies.metrics import Measurement, Row, conditions, lacking, with_values
from concord_studies.theory import parayil2020

METRICS = with_values(
    *("condition1.delta_2 - delta_1 > 1/2", "condition1.delta_2 < 1"),
    *("condition1.b sigma_max < 1", "condition1.beta_0 sigma_max < [12]"),
)
EXACT = METRICS
NETWORK = "perfect"  # it speaks of networks on which nothing is lost
CONDITIONS = ("condition1.*",)


def rows(m: Measurement) -> Iterator[Row]:
    """Yield the value of every condition, and whether it holds (1) or not (0)."""
    params = m.sampler
    if not isinstance(params, (DULA, GossipULA)):
        raise lacking("condition1", "a sampler with the schedules step_size and fusion")
    step, fusion = params.step_size, params.fusion
    largest = spectrum_of(m.network.graph)["laplacian_max"]
    found = parayil2020.condition1(step.decay, fusion.decay, fusion.a, fusion.initial, largest)
    return conditions(m, "condition1", found)
