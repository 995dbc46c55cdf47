"""The law of draws of DSGLD and FSGLD, whose chains visit shards at random, in closed form."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from concord.laws.gaussian import Gaussian
from concord.laws.wasserstein import w2
from concord_studies.contracts import Label
from concord_studies.metrics import Measurement, Row, final_rows, series, unmet_need, yields

from ..theory import THIN, Visits


@yields(
    ("law_*", "error_*"),
    exact=("*",),
    labels={
        "law_trace": Label("trace of the draws' covariance over the posterior's", "variance ratio"),
        "law_bias": Label("bias of the draws' mean, in posterior standard deviations", "bias"),
        "law_w2": Label("W2 of the draws' moments to the posterior's", "W2"),
        "law_square_bias2": Label(
            "squared difference of E|theta - mean|^2 from the posterior's", "squared bias"
        ),
        "law_local_w2": Label(
            "W2 of draws given the shard to its local posterior p(theta | x_s)", "W2, local"
        ),
        "law_local_trace": Label(
            "variance of draws given the shard over that of its local posterior", "local ratio"
        ),
        "law_power_w2": Label(
            "W2 of draws given the shard to its local posterior with S times the likelihood",
            "W2, power",
        ),
        "error_of_mean": Label("mean squared error of the mean of draws so far"),
        "error_of_draws": Label("expected squared distance of draws from the posterior's mean"),
        "error_of_times": Label("mean squared error of the mean over all updates so far"),
    },
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield the law of draws, which are taken after the first or the last update of visits.

    law_trace to law_square_bias2: of the draws. law_local_w2, law_local_trace, law_power_w2: after
    the last update, of the law given the shard of the visit, which is normal but for the points of
    mini-batches; roots of mean squares over shards, or a mean. error_of_mean: of
    the mean of as many draws as the recorded iteration, 100 updates apart; error_of_draws: the mean
    of their own squared errors; error_of_times: of the mean of as many updates, where each visit
    makes one. All start in the stationary law.
    """
    problem: Any = m.problem
    sampler: Any = m.sampler
    if not hasattr(problem, "surrogate_gradients") or not hasattr(sampler, "surrogates"):
        raise unmet_need("visits", "fsgld on the problem shards_of_means")
    if THIN % sampler.local_steps:
        raise unmet_need("visits", f"local_steps that divide {THIN}")
    visits, target = Visits.of(problem, sampler), problem.posterior
    update = 1 if problem.params.draws == "first" else visits.updates
    cov, away = visits.cov(update), visits.mean - target.mean
    square, exact = np.trace(cov) + away @ away, np.trace(target.cov)
    given = list(zip(*visits.given_shard(visits.updates), strict=True))
    local, power = local_posteriors(problem, 1), local_posteriors(problem, problem.agents)
    ratios = [np.trace(of) / np.trace(to.cov) for (_, of), to in zip(given, local, strict=True)]
    yield from final_rows(
        m,
        {
            "law_trace": np.trace(cov) / exact,
            "law_bias": np.sqrt(away @ np.linalg.solve(target.cov, away)),
            "law_w2": float(w2(visits.mean, cov, target)),
            "law_square_bias2": (square - exact) ** 2,
            "law_local_w2": _distance(given, local),
            "law_local_trace": float(np.mean(ratios)),
            "law_power_w2": _distance(given, power),
        },
    )
    variance, k = np.trace(cov), m.trace.draw[m.trace.draw > 0]
    error = visits.mean_error(update, THIN // visits.updates, k)
    numbers = {"error_of_mean": error, "error_of_draws": np.full(len(k), variance)}
    if visits.updates == 1:
        numbers["error_of_times"] = visits.mean_error(1, 1, k)
    yield from series(k.tolist(), "network", numbers, chance=False)


def local_posteriors(problem: Any, power: int) -> list[Gaussian]:
    """Return the laws proportional to p(theta) p(x_s | theta)^power of all shards s."""
    points = problem.data.features
    precision = 1 + power * problem.counts[0]
    means = power * points.sum(axis=1) / precision
    return [Gaussian(mean, np.eye(problem.dim) / precision) for mean in means]


def _distance(laws: Sequence[tuple[np.ndarray, np.ndarray]], to: Sequence[Gaussian]) -> float:
    """Return the root of the mean squared W2 of normal laws, (mean, covariance), to others."""
    each = [float(w2(*law, other)) for law, other in zip(laws, to, strict=True)]
    return float(np.sqrt(np.mean(np.square(each))))
