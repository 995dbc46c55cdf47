r"""Linear regression whose noise is unknown: a normal-inverse-gamma posterior, with exact draws.

.. math::
    y_j \sim N(\beta^\top X_j, \sigma^2), \qquad \beta \mid \sigma^2 \sim N(0, \sigma^2 v I),
    \qquad \sigma^2 \sim \mathrm{IG}(a, b)

sampled in :math:`x = (\beta, \eta)`, :math:`\eta = \log \sigma^2`, whose potentials are, with d
coefficients,

.. math::
    f_i(x) = \frac{n_i}{2} \eta + \frac{e^{-\eta}}{2} \sum_{j=1}^{n_i} (y_j - \beta^\top X_j)^2
             + \frac1N \Bigl[ \bigl(a + \tfrac d2\bigr) \eta
             + e^{-\eta} \Bigl( b + \frac{\lVert\beta\rVert^2}{2v} \Bigr) \Bigr]

The posterior is of the prior's family: sigma^2 is drawn from IG(a_n, b_n), then beta from
N(m_n, sigma^2 V_n). Source: Gelman et al., Bayesian Data Analysis, 3rd ed., section 14.2, with a
proper prior. Moments need a + n/2 > 2.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import Annotated, Any

import numpy as np

from concord import streams
from concord.contracts import DataSets, Stream
from concord.errors import ConcordError
from concord.laws.reference_laws import AnalyticLaw
from concord.libraries import special
from concord.options import Count, Options, Positive
from concord.problems.arrays import AgentsOfRows, divide_rows
from concord.sampling.partition import AgentData, Partition, check_rows
from concord_studies.problems._tabled import TableProblem


class Params(Options):
    """Options of the points, and of the normal-inverse-gamma prior."""

    points: Annotated[Count, "number of points, over all agents"] = 100
    dim: Annotated[Count, "number d of coefficients; the parameter has one number more"] = 2
    noise_sd: Annotated[Positive, "standard deviation that the observations are drawn with"] = 1.0
    prior_variance: Annotated[Positive, "v: coefficients have the variance sigma^2 v"] = 1.0
    shape: Annotated[Positive, "a of the noise variance's prior IG(a, b)"] = 3.0
    scale: Annotated[Positive, "b of the noise variance's prior IG(a, b)"] = 2.0


def check(params: Params, agents: int) -> None:
    """Raise a ConcordError for more agents than points, or too few points for moments."""
    check_rows(params.points, agents)
    _check_moments(params, params.points)


def _check_moments(params: Params, points: int) -> None:
    """Raise a ConcordError if the coefficients have no fourth moment."""
    if params.shape + points / 2 <= 2:
        raise ConcordError(
            f"shape {params.shape:g} and {points} points leave coefficients without a fourth "
            "moment; give shape + points / 2 above 2"
        )


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, data_sets: DataSets
) -> UnknownNoise:
    """Draw coefficients from N(0, v I), features and observations, and split the points."""
    rng = stream("data")
    truth = np.sqrt(params.prior_variance) * rng.standard_normal(params.dim)
    features = rng.standard_normal((params.points, params.dim))
    targets = features @ truth + params.noise_sd * rng.standard_normal(params.points)
    parts = partition.split(params.points, agents, stream("partition"))
    return UnknownNoise(AgentData.from_parts(features, targets, parts), params)


def from_arrays(
    X: Any,
    y: Any,
    agents: AgentsOfRows = None,
    *,
    prior_variance: float = 1.0,
    shape: float = 3.0,
    scale: float = 2.0,
    partition: Any = "equal",
    seed: int | None = streams.SEED,
    rng: streams.Rng = None,
) -> UnknownNoise:
    """Return linear regression with unknown noise on a caller's own features and targets.

    Parameters
    ----------
    X, y, agents, partition, seed, rng
        As of ``concord.problems.linear_regression``.
    prior_variance, shape, scale
        v, a and b of the prior.

    Returns
    -------
    UnknownNoise
        With ``agents``, ``dim`` and ``reference``, the posterior.

    Raises
    ------
    ConcordError
        If the arrays do not fit each other or the number of agents, or are too few.

    Examples
    --------
    >>> import concord, concord_studies, numpy as np
    >>> X = np.random.default_rng(0).standard_normal((100, 2))
    >>> problem = concord.problems.unknown_noise(X, X @ [1, -2], agents=5, scale=0.01)
    >>> problem.reference.mean.round(1)
    array([ 1. , -2. , -3.1])
    """
    data = divide_rows(X, y, agents, partition, streams.seed_of(seed, rng))
    params = Params(prior_variance=prior_variance, shape=shape, scale=scale)
    _check_moments(params, int(data.counts.sum()))
    return UnknownNoise(data, params)


class UnknownNoise(TableProblem):
    """The regression split over agents; a step's cost does not grow with the number of points."""

    def __init__(self, data: AgentData, params: Params) -> None:
        self.counts, self.params, self.agent_names = data.counts, params, data.sites
        self.agents, _, self.coefficients = data.features.shape
        self.dim = self.coefficients + 1
        transposed = data.features.swapaxes(1, 2)
        share = 1 / self.agents
        # Of an agent: X^T X + I / (N v), X^T y, y^T y + 2 b / N, and n_i / 2 + (a + d / 2) / N.
        self.tables = (
            transposed @ data.features + share / params.prior_variance * np.eye(self.coefficients),
            (transposed @ data.targets[..., None])[..., 0],
            (data.targets**2).sum(axis=1) + 2 * share * params.scale,
            data.counts / 2 + share * (params.shape + self.coefficients / 2),
        )

    def potentials_at(self, x: np.ndarray, *tables: np.ndarray) -> np.ndarray:
        """Return the potentials (...) at x (..., dim) of agents with these rows of ``tables``."""
        gram, cross, square, weight = tables
        beta, eta = x[..., :-1], x[..., -1]
        fitted = (gram @ beta[..., None])[..., 0] - 2 * cross
        return weight * eta + np.exp(-eta) / 2 * ((beta * fitted).sum(axis=-1) + square)

    def gradients_at(self, x: np.ndarray, *tables: np.ndarray) -> np.ndarray:
        """Return the gradients (..., dim) of ``potentials_at``, from the same arguments."""
        gram, cross, square, weight = tables
        beta, precision = x[..., :-1], np.exp(-x[..., -1:])
        slopes = (gram @ beta[..., None])[..., 0] - cross
        rest = (beta * (slopes - cross)).sum(axis=-1, keepdims=True) + square[..., None]
        last = weight[..., None] - precision / 2 * rest
        return np.concatenate([slopes * precision, last], axis=-1)

    @cached_property
    def reference(self) -> AnalyticLaw:
        """Return the posterior of (beta, log sigma^2), which is normal-inverse-gamma."""
        gram, cross, square, _ = (table.sum(axis=0) for table in self.tables)
        spread = np.linalg.inv(gram)
        center = spread @ cross
        shape = self.params.shape + self.counts.sum() / 2
        scale = (square - cross @ center) / 2
        cov, third, fourth = np.zeros((self.dim, self.dim)), np.zeros(self.dim), np.zeros(self.dim)
        cov[:-1, :-1] = scale / (shape - 1) * spread
        cov[-1, -1] = special().polygamma(1, shape)
        third[-1] = -special().polygamma(2, shape)
        fourth[:-1] = 3 * scale**2 / ((shape - 1) * (shape - 2)) * np.diag(spread) ** 2
        fourth[-1] = special().polygamma(3, shape) + 3 * cov[-1, -1] ** 2
        root = np.linalg.cholesky(spread)
        mean = np.append(center, np.log(scale) - special().digamma(shape))
        return AnalyticLaw(mean, cov, third, fourth, partial(_draw, shape, scale, center, root))


def _draw(
    shape: float,
    scale: float,
    center: np.ndarray,
    root: np.ndarray,
    count: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return independent draws of the normal-inverse-gamma posterior, (count, dim).

    shape, scale: of the law of the noise variance. center, root: mean of the weights, and a root of
    their covariance over the noise variance.
    """
    variance = scale / rng.standard_gamma(shape, count)
    normal = rng.standard_normal((count, len(center))) @ root.T
    return np.column_stack([center + np.sqrt(variance)[:, None] * normal, np.log(variance)])
