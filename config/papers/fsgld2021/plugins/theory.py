r"""Gradient estimators and laws of DSGLD and FSGLD in closed form, for S shards of N points each.

Every visit goes to a shard s, each with probability 1/S, and makes n updates there with its
mini-batches of m points. The estimator of the gradient of log p(x | theta) is

.. math:: v_s = \frac{S N}{m} \sum_{x \in batch} \nabla \log p(x | \theta) + g_s(\theta)

with g_s = 0 for DSGLD. Where x ~ N(theta, I), and the prior has precision 1, an update is

.. math:: \theta \leftarrow a \theta + (1 - a) t_s + w, \qquad a = 1 - \frac{h}{2} (S N + 1),

with t_s = S N mean(x_s) / (S N + 1) of DSGLD, the posterior's mean of FSGLD with exact surrogates,
and w of covariance :math:`h I + (h S N / 2)^2 C_s / m`, C_s that of the shard's points.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

THIN = 100  # updates between two draws (section 5.1)


def estimator_moments(
    points: np.ndarray, batch: int, conducive: np.ndarray | float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the gradient estimator's mean, and its variances within and between shards.

    They are of each coordinate, (..., dim); the variance is the sum of both parts. points:
    gradients of each point's log likelihood, (..., shards, points, dim). conducive: g_s, (...,
    shards, dim). Points of a mini-batch are drawn with replacement.
    """
    scale = points.shape[-3] * points.shape[-2]
    given_shard = scale * points.mean(axis=-2) + conducive
    within = scale**2 / batch * points.var(axis=-2)
    return given_shard.mean(axis=-2), within.mean(axis=-2), given_shard.var(axis=-2)


def variance_bound(constants: np.ndarray, points: int, batch: int) -> float:
    """Return sum_s N^2 c_s / (f_s m), of gamma_s^2 (Theorem 1) or epsilon_s^2 (Theorem 2)."""
    return float(len(constants) * points**2 * constants.sum() / batch)


@dataclass(frozen=True)
class Visits:
    """Visits to shards of N(theta, I), by what an update does.

    shrink: a. centers: t_s, (shards, dim). noise: covariances of w, (shards, dim, dim). updates: n.
    """

    shrink: float
    centers: np.ndarray
    noise: np.ndarray
    updates: int

    @classmethod
    def of(cls, problem: Any, sampler: Any) -> Visits:
        """Return the visits of a run of fsgld on the problem ``shards_of_means``."""
        shards, count, _ = problem.data.features.shape
        gamma, slope = sampler.step_size(0), problem.gram.sum(axis=0)[0, 0]
        centers = shards * problem.shift / slope
        if sampler.surrogates != "none":
            centers = np.repeat(problem.posterior.mean[None], shards, axis=0)
        noise = 2 * gamma * np.tile(np.eye(problem.dim), (shards, 1, 1))
        if sampler.batch_size is not None:
            spread = np.array([np.cov(rows.T, bias=True) for rows in problem.data.features])
            noise += (gamma * shards * count) ** 2 / sampler.batch_size * spread
        return cls(1 - gamma * slope, centers, noise, sampler.local_steps)

    @property
    def mean(self) -> np.ndarray:
        """The mean of the law, at any update of a visit, (dim,)."""
        return self.centers.mean(axis=0)

    @property
    def end(self) -> np.ndarray:
        """The covariance of the law after the last update of a visit, (dim, dim)."""
        c = self.shrink**self.updates
        between = np.cov(self.centers.T, bias=True)
        return (1 - c) / (1 + c) * between + self.noise.mean(axis=0) / (1 - self.shrink**2)

    def cov(self, update: int) -> np.ndarray:
        """Return the covariance of the law after an update of a visit, the first one being 1."""
        means, covs = self.given_shard(update)
        result: np.ndarray = covs.mean(axis=0) + np.cov(means.T, bias=True)
        return result

    def mean_error(self, update: int, visits: int, draws: np.ndarray) -> np.ndarray:
        """Return E|mean of the first k draws - mean|^2, where draws are so many visits apart.

        update: of a visit, after which draws are taken. draws: k. A shard that pulls theta before a
        draw does so after it, until its visit ends, so that neighbors are closer than others.
        """
        before, after = self.shrink**update, self.shrink ** (self.updates - update)
        between = np.cov(self.centers.T, bias=True)
        end = after * self.cov(update) + (1 - after) * (1 - before) * between
        per_visit, k = self.shrink**self.updates, draws
        neighbors, r = before * per_visit ** (visits - 1) * np.trace(end), per_visit**visits
        pairs = (k * (1 - r) - (1 - r**k)) / (1 - r) ** 2  # sum of (k - l) r^(l - 1)
        error: np.ndarray = np.trace(self.cov(update)) / k + 2 * neighbors * pairs / k**2
        return error

    def given_shard(self, update: int) -> tuple[np.ndarray, np.ndarray]:
        """Return means (shards, dim) and covariances of the law, given the shard of the visit."""
        c = self.shrink**update
        means = c * self.mean + (1 - c) * self.centers
        return means, c**2 * self.end + self.noise * (1 - c**2) / (1 - self.shrink**2)
