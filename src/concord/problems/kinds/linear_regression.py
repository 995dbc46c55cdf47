r"""Bayesian linear regression with a Gaussian prior: the posterior is Gaussian and known.

.. math::
    y_j = x^\top X_j + \delta_j, \qquad \delta_j \sim N(0, \sigma^2), \qquad x \sim N(0, v I)

    f_i(x) = \frac{1}{2 \sigma^2} \sum_{j=1}^{n_i} (y_j^i - x^\top X_j^i)^2
             + \frac{s}{2 v} \lVert x \rVert^2

with the prior's share s of each agent: 1/N (so that sum_i f_i is the negative log posterior), 0 (no
prior in the potentials, as gurbuzbalaban2021 prints them in section 5.1), or 1. The posterior is
(5.1) of gurbuzbalaban2021 for any share: the share changes what agents simulate, not the target.
Their potentials add up to the posterior's for split only; ``sampled`` is the law of their sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, cast

import numpy as np
from numpy.typing import ArrayLike

from concord import streams
from concord.contracts import DataSets, Stream
from concord.errors import ConcordError
from concord.laws.gaussian import Gaussian
from concord.local_coordinates import PosteriorByAgent, posterior_of_quadratics, read_local
from concord.minibatches import Batches
from concord.options import Count, Options, Positive
from concord.problems._regression import GeneralizedLinearProblem, PriorShare, prior_share
from concord.problems.arrays import AgentsOfRows, divide_rows
from concord.problems.points import LegacySeed, draw_legacy_data
from concord.problems.quadratic_problem import QuadraticProblem
from concord.sampling.partition import AgentData, Partition, PartitionLike, check_rows


class Params(Options):
    """Options of the number and distribution of the points, and of the prior."""

    points: Annotated[Count | None, "number of data points, over all agents"] = None
    points_per_agent: Annotated[
        Count | None, "number of data points of each agent, instead of points"
    ] = None
    dim: Annotated[Count, "dimension d of the parameter"] = 2
    noise_sd: Annotated[Positive, "standard deviation sigma of the observations"] = 1.0
    feature_variance: Annotated[Positive, "variance of each feature"] = 1.0
    prior_variance: Annotated[Positive, "variance v of the prior N(0, v I)"] = 1.0
    prior_share: PriorShare = "split"
    legacy_seed: LegacySeed = None


def check(params: Params, agents: int) -> None:
    """Raise a ConcordError for more agents than points, or contradicting numbers of points."""
    check_rows(total_points(params, agents), agents)


def total_points(params: Any, agents: int) -> int:
    """Return the number of points over all agents.

    params: options with ``points``, or ``points_per_agent``.
    """
    if (params.points is None) == (params.points_per_agent is None):
        raise ConcordError(
            f"points is {params.points} and points_per_agent {params.points_per_agent}; "
            "give exactly one of them"
        )
    return params.points or agents * params.points_per_agent


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, data_sets: DataSets
) -> LinearRegression:
    """Draw the parameter from the prior, then features and observations, and split the points.

    The pool of points depends on ``stream("data")`` alone, so that every number of agents and
    every sampler sees the same data. With a legacy seed it depends on the number of agents too,
    since features and noise alternate; the partition consecutive gives each agent its own.
    """
    points = total_points(params, agents)
    if params.legacy_seed is None:
        rng = stream("data")
        truth = np.sqrt(params.prior_variance) * rng.standard_normal(params.dim)
        features = np.sqrt(params.feature_variance) * rng.standard_normal((points, params.dim))
        targets = features @ truth + params.noise_sd * rng.standard_normal(points)
    else:  # the law of tzikas2024, section 6.2, eq. (26)
        truth, features, noise = draw_legacy_data(
            params.legacy_seed,
            points,
            agents,
            (params.prior_variance, params.feature_variance),
            params.dim,
            lambda rng, block, truth: rng.normal(0.0, params.noise_sd, size=len(block)),
        )
        targets = features @ truth + noise
    parts = partition.split(points, agents, stream("partition"))
    return LinearRegression(AgentData.from_parts(features, targets, parts), params)


def from_arrays(
    X: ArrayLike,
    y: ArrayLike,
    agents: AgentsOfRows = None,
    *,
    noise_sd: float = 1.0,
    prior_variance: float = 1.0,
    prior_share: PriorShare = "split",
    local: Sequence[bool | str] | None = None,
    partition: PartitionLike = "equal",
    seed: int | None = streams.SEED,
    rng: streams.Rng = None,
) -> LinearRegression:
    """Return Bayesian linear regression on a caller's own features and targets.

    Parameters
    ----------
    X, y
        Features (rows, dim), with a column of ones for an intercept, and targets (rows,); or lists
        of such arrays, one of each agent, without ``agents``; or mappings from the agents' names to
        such arrays. Columns of a table (pandas) are the names of coordinates in all results.
    agents
        Number of agents that the rows are split over, or the site of each row, such as a column:
        ``agents=df["clinic"]``.
    noise_sd, prior_variance
        Standard deviation of y given X, and v of the prior N(0, v I).
    prior_share
        Of each agent's potential: ``split`` (a share of 1/N, so that all agents together hold the
        prior once), ``omitted``, ``whole`` or ``twice``.
    local
        A mask of the features whose coefficients belong to the agent who holds them, or names of
        such columns: a column of ones is an intercept of its own. They are never sent, and have the
        same prior.
    partition
        How rows are split: ``"equal"`` (at random), ``"consecutive"``, or a mapping with a kind and
        options, as in a study's files.
    seed, rng
        Of the random split, as of ``concord.sample``.

    Returns
    -------
    LinearRegression
        With ``agents``, ``dim`` and ``posterior``.

    Raises
    ------
    ConcordError
        If the arrays do not fit each other or the number of agents.

    Examples
    --------
    >>> import concord, numpy as np
    >>> X = np.random.default_rng(0).standard_normal((100, 2))
    >>> problem = concord.problems.linear_regression(X, X @ [1, -2], agents=5, noise_sd=0.1)
    >>> problem.posterior.mean.round(2)
    array([ 1., -2.])
    """
    data = divide_rows(X, y, agents, partition, streams.seed_of(seed, rng))
    params = Params(noise_sd=noise_sd, prior_variance=prior_variance, prior_share=prior_share)
    mask = read_local(local, data.features.shape[2], data.columns)
    return LinearRegression(data, params, local=mask)


class LinearRegression(GeneralizedLinearProblem, QuadraticProblem):
    """Linear regression split over agents; a step's cost does not grow with the number of points.

    ``gram``, ``shift`` and ``posterior`` are as of any ``QuadraticProblem``. test: features and
    targets that no agent has, or None. beyond: features and targets that the posterior includes,
    though no agent has them.
    """

    test: tuple[np.ndarray, np.ndarray] | None = None
    link = staticmethod(np.asarray)  # the identity

    def __init__(
        self,
        data: AgentData,
        params: Params,
        beyond: tuple[np.ndarray, np.ndarray] | None = None,
        local: np.ndarray | None = None,
    ) -> None:
        self.data, self.local = data, local
        self.counts = data.counts
        self.agent_names, self.coordinate_names = data.sites, data.columns
        self.agents, _, self.dim = data.features.shape
        precision = self.precision = 1 / params.noise_sd**2
        share = prior_share(params.prior_share, self.agents, local)
        identity = np.eye(self.dim)
        likelihood = precision * data.features.swapaxes(1, 2) @ data.features
        self.prior_precision = share / params.prior_variance
        self.gram = likelihood + self.prior_precision * identity
        self.shift = precision * (data.features.swapaxes(1, 2) @ data.targets[..., None])[..., 0]
        # Padded rows of features and targets are zero and add nothing.
        self._half_sum_y2 = 0.5 * precision * (data.targets**2).sum(axis=1)
        self._information = likelihood.sum(axis=0)
        self._shares = share * self.agents / params.prior_variance
        if local is None:
            self.posterior = self._law(1 / params.prior_variance, beyond)
        else:
            self.posterior = posterior_of_quadratics(self.gram, self.shift, local)

    @property
    def sampled(self) -> Gaussian | PosteriorByAgent:
        """Return the law proportional to exp(-sum_i f_i), which prior shares may set apart from pi.

        A ConcordError if it is not a proper distribution, for want of points and of a prior.
        """
        if self.local is not None:
            return self.posterior
        values = np.linalg.eigvalsh(self._information)
        if values[0] + self._shares <= 1e-14 * values[-1]:
            raise ConcordError(
                "the potentials define no proper distribution: too few points and no prior; "
                "give agents a share of the prior"
            )
        return self._law(self._shares)

    def _law(
        self, prior_precision: float, beyond: tuple[np.ndarray, np.ndarray] | None = None
    ) -> Gaussian:
        """Return the Gaussian posterior under a prior of a given precision.

        prior_precision: of each coordinate. beyond: features and targets of points that count
        though no agent has them; None: none.
        """
        information, shift = self._information, self.shift.sum(axis=0)
        if beyond is not None:
            features, targets = beyond
            information = information + self.precision * features.T @ features
            shift = shift + self.precision * features.T @ targets
        cov = np.linalg.inv(information + prior_precision * np.eye(self.dim))
        return Gaussian(cov @ shift, cov)

    def held_out_log_density(self, mean: np.ndarray, cov: np.ndarray) -> np.ndarray:
        """Return log N(y; m^T X, sigma^2 + X^T C X) of each test point (X, y).

        That is the log density averaged over parameters x ~ N(m, C). mean, cov: m and C.
        """
        features, targets = cast("tuple[np.ndarray, np.ndarray]", self.test)
        variance = 1 / self.precision + (features @ cov * features).sum(axis=-1)
        square = (mean @ features.T - targets) ** 2 / variance
        return -0.5 * (square + np.log(2 * np.pi * variance))

    def prior_gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the prior's gradient s x / v, (chains, agents, dim)."""
        return x * self.prior_precision

    def batch_mean(self, batches: Batches) -> tuple[np.ndarray, np.ndarray]:
        """Return gram (agents, dim, dim) and shift (agents, dim) of the mean mini-batch gradient.

        The gradient is gram_i x - shift_i. With m_i points in the pool, of which a mini-batch
        stands for s_i (``Batches.points_stood_for``, else all n_i), the likelihood's part is
        s_i/m_i times its sum over the pool.
        """
        _, _, factor, gram, shift = self._pool_sums(batches)
        gram = factor[:, None, None] * gram + self.prior_precision * np.eye(self.dim)
        return gram, factor[:, None] * shift

    def _pool_sums(self, batches: Batches) -> tuple[np.ndarray, ...]:
        """Return features and targets of the pool, s_i/m_i, and gram and shift of the pool."""
        features, targets, counts = self.data.features, self.data.targets, self.counts
        gram, shift = self.gram - self.prior_precision * np.eye(self.dim), self.shift
        if batches.batch_pool == "all_but_last":
            counts = counts - 1
            drawn = np.arange(features.shape[1]) < counts[:, None]
            features, targets = features * drawn[..., None], targets * drawn
            gram = self.precision * features.swapaxes(1, 2) @ features
            shift = self.precision * (features.swapaxes(1, 2) @ targets[..., None])[..., 0]
        points = batches.points_stood_for
        factor = (self.counts if points is None else points) / counts
        return features, targets, factor, gram, shift

    def batch_noise_covariance(
        self, mean: np.ndarray, cov: np.ndarray, batches: Batches
    ) -> np.ndarray:
        r"""Return E[xi_i xi_i^T] of the mini-batch gradient's error xi_i, (agents, dim, dim).

        With g_j(x) the gradient of point j and x ~ (mean_i, cov_i), b points with replacement give

        .. math:: \frac{s_i^2}{b} \left( \frac{1}{m_i} \sum_j E[g_j g_j^\top]
                  - E[\bar g \bar g^\top] \right), \qquad \bar g = \frac{1}{m_i} \sum_j g_j,

        for the m_i points of the pool, of which a mini-batch stands for s_i (``batch_mean``).
        """
        second = cov + mean[:, :, None] * mean[:, None, :]
        features, targets, factor, likelihood, shift = self._pool_sums(batches)
        counts = self.counts - (batches.batch_pool == "all_but_last")
        square = (
            np.einsum("and,ade,ane->an", features, second, features)
            - 2 * targets * np.einsum("and,ad->an", features, mean)
            + targets**2
        )
        points = np.einsum("an,and,ane->ade", square, features, features) * self.precision**2
        centre = np.einsum("ade,ae->ad", likelihood, mean) - shift
        total = centre[:, :, None] * centre[:, None, :] + likelihood @ cov @ likelihood
        weight = (factor**2)[:, None, None]
        return weight * (counts[:, None, None] * points - total) / batches.batch_size

    def potential(self, x: np.ndarray) -> np.ndarray:
        """Return f_i(x_i), shape (chains, agents)."""
        return super().potential(x) + self._half_sum_y2
