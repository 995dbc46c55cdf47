"""Exact laws of FALD and VR-FALD* with any number of clients, and the theorems' steps."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from concord.laws.wasserstein import w2
from concord_studies.contracts import Label
from concord_studies.metrics import Measurement, Row, series, unmet_need, yields
from concord_studies.metrics._theorems import Condition, condition_rows

from .. import theory

ITERATIONS, BURN_IN = 10_000_000, 1_000_000  # of section 10.1


@yields(
    ("asymptotic_bias", "chance_share", "mean_squared_error", "average_*", "theorem.*"),
    exact=("*",),
    averaged=("asymptotic_bias", "chance_share", "mean_squared_error", "average_*"),
    conditions=("theorem.step size",),
    labels={
        "asymptotic_bias": Label(
            "exact asymptotic bias (E|X - x*|² - tr Sigma)²", "asymptotic bias"
        ),
        "chance_share": Label(
            "variance of a chain's mean of |X - x*|² over 9 million iterations, of the diffusion",
            "chance",
        ),
        "mean_squared_error": Label(
            "mean squared error of the mean of |X - x*|², bias and chance", "mean squared error"
        ),
        "average_trace": Label(
            "trace of the average's exact covariance over the posterior's", "variance ratio"
        ),
        "average_bias": Label("bias of the average, in posterior standard deviations", "bias"),
        "average_w2": Label("exact W2 of the average, of the normal law with its moments", "W2"),
    },
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield errors of the mean of |X - x*|^2 (Table 1), and how far the average is from posterior.

    asymptotic_bias: the square of E|X - x*|^2 - tr Sigma, in the limit of long chains.
    chance_share: what a chain of the printed length adds to its mean square by chance, if the
    average were the Langevin diffusion of step gamma/b: an approximation. mean_squared_error: their
    sum, which is what Table 1 estimates. average_trace, average_bias, average_w2: of the average's
    first and second moments. All are infinite where moments grow without end. theorem.step size:
    whether the step is at most gamma_2, of Theorem 20 or 28.
    """
    problem: Any = m.problem
    target = problem.posterior
    if not hasattr(m.sampler, "rounds") or target is None:
        raise unmet_need("rounds", "the sampler fald on Gaussian clients")
    rounds = m.sampler.rounds(problem)
    slopes = problem.gram @ target.mean - problem.shift
    moments = theory.average_moments(problem.gram, slopes, rounds)
    names = ("asymptotic_bias", "average_trace", "average_bias", "average_w2")
    numbers: dict[str, Any] = dict.fromkeys(names, np.inf)
    total = np.trace(target.cov)
    if moments is not None:
        away, cov = moments
        numbers = {
            "asymptotic_bias": (np.trace(cov) + away @ away - total) ** 2,
            "average_trace": np.trace(cov) / total,
            "average_bias": np.sqrt(away @ np.linalg.solve(target.cov, away)),
            "average_w2": float(w2(target.mean + away, cov, target)),
        }
    values = np.linalg.eigvalsh(target.cov)
    kept = (ITERATIONS - BURN_IN) * rounds.step / problem.agents
    chance = numbers["chance_share"] = (2 * values**3).sum() / kept
    numbers["mean_squared_error"] = numbers["asymptotic_bias"] + chance
    yield from series([m.iterations], "average", numbers, chance=False)
    bound = theory.step_bound(problem.gram, rounds)
    met = Condition("step size", rounds.step, rounds.step <= bound, bound)
    yield from condition_rows(m, "theorem", [met])
