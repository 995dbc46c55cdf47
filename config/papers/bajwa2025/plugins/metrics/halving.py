r"""Iterations that halve the exact bias of the mean: constant where it falls geometrically.

With b(k) the bias of the exact law at iteration k, in posterior standard deviations,

.. math:: h = (k - j) \ln 2 / \ln(b(j) / b(k))

for each recorded iteration k and the one recorded before it, j.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from concord_studies.contracts import Label
from concord_studies.metrics import Measurement, Row, series, unmet_need, yields

ROUNDING = 1e-8  # posterior standard deviations, below which a bias is one of rounding


@yields(
    "halving",
    exact=("*",),
    labels={"halving": Label("iterations that halve the exact bias", "iterations")},
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield halving, per agent and average, at recorded iterations with a bias beyond rounding.

    It is infinite where the bias does not fall.
    """
    law, target = m.law, m.problem.posterior
    if law is None or target is None:
        raise unmet_need("halving", "an affine sampler on a Gaussian problem, and its exact law")
    for agent in (*m.trace.agent.tolist(), "average"):
        error = law.moments_of(agent)[0] - target.mean
        bias = np.sqrt((error @ np.linalg.inv(target.cov) * error).sum(axis=1))
        places = np.flatnonzero((bias > ROUNDING) & np.isfinite(bias))
        for j, k in pairwise(places):
            halvings = np.log2(bias[j] / bias[k])
            count = law.iterations[k] - law.iterations[j]
            numbers = {"halving": count / halvings if halvings > 0 else np.inf}
            yield from series([law.iterations[k]], str(agent), numbers, chance=False)
