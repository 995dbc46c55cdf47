"""Theorem 2 of gurbuzbalaban2021: its bound and constants, beside the exact law it bounds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from concord.contracts import Quadratic, SampledLaw
from concord.laws.gaussian import w2
from concord.laws.theory import gurbuzbalaban2021
from concord.metrics import Measurement, Row, lacking
from concord.metrics._laws import exact_law
from concord.samplers import de_sgld
from concord.sampling.initial import normal

METRICS = (
    *("theorem2_bound", "theorem2_rederived", "w2_exact_mean"),
    *(
        f"theorem2.{name}"
        for name in (
            *("N", "d", "mu", "L", "sigma", "eta", "rate", "r", "decay", "contraction", "D"),
            *("C1", "C1_bar", "lambda_2", "lambda_N", "gamma_bar", "lemma7_factor"),
            *("E|x0 - x*|^2", "E|x0|^2", "E|xbar0 - x_*|^2", "|grad F(x*)|"),
            *("connected graph", "step size", "strong convexity"),
        )
    ),
)


def rows(m: Measurement) -> Iterator[Row]:
    """Yield bound and exact average W2 at every recorded iteration, and every constant.

    theorem2_bound is the printed bound on (1/N) sum_i W2(law of x_i, exp(-sum_i f_i)), infinite
    where a condition fails; theorem2_rederived the bound with Lemma 7's transient as its proof
    gives it; w2_exact_mean what both bound. The target is that of the potentials as sampled, which
    is the posterior if they have the prior once. theorem2.<name> are the constants, and
    theorem2.<condition> is 1 where a condition holds, 0 where it does not.

    Raises
    ------
    ConcordError
        If the run is not what the theorem, with the constants known here, speaks of.
    """
    params, start, problem = m.sampler_params, m.initial.params, m.problem
    if (
        not isinstance(params, de_sgld.Params)
        or not params.step_size.constant
        or params.batch_size is not None
        or params.update_order != "simultaneous"
        or params.weights != "metropolis"
        or not isinstance(start, normal.Params)
        or not isinstance(start.sd, float)
        or not isinstance(problem, Quadratic)
        or not isinstance(problem, SampledLaw)
        or (law := exact_law(m)) is None
    ):
        raise lacking(
            "theorem2",
            "DE-SGLD with a constant step, full gradients, simultaneous updates and a symmetric W "
            "on linear regression, starting from N(mean, sd^2 I)",
        )
    theorem = gurbuzbalaban2021.theorem2(
        problem.gram,
        problem.shift,
        np.linalg.eigvalsh(m.topology.metropolis().dense()),
        params.step_size.initial,
        start.mean,
        start.sd,
        m.trace.draw,
    )
    mean = w2(law.mean, law.cov, problem.sampled).mean(axis=1)
    for row, k in enumerate(m.trace.draw):
        yield Row(k, "network", "w2_exact_mean", mean[row], chance=False)
        yield Row(k, "network", "theorem2_bound", theorem.bound[row], chance=False)
        yield Row(k, "network", "theorem2_rederived", theorem.rederived[row], chance=False)
    for name, value in theorem.constants.items():
        yield Row(m.iterations, "network", f"theorem2.{name}", value, chance=False)
    for condition in theorem.conditions:
        name = f"theorem2.{condition.name}"
        yield Row(m.iterations, "network", name, float(condition.holds), chance=False)
