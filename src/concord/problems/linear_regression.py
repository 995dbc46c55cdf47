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

from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta

from concord.contracts import BatchGradient, Gradient, GradientAt, Prox, Stream
from concord.errors import ConcordError
from concord.laws.gaussian import Gaussian
from concord.options import Count, Options, Positive, choices
from concord.sampling.partition import AgentData, Partition, consecutive_counts

PriorShare = Annotated[
    Literal["split", "omitted", "whole"],
    "prior in each agent's potential: 1/N of it (split), none (omitted), all of it (whole)",
]
SHARES = choices(PriorShare)
LegacySeed = Annotated[
    Annotated[int, Meta(ge=0, le=2**32 - 1)] | None,
    "draw the data agent by agent from NumPy's legacy generator with this seed, as "
    "tzikas2024's authors do; none: from the paper's data stream",
]


class Params(Options):
    """Size and law of the data, and the prior."""

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
    """Refuse more agents than points, and two ways to say how many points there are."""
    points = total_points(params, agents)
    if agents > points:
        raise ConcordError(
            f"{agents} agents cannot share {points} points; give each agent at least one point"
        )


def total_points(params: Any, agents: int) -> int:
    """Return the number of points over all agents."""
    if (params.points is None) == (params.points_per_agent is None):
        raise ConcordError(
            f"points is {params.points} and points_per_agent {params.points_per_agent}; "
            "give exactly one of them"
        )
    return params.points or agents * params.points_per_agent


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, resources: Path
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
        features = rng.standard_normal((points, params.dim))
        features *= np.sqrt(params.feature_variance)
        noise = params.noise_sd * rng.standard_normal(points)
    else:
        truth, features, noise = _legacy(params, points, agents)
    targets = features @ truth + noise
    parts = partition.split(points, agents, stream("partition"))
    return LinearRegression(AgentData.from_parts(features, targets, parts), params)


