"""How far the posterior to the power 1/2 is from the posterior: what gossip ULA samples as printed.

See ``concord.samplers.gossip_ula``: its mean drift is half the gradient, its noise is whole.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from concord.contracts import Label, LogDensity
from concord.laws.quadrature import from_log_density
from concord.laws.transport import marginal_w1
from concord.metrics import Measurement, Row, known, lacking
from concord.metrics._references import grid

METRICS = ("law_half_w1", "law_half_w1_[01]")
LABELS = {"law_half_w1": Label(head="W1 of the posterior to the power 1/2")}

POWER = 0.5
QUANTILES = 4000


def rows(m: Measurement) -> Iterator[Row]:
    """Yield law_half_w1_<d> for each parameter and their mean law_half_w1; both laws are exact."""
    problem, exact = m.problem, grid(m.problem, "tempered_distance")
    if not isinstance(problem, LogDensity):
        raise lacking("tempered_distance", "a problem with a log_posterior")
    box = [(2 * edge[0] - edge[-1], 2 * edge[-1] - edge[0]) for edge in exact.edges]
    half = from_log_density(
        lambda first, second: POWER * problem.log_posterior(first, second),
        ((float(box[0][0]), float(box[0][1])), (float(box[1][0]), float(box[1][1]))),
        len(exact.edges[0]) - 1,
    )
    levels = (np.arange(QUANTILES) + 0.5) / QUANTILES
    quantiles = [np.interp(levels, half.cdf(axis), half.edges[axis]) for axis in range(2)]
    values = [float(marginal_w1(own, exact, axis)) for axis, own in enumerate(quantiles)]
    mean = sum(values) / 2
    return known(m, {"law_half_w1_0": values[0], "law_half_w1_1": values[1], "law_half_w1": mean})
