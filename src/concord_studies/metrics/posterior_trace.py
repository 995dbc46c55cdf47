"""How wide the draws are, relative to the exact posterior: 1 is right."""

from collections.abc import Iterator

import numpy as np

from concord.laws.intervals import mean_interval
from concord_studies.contracts import Label
from concord_studies.metrics import Measurement, Row, series, yields
from concord_studies.metrics._references import require_posterior


@yields(
    "posterior_trace",
    records=("draws",),
    labels={"posterior_trace": Label("trace of the draws' covariance over the posterior's")},
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield posterior_trace per agent: the trace of its draws' covariance over the posterior's.

    The covariance is that of the draws of all chains together, beyond burn-in. It is the mean over
    chains of what each adds to it, about the mean of all chains, so the interval is that of a mean.
    """
    exact = np.trace(require_posterior(m.problem, "posterior_trace").moments()[1])
    x = m.trace["x"][:, m.late]  # (chain, draw, agent, dim)
    chains, center = len(x), x.mean(axis=1)
    inside = ((x - center[:, None]) ** 2).sum(axis=-1).mean(axis=1)
    # Over chains - 1: the mean of all chains is estimated from them.
    between = ((center - center.mean(axis=0)) ** 2).sum(axis=-1) * chains / max(chains - 1, 1)
    numbers = {"posterior_trace": mean_interval((inside + between) / exact)}
    return series([m.last], m.agents, numbers)
