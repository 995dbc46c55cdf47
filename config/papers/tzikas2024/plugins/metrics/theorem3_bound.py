"""Theorem 3's bound of tzikas2024 at the penalty of its proof, beside the exact law it bounds."""

from collections.abc import Iterator

import numpy as np
from msgspec import structs

from concord.laws import paths
from concord.laws.gaussian import Gaussian
from concord.laws.law import start_of, update_of
from concord.laws.wasserstein import w2
from concord.networks.graph import as_dense
from concord.problem import Quadratic
from concord.samplers.admm import ADMM
from concord_studies.contracts import Label, SampledLaw
from concord_studies.metrics import Measurement, Row, final_rows, series, unmet_need

from .. import theory
from .theorem3 import compute_theorem

METRICS = ("theorem3_bound", "theorem3_distance", "theorem3_penalty")
EXACT = METRICS
NETWORK = "perfect"  # it speaks of networks on which nothing is lost
LABELS = {
    "theorem3_distance": Label(head="exact distance"),
    "theorem3_bound": Label(head="bound"),
    "theorem3_penalty": Label(head="rho of the proof"),
}


def rows(m: Measurement) -> Iterator[Row]:
    """Yield the bound of Theorem 3, the true value and the penalty of both at each iteration.

    The theorem says that there is a rho; theorem3_penalty is the one that its proof chooses, not
    the run's. theorem3_distance is the exact W(law of X^(k), mu* x ... x mu*) of all agents
    together under that penalty; theorem3_bound is infinite where the condition fails. A
    ConcordError if the run is not what the theorem speaks of.
    """
    sampler, problem = m.sampler, m.problem
    if (
        type(sampler) is not ADMM  # a reading of it is no ADMM to the theorem
        or not sampler.noise
        or m.network.order != "simultaneous"
        or not isinstance(problem, Quadratic)
        or not isinstance(problem, SampledLaw)
        or not np.isfinite((theorem := compute_theorem(problem, m.network)).penalty)
        or m.initial.moments(problem.dim) is None
    ):
        raise unmet_need(
            "theorem3_bound",
            "D-ADMMS with simultaneous updates on a connected network and linear regression, from "
            "a start that is stated",
        )
    chosen, size = structs.replace(sampler, penalty=theorem.penalty), problem.agents * problem.dim
    update = update_of(chosen, problem, m.network)
    start = start_of(m, update)
    law = paths.build_path(update, start, 1, size, last=m.iterations).law(m.trace.draw.tolist())
    one, every = problem.sampled, np.eye(problem.agents)
    all_agents = Gaussian(np.tile(one.mean, problem.agents), np.kron(every, one.cov))
    laplacian, begin = as_dense(m.network.laplacian()), (start[0][:size], start[1][:size, :size])
    found = {
        "theorem3_distance": w2(law.mean[:, 0], law.cov[:, 0], all_agents),
        "theorem3_bound": theory.theorem3_bound(theorem, problem, laplacian, begin, m.trace.draw),
    }
    yield from series(m.trace.draw, "network", found, chance=False)
    yield from final_rows(m, {"theorem3_penalty": theorem.penalty})
