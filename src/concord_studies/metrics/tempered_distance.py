"""Distance from the posterior to a power of it, which some samplers sample instead.

Gossip ULA samples the power 1/2 as printed (``concord.samplers.gossip_ula``): its mean drift is
half the gradient, its noise is whole. Mini-batches that are not scaled up to the n points of all
agents count as fewer: their power is what they stand for over n (of the likelihood, and so of a
posterior whose prior is flat).
"""

from collections.abc import Iterator
from functools import partial
from typing import cast

import numpy as np

from concord.laws.quadrature import from_log_density
from concord.minibatches import batches_of
from concord.problem import WithMiniBatches
from concord_studies.contracts import Label
from concord_studies.metrics import Measurement, Row, final_rows, unmet_need, yields
from concord_studies.metrics._references import check_grid, require_grid
from concord_studies.transport import marginal_w1

POWER = 0.5
QUANTILES = 4000


@yields(
    ("law_half_w1", "law_half_w1_[01]", "law_tempered_w1", "law_tempered_w1_[01]", "law_power"),
    check_problem=partial(check_grid, "tempered_distance"),
    labels={
        "law_half_w1": Label(head="W1 of the posterior to the power 1/2"),
        "law_tempered_w1": Label(head="W1 of the tempered posterior"),
        "law_power": Label("power of the likelihood that is sampled", "power"),
    },
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield the W1 distance of a power of the posterior from the posterior, both by quadrature.

    law_half_w1_<d>: of parameter d, with the power 1/2; law_half_w1: their mean. Where mini-batches
    are not scaled up the power is theirs, law_power, and the names are law_tempered_w1.
    """
    problem, exact = m.problem, require_grid(m.problem, "tempered_distance")
    if not hasattr(problem, "log_posterior"):
        raise unmet_need("tempered_distance", "a problem with a log_posterior")
    power, name, batches = POWER, "law_half_w1", batches_of(m.sampler)
    if batches is not None and batches.points_stood_for is not None:
        stands = problem.agents * batches.points_stood_for
        power, name = (
            stands / float(cast("WithMiniBatches", problem).counts.sum()),
            "law_tempered_w1",
        )
        yield from final_rows(m, {"law_power": power})
    reach = max(1.0, power**-0.5 - 1)
    box = [
        (edge[0] - reach * (edge[-1] - edge[0]), edge[-1] + reach * (edge[-1] - edge[0]))
        for edge in exact.edges
    ]
    half = from_log_density(
        lambda first, second: power * problem.log_posterior(first, second),
        ((float(box[0][0]), float(box[0][1])), (float(box[1][0]), float(box[1][1]))),
        len(exact.edges[0]) - 1,
    )
    levels = (np.arange(QUANTILES) + 0.5) / QUANTILES
    quantiles = [np.interp(levels, half.cdf(axis), half.edges[axis]) for axis in range(2)]
    values = [float(marginal_w1(draws, exact, axis)) for axis, draws in enumerate(quantiles)]
    mean = sum(values) / 2
    yield from final_rows(m, {f"{name}_0": values[0], f"{name}_1": values[1], name: mean})
