"""Theorem 10 of gurbuzbalaban2021: its bound and conditions, beside the exact law it bounds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from concord.contracts import Quadratic, SampledLaw
from concord.laws import exact
from concord.laws.gaussian import w2
from concord.laws.theory import gurbuzbalaban2021
from concord.metrics import Measurement, Row, lacking
from concord.metrics._laws import exact_law, start_of, update_of
from concord.samplers import de_sghmc
from concord.sampling.initial import normal

METRICS = (
    *("theorem10_bound", "theorem10_rederived", "w2_exact_mean"),
    *(
        f"theorem10.{name}"
        for name in (
            *("L", "mu", "rate", "beta", "1 - gamma eta", "c_5", "gamma_bar"),
            *("(4.9)", "(4.10), first bound", "(4.10), second bound"),
            *("Lemma 15, decay", "Lemma 15, step size"),
            *("connected graph", "step size", "strong convexity"),
        )
    ),
)


def rows(m: Measurement) -> Iterator[Row]:
    """Yield bound and exact average W2 at every recorded iteration, constants and conditions.

    theorem10_bound is the printed bound on (1/N) sum_i W2(law of x_i, exp(-sum_i f_i)), infinite
    where a condition fails; theorem10_rederived the bound with Lemma 15's transient as its proof
    gives it; w2_exact_mean what both bound, with the target of the potentials as sampled. c_5,
    which the paper does not state, is the smallest there is: the largest E|x^(k)|^2 or E|v^(k)|^2
    of the exact law. theorem10.<name> are the constants, and theorem10.<condition> is 1 where a
    condition holds, 0 where it does not.

    Raises
    ------
    ConcordError
        If the run is not what the theorem, with the constants known here, speaks of.
    """
    params, start, problem = m.sampler_params, m.initial.params, m.problem
    if (
        not isinstance(params, de_sghmc.Params)
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
            "theorem10",
            "DE-SGHMC with a constant step, full gradients, simultaneous updates and a symmetric W "
            "on linear regression, starting from N(mean, sd^2 I)",
        )
    theorem = gurbuzbalaban2021.theorem10(
        problem.gram,
        problem.shift,
        np.linalg.eigvalsh(m.topology.metropolis().dense()),
        params.step_size.initial,
        params.friction,
        largest_moment(m),
        start.mean,
        start.sd,
        m.trace.draw,
    )
    mean = w2(law.mean, law.cov, problem.sampled).mean(axis=1)
    for row, k in enumerate(m.trace.draw):
        yield Row(k, "network", "w2_exact_mean", mean[row], chance=False)
        yield Row(k, "network", "theorem10_bound", theorem.bound[row], chance=False)
        yield Row(k, "network", "theorem10_rederived", theorem.rederived[row], chance=False)
    for name, value in theorem.constants.items():
        yield Row(m.iterations, "network", f"theorem10.{name}", value, chance=False)
    for condition in theorem.conditions:
        name = f"theorem10.{condition.name}"
        yield Row(m.iterations, "network", name, float(condition.holds), chance=False)


def largest_moment(m: Measurement) -> float:
    """Return the largest of E|x^(k)|^2 and E|v^(k)|^2 until the last iteration, and in the limit.

    Infinite where the law does not settle.
    """
    update = update_of(m)
    start = None if update is None else start_of(m, update)
    assert update is not None and start is not None  # there is an exact law
    step, size = update.at(0), m.problem.agents * m.problem.dim
    limit = exact.limit(step, *start)
    if limit is None:
        return float("inf")
    mean, cov = start
    largest = _moment(*limit, size)
    for _ in range(m.iterations + 1):
        largest = max(largest, _moment(mean, cov, size))
        mean = step.matrix @ mean + step.offset
        cov = step.matrix @ cov @ step.matrix.T + step.noise
    return largest


def _moment(mean: np.ndarray, cov: np.ndarray, size: int) -> float:
    squares = mean**2 + cov.diagonal()
    return float(max(squares[:size].sum(), squares[size:].sum()))
