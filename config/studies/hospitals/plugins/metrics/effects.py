"""What each hospital learns of its own effect, by the exact law of its last position.

``effect_mean`` and ``effect_sd`` are of the law, ``exact_mean`` and ``exact_sd`` of the posterior,
and ``alone_mean`` and ``alone_sd`` of the hospital's own rows. ``effect_b2`` and ``shared_b2`` are
the squared bias b^2 of the effect and of the shared coordinates, of each hospital and the worst
(``network``). ``narrower`` is the largest standard deviation over that of a hospital alone.
``vector_bytes``: of one vector that a hospital sends.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np

from concord.laws.gaussian import Gaussian
from concord.laws.wasserstein import bias2
from concord.problem import local_of
from concord_studies.contracts import Label
from concord_studies.metrics import Measurement, Row, final_rows, series, unmet_need, yields

EACH = ("effect_mean", "effect_sd", "exact_mean", "exact_sd", "alone_mean", "alone_sd")
WORST = ("effect_b2", "shared_b2")


@yields(
    (*EACH, *WORST, "narrower", "vector_bytes"),
    exact=("*",),
    averaged=(),
    labels={
        "effect_b2": Label("b² of a hospital's own effect", head="own effect, b²"),
        "shared_b2": Label("b² of the shared coordinates", head="shared, b²"),
        "narrower": Label("standard deviation over that of a hospital alone", head="sd over alone"),
        "vector_bytes": Label("bytes of a vector", head="bytes of a vector"),
    },
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield the moments and biases of each hospital's effect at the last iteration."""
    law, problem = m.law, cast("Any", m.problem)
    if law is None or not hasattr(problem, "effect"):
        raise unmet_need("effects", "hospitals, and a sampler with an exact law")
    home = problem.home
    mean, cov = law.mean[-1], law.cov[-1]
    shared = int((~home.local).sum())
    ratios, worst = [], dict.fromkeys(WORST, 0.0)
    for agent, vector in enumerate(problem.effect):
        exact = home.posterior.of(agent)
        target = project(exact.mean, exact.cov, home.effect[agent])
        own = project(mean[agent], cov[agent], vector)
        common = Gaussian(exact.mean[:shared], exact.cov[:shared, :shared])
        b2 = {
            "effect_b2": float(bias2(own[0], own[1], Gaussian(*target))),
            "shared_b2": float(bias2(mean[agent, :shared], cov[agent, :shared, :shared], common)),
        }
        alone = problem.alone[0][agent], problem.alone[1][agent]
        pairs = [(law[0][0], np.sqrt(law[1][0, 0])) for law in (own, target)]
        moments = dict(zip(EACH, [*pairs[0], *pairs[1], *alone], strict=True))
        ratios.append(moments["effect_sd"] / moments["alone_sd"])
        worst = {name: max(worst[name], b2[name]) for name in WORST}
        yield from series([m.iterations], str(agent), {**moments, **b2}, chance=False)
    local = local_of(problem)
    sent = problem.dim if local is None else int((~local).sum())
    size = m.network.conditions.size(sent, 8)
    yield from final_rows(m, {**worst, "narrower": max(ratios), "vector_bytes": size})


def project(mean: np.ndarray, cov: np.ndarray, vector: np.ndarray) -> tuple[Any, Any]:
    """Return mean (1,) and covariance (1, 1) of v^T x, for x of given moments."""
    return np.array([vector @ mean]), np.array([[vector @ cov @ vector]])
