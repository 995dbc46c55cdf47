r"""Theorem 2 of parayil2020 where everything in it is exact: on linear regression.

The theorem bounds the Kullback-Leibler divergence of the law of the agents' average from the
posterior, Theorem 1 the mean of :math:`\sum_i \lVert w_i - \bar w \rVert^2`. Both follow from the
law's moments.
"""

from collections.abc import Iterator

import numpy as np

from concord.laws.gaussian import Gaussian
from concord.problem import Quadratic
from concord.samplers.d_ula import DULA
from concord_studies.contracts import Label
from concord_studies.metrics import Measurement, Row, series, unmet_need, yields
from concord_studies.metrics._theorems import Condition, condition_metrics, condition_rows


@yields(
    ("kl_average", "consensus_exact", *condition_metrics("theorem2_step.a below (26)")),
    network="perfect",  # it speaks of networks on which nothing is lost
    exact=("*",),
    conditions=("theorem2_step.*",),
    labels={
        "kl_average": Label("KL divergence of the average's law", "KL of the average"),
        "consensus_exact": Label("exact consensus error"),
    },
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield KL of the average's law, the consensus error, and condition (26).

    kl_average: KL(law of the average || posterior). consensus_exact: mean of sum_i |x_i - xbar|^2 /
    N. theorem2_step: whether the numerator of alpha is what (26) allows for some gamma > 2.
    """
    target, params, problem = m.problem.posterior, m.sampler, m.problem
    law = m.law
    if (
        law is None
        or target is None
        or not isinstance(params, DULA)
        or not isinstance(problem, Quadratic)
    ):
        raise unmet_need("kl", "D-ULA with full gradients on linear regression")
    divergence = compute_divergence(law.average_mean, law.average_cov, target)
    spread = np.trace(law.cov, axis1=-2, axis2=-1).mean(axis=1) + (law.mean**2).sum(2).mean(axis=1)
    middle = np.trace(law.average_cov, axis1=-2, axis2=-1) + (law.average_mean**2).sum(axis=1)
    numbers = {"kl_average": divergence, "consensus_exact": np.maximum(spread - middle, 0.0)}
    yield from series(law.iterations, "network", numbers, chance=False)
    step = params.step_size
    judged = condition26(problem.gram, step.a, step.decay)
    yield from condition_rows(m, "theorem2_step", [judged] if judged else [])


def compute_divergence(mean: np.ndarray, cov: np.ndarray, target: Gaussian) -> np.ndarray:
    """Return KL(N(mean, cov) || target), with means (..., dim); infinite for a law that is flat."""
    precision = np.linalg.inv(target.cov)
    away = mean - target.mean
    square = np.einsum("...d,de,...e->...", away, precision, away)
    trace = np.trace(precision @ cov, axis1=-2, axis2=-1)
    with np.errstate(divide="ignore"):
        logs = np.linalg.slogdet(cov).logabsdet - np.linalg.slogdet(target.cov).logabsdet
    return 0.5 * (trace + square - logs - mean.shape[-1])


def condition26(gram: np.ndarray, a: float, delta_2: float) -> Condition | None:
    r"""Return whether Theorem 2's choice of a, (26), can be met; None for a constant step.

    .. math::
        a = n^{-\gamma} \left(\frac{\rho_U (3 \delta_2 - 1)}{25 L^4 \delta_2}\right)^{1/3},
        \qquad \gamma > 2

    for some gamma, that is: a is below the right side with gamma = 2. On linear regression rho_U,
    the constant of the posterior's log-Sobolev inequality, is the smallest eigenvalue of its
    precision; L is the largest Lipschitz constant of an agent's gradient. ``gram`` is each agent's
    Hessian, (agents, dim, dim); a and delta_2 are numerator and exponent of alpha.
    """
    if not delta_2:
        return None
    rho = np.linalg.eigvalsh(gram.sum(axis=0))[0]
    lipschitz = np.linalg.eigvalsh(gram).max()
    largest = np.cbrt(rho * (3 * delta_2 - 1) / (25 * lipschitz**4 * delta_2)) / len(gram) ** 2
    return Condition("a below (26)", float(a / largest), a < largest)
