"""Exact mean and covariance of an affine sampler over iterations, compared with the posterior's."""

from collections.abc import Iterator

import numpy as np

from concord_studies.contracts import Label
from concord_studies.metrics import Measurement, Row, series, unmet_need, yields
from concord_studies.metrics._references import select_law
from concord_studies.metrics.stationary import NAMES, compare_gaussians

SHOWN = ("trace", "bias")


@yields(
    tuple(f"exact_{name}" for name in SHOWN),
    exact=("*",),
    averaged=("*",),
    labels={
        "exact_trace": Label("trace of the exact covariance over the posterior's"),
        "exact_bias": Label("bias of the exact law, in posterior standard deviations"),
    },
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield an exact law's trace over the posterior's and its bias, per agent and average.

    exact_trace: trace of the covariance over the posterior's. exact_bias: distance of the means in
    posterior standard deviations, the largest over directions. On a network where vectors may not
    arrive, of the moments over all losses.
    """
    law, target = m.law, m.problem.posterior
    if law is None or target is None:
        raise unmet_need(
            "exact_moments", "an affine sampler on a Gaussian problem, and its exact law"
        )
    for agent in (*m.trace.agent.tolist(), "average"):
        own = select_law(target, agent)
        for k, center, spread in zip(law.iterations, *law.moments_of(agent), strict=True):
            finite = np.isfinite(center).all() and np.isfinite(spread).all()
            ratios = compare_gaussians(center, spread, own) if finite else [np.inf] * len(NAMES)
            values = dict(zip(NAMES, ratios, strict=True))
            shown = {f"exact_{name}": values[name] for name in SHOWN}
            yield from series([k], str(agent), shown, chance=False)