def _legacy(params: Params, points: int, agents: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw parameter, then each agent's features and noise, in the order of tzikas2024's authors.

    Their law is that of section 6.2, eq. (26).
    """
    rng = np.random.RandomState(params.legacy_seed)
    origin, identity = np.zeros(params.dim), np.eye(params.dim)
    truth = rng.multivariate_normal(origin, params.prior_variance * identity)
    features, noise = [], []
    for count in consecutive_counts(points, agents):
        features.append(
            rng.multivariate_normal(origin, params.feature_variance * identity, size=count)
        )
        noise.append(rng.normal(0.0, params.noise_sd, size=count))
    return truth, np.concatenate(features), np.concatenate(noise)


class LinearRegression:
    """Linear regression split over agents; costs per step do not grow with the number of points.

    Attributes
    ----------
    gram, shift
        Shapes (agents, dim, dim) and (agents, dim): the gradient of f_i is gram_i x - shift_i.
    posterior
        The exact posterior, a ``Gaussian``.
    """

    def __init__(self, data: AgentData, params: Params) -> None:
        self.data = data
        self.counts = data.counts
        self.agents, _, self.dim = data.features.shape
        precision = 1 / params.noise_sd**2
        share = prior_share(params.prior_share, self.agents)
        identity = np.eye(self.dim)
        likelihood = precision * data.features.swapaxes(1, 2) @ data.features
        self.prior_precision = share / params.prior_variance
        self.gram = likelihood + self.prior_precision * identity
        self.shift = precision * (data.features.swapaxes(1, 2) @ data.targets[..., None])[..., 0]
        self._precision = precision
        # Padded rows of features and targets are zero and add nothing.
        self._half_sum_y2 = 0.5 * precision * (data.targets**2).sum(axis=1)
        self._information = likelihood.sum(axis=0)
        self._shares = share * self.agents / params.prior_variance
        self.posterior = self._law(1 / params.prior_variance)

    @property
    def sampled(self) -> Gaussian:
        """The law proportional to exp(-sum_i f_i): the posterior if the prior's shares make one.

        Raises
        ------
        ConcordError
            If it is no law, for want of points and of a prior.
        """
        values = np.linalg.eigvalsh(self._information)
        if values[0] + self._shares <= 1e-14 * values[-1]:
            raise ConcordError(
                "the potentials add up to no law: too few points and no prior; "
                "give agents a share of the prior"
            )
        return self._law(self._shares)

    def _law(self, prior_precision: float) -> Gaussian:
        cov = np.linalg.inv(self._information + prior_precision * np.eye(self.dim))
        return Gaussian(cov @ self.shift.sum(axis=0), cov)

    def from_chain(self, first: int) -> LinearRegression:
        """Return the problem itself: its chains have the same data."""
        return self

    def gradient(self, chains: int) -> Gradient:
        """Return ``g(x, out)`` writing gram_i x_i - shift_i; x, out: (chains, agents, dim)."""
        product = np.empty((chains, self.agents, self.dim))
        # For the few dimensions of regression problems, one multiplication per column of the
        # Gram matrices over all chains and agents beats as many tiny matrix products.
        columns = [np.ascontiguousarray(self.gram[:, :, j]) for j in range(self.dim)]
        if self.dim > 8:
            return self._matmul_gradient()

        def gradient(x: np.ndarray, out: np.ndarray) -> np.ndarray:
            np.multiply(x[..., :1], columns[0], out=out)
            for j in range(1, self.dim):
                np.multiply(x[..., j : j + 1], columns[j], out=product)
                np.add(out, product, out=out)
            return np.subtract(out, self.shift, out=out)

        return gradient

    def _matmul_gradient(self) -> Gradient:
        def gradient(x: np.ndarray, out: np.ndarray) -> np.ndarray:
            np.matmul(x.swapaxes(0, 1), self.gram, out=out.swapaxes(0, 1))
            return np.subtract(out, self.shift, out=out)

        return gradient

    def prox(self, chains: int, curvature: np.ndarray) -> Prox:
        """Return ``solve(agent, linear, start, out)``, in closed form, inverted once."""
        matrices = self.gram + np.asarray(curvature, dtype=float)[:, None, None] * np.eye(self.dim)
        values = np.linalg.eigvalsh(matrices)
        flat = np.flatnonzero(values[:, 0] <= 1e-14 * values[:, -1])
        if flat.size:
            raise ConcordError(
                f"agent {flat[0]} has no unique minimizer: too few points, no prior and no "
                "neighbors; give it a share of the prior"
            )
        inverse = np.linalg.inv(matrices)
        columns = [np.ascontiguousarray(inverse[:, :, j]) for j in range(self.dim)]
        product = np.empty((chains, self.agents, self.dim))

        def solve(agent: Any, linear: np.ndarray, start: np.ndarray, out: np.ndarray) -> np.ndarray:
            np.add(linear, self.shift[agent], out=linear)
            if not isinstance(agent, slice):
                return np.matmul(linear, inverse[agent], out=out)
            if self.dim > 8:
                np.matmul(linear.swapaxes(0, 1), inverse, out=out.swapaxes(0, 1))
                return out
            np.multiply(linear[..., :1], columns[0], out=out)
            for j in range(1, self.dim):
                np.multiply(linear[..., j : j + 1], columns[j], out=product)
                np.add(out, product, out=out)
            return out

        return solve

    def gradient_at(self, chains: int, width: int) -> GradientAt:
        """Return ``g(x, agents, out)``: the gradients of ``width`` chosen agents of each chain."""
        gram = np.empty((chains, width, self.dim, self.dim))
        shift = np.empty((chains, width, self.dim))

        def gradient(x: np.ndarray, agents: np.ndarray, out: np.ndarray) -> np.ndarray:
            np.take(self.gram, agents, axis=0, out=gram, mode="clip")
            np.take(self.shift, agents, axis=0, out=shift, mode="clip")
            np.matmul(gram, x[..., None], out=out[..., None])
            return np.subtract(out, shift, out=out)

        return gradient

    def batch_gradient(self, chains: int, batch_size: int) -> BatchGradient:
        """Return ``g(x, rows, out)``; rows: (chains, agents, batch), row numbers of each agent."""
        shape = (chains, self.agents, batch_size)
        features = np.empty((*shape, self.dim))
        targets, residual = np.empty(shape), np.empty(shape)
        flat = np.empty(shape, dtype=np.intp)
        prior = np.empty((chains, self.agents, self.dim))
        offset = (np.arange(self.agents) * self.data.features.shape[1])[:, None]
        table = self.data.features.reshape(-1, self.dim)
        column = self.data.targets.reshape(-1)
        scale = (self._precision * self.counts / batch_size)[:, None]

        def gradient(x: np.ndarray, rows: np.ndarray, out: np.ndarray) -> np.ndarray:
            np.add(rows, offset, out=flat)
            np.take(table, flat, axis=0, out=features, mode="clip")
            np.take(column, flat, out=targets, mode="clip")
            np.matmul(features, x[..., None], out=residual[..., None])
            np.subtract(residual, targets, out=residual)
            np.matmul(residual[..., None, :], features, out=out[..., None, :])
            np.multiply(out, scale, out=out)
            np.multiply(x, self.prior_precision, out=prior)
            return np.add(out, prior, out=out)

        return gradient

    def batch_noise_covariance(
        self, mean: np.ndarray, cov: np.ndarray, batch_size: int
    ) -> np.ndarray:
        r"""Return E[xi_i xi_i^T] of the mini-batch gradient's error, shape (agents, dim, dim).

        With g_j(x) the gradient of point j and x ~ (mean_i, cov_i), b points with replacement give

        .. math:: \frac{n_i^2}{b} \left( \frac{1}{n_i} \sum_j E[g_j g_j^\top]
                  - E[\bar g \bar g^\top] \right), \qquad \bar g = \frac{1}{n_i} \sum_j g_j.
        """
        second = cov + mean[:, :, None] * mean[:, None, :]
        features, targets = self.data.features, self.data.targets
        square = (
            np.einsum("and,ade,ane->an", features, second, features)
            - 2 * targets * np.einsum("and,ad->an", features, mean)
            + targets**2
        )
        points = np.einsum("an,and,ane->ade", square, features, features) * self._precision**2
        likelihood = self.gram - self.prior_precision * np.eye(self.dim)
        centre = np.einsum("ade,ae->ad", likelihood, mean) - self.shift
        total = centre[:, :, None] * centre[:, None, :] + likelihood @ cov @ likelihood
        counts = self.counts[:, None, None]
        return (counts * points - total) / batch_size

    def potential(self, x: np.ndarray) -> np.ndarray:
        """Return f_i(x_i), shape (chains, agents)."""
        quadratic = 0.5 * np.einsum("cad,ade,cae->ca", x, self.gram, x)
        return quadratic - np.einsum("cad,ad->ca", x, self.shift) + self._half_sum_y2


def prior_share(share: str, agents: int) -> float:
    """Return the fraction of the log prior that each agent's potential holds."""
    return {"split": 1 / agents, "omitted": 0.0, "whole": 1.0}[share]
