"""How far the means and standard deviations of a model's own parameters are off."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from concord.contracts import WithNames
from concord.distances import positions
from concord.laws.intervals import quantile
from concord_studies.contracts import Label
from concord_studies.metrics import Measurement, Row, unmet_need, yields
from concord_studies.metrics._references import require_posterior
from concord_studies.transport import thin

METRICS = ("parameter_mean_error", "parameter_sd_error", "parameter_sd_less")
MOST, GROUPS = 20_000, 20


@yields(
    METRICS,
    records=("draws",),
    labels={
        "parameter_mean_error": Label(
            says="the largest error of a parameter's mean, in posterior standard deviations",
            head="mean, off by",
        ),
        "parameter_sd_error": Label(
            says="the largest |log2| of a parameter's standard deviation over the posterior's",
            head="sd, |log2| off by",
        ),
        "parameter_sd_less": Label(
            says="parameter_sd_error of the agents' average less that of the worst agent",
            head="sd, average less worst agent",
        ),
    },
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield the largest errors over parameters: of all agents (network), and of their average.

    parameter_mean_error: |mean - posterior mean| in posterior standard deviations.
    parameter_sd_error: |log2| of the ratio of standard deviations: 1 is twice or half as wide. Both
    of the draws of all chains after burn-in, in the model's own parameters. parameter_sd_less is
    the difference of two of these, whose draws are the same, so that its interval is shorter.

    Interval: the jackknife over 20 groups of chains, Student's t about the value and about it less
    its bias: the largest of several errors is too large by chance.
    """
    if not isinstance(m.problem, WithNames):
        raise unmet_need("parameter_errors", "a problem whose parameters have names")
    posterior = require_posterior(m.problem, "parameter_errors")
    exact = _constrain_draws(m, posterior.sample(10_000, m.stream("draws")))
    center, spread = exact.mean(axis=0), exact.std(axis=0)
    agents, draws = positions(m.trace)
    late = thin(m.late, max(MOST // len(draws), 1))
    values = _constrain_draws(
        m, draws[:, late]
    )  # (chains, draws, agents and their average, parameters)
    who = {
        "network": [k for k, name in enumerate(agents) if name != "average"],
        "average": [k for k, name in enumerate(agents) if name == "average"],
    }

    def errors(values: np.ndarray) -> dict[str, np.ndarray]:
        """Return the metrics of values, by metric/agent."""
        with np.errstate(all="ignore"):
            off = np.abs(values.mean(axis=(0, 1)) - center) / spread
            wide = np.abs(np.log2(values.std(axis=(0, 1)) / spread))
        worst = {
            f"{metric}/{name}": np.where(np.isnan(of[rows]), np.inf, of[rows]).max()
            for metric, of in zip(METRICS, (off, wide), strict=False)
            for name, rows in who.items()
        }
        with np.errstate(invalid="ignore"):  # of two that diverged
            less = worst["parameter_sd_error/average"] - worst["parameter_sd_error/network"]
        return worst | {"parameter_sd_less/average": np.inf if np.isnan(less) else less}

    every = errors(values)
    groups = np.array_split(np.arange(len(values)), min(len(values), GROUPS))
    without = [errors(np.delete(values, group, axis=0)) for group in groups if len(groups) > 1]
    for name, value in every.items():
        metric, agent = name.split("/")
        lo = hi = None
        if np.isfinite(value) and without:
            others = np.array([each[name] for each in without])
            half = quantile(len(others)) * np.sqrt((len(others) - 1) * others.var())
            unbiased = len(others) * value - (len(others) - 1) * others.mean()
            lo, hi = min(value, unbiased) - half, max(value, unbiased) + half
            lo = lo if metric == METRICS[2] else max(lo, 0.0)
        yield Row(m.last, agent, metric, float(value), lo, hi)


def _constrain_draws(m: Measurement, x: np.ndarray) -> np.ndarray:
    """Return the entries of all the model's parameters at x (..., dim), (..., parameters)."""
    assert isinstance(m.problem, WithNames)
    parts = m.problem.constrain(np.ascontiguousarray(x)).values()
    return np.concatenate([np.reshape(part, (*x.shape[:-1], -1)) for part in parts], axis=-1)
