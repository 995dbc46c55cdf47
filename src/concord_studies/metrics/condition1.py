"""Conditions of parayil2020's theorems on the schedules: which of them the parameters meet."""

from collections.abc import Iterator

from concord.samplers.d_ula import DULA
from concord.samplers.gossip_ula import GossipULA
from concord_studies.metrics import Measurement, Row, unmet_need, yields
from concord_studies.metrics._theorems import Condition, condition_metrics, condition_rows
from concord_studies.spectrum import spectrum_of


@yields(
    condition_metrics(
        *("condition1.delta_2 - delta_1 > 1/2", "condition1.delta_2 < 1"),
        *("condition1.b sigma_max < 1", "condition1.beta_0 sigma_max < [12]"),
    ),
    network="perfect",  # it speaks of networks on which nothing is lost
    exact=("*",),
    conditions=("condition1.*",),
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield the value of every condition, and whether it holds (1) or not (0)."""
    params = m.sampler
    if not isinstance(params, (DULA, GossipULA)):
        raise unmet_need("condition1", "a sampler with the schedules step_size and fusion")
    step, fusion = params.step_size, params.fusion
    largest = spectrum_of(m.network.graph)["laplacian_max"]
    judged = conditions_of(step.decay, fusion.decay, fusion.a, fusion.initial, largest)
    return condition_rows(m, "condition1", judged)


def conditions_of(
    delta_2: float, delta_1: float, b: float, first: float, laplacian_max: float
) -> list[Condition]:
    """Return parayil2020's conditions on alpha_k = a/(k+1)^delta_2 and beta_k = b/(k+1)^delta_1.

    (15) and Condition 1 of the supplement, (S6): 1/2 + delta_1 < delta_2 < 1, the eigenvalues of
    I - b L but one strictly inside the unit circle, and, in the text below (S6), b sigma_max(L)
    < 1, which implies it. The experiments have b_2 + k in place of k + 1, so that b may stand for
    the numerator or for the first value of beta; both are judged. ``laplacian_max`` is the largest
    eigenvalue of the graph's Laplacian L.
    """
    apart = delta_2 - delta_1
    numerator, first = b * laplacian_max, first * laplacian_max
    return [
        # delta_2 = 0.55 and delta_1 = 0.05 are 1/2 apart but for rounding.
        Condition("delta_2 - delta_1 > 1/2", apart, bool(apart > 0.5 + 1e-12)),
        Condition("delta_2 < 1", delta_2, delta_2 < 1),
        Condition("b sigma_max < 1", numerator, numerator < 1),
        Condition("beta_0 sigma_max < 1", first, first < 1),
        Condition("beta_0 sigma_max < 2", first, first < 2),
    ]
