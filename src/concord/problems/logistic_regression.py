r"""Bayesian logistic regression.

.. math::
    f_i(x) = \sum_{j=1}^{n_i} \left[ \log(1 + e^{z_j}) - y_j z_j \right]
             - s \log p(x), \qquad z_j = x^\top X_j^i, \quad y_j \in \{0, 1\}

with a Gaussian prior N(0, v I) or independent Laplace priors of scale b, and the prior's share s of
each agent: 1/N (split), 0 (omitted) or 1 (whole; gurbuzbalaban2021, section 5.2, prints
||x||^2 / lambda for every agent, that is v = lambda / 2 and s = 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from concord.errors import ConcordError
from concord.parameters import param
from concord.partition import AgentData, Partition
from concord.problems import BatchGradient, Gradient, Stream
from concord.problems.linear_regression import SHARES, prior_share


@dataclass(frozen=True)
class Params:
    """The data (drawn, or a data set), and the prior."""

    dataset: str = param(
        "synthetic points, or the name of a data set",
        default="synthetic",
        choices=("synthetic", "breast_cancer"),
    )
    points: int = param("number of synthetic points, over all agents", default=1000, minimum=1)
    dim: int = param("dimension d of synthetic features", default=2, minimum=1)
    feature_variance: float = param("variance of each synthetic feature", default=20.0, above=0)
    logit_noise_sd: float = param(
        "standard deviation of the noise delta_j added to the logit when labels are drawn",
        default=0.0,
        minimum=0,
    )
    truth_variance: float = param(
        "variance of N(0, . I), the law of the data-generating parameter", default=1.0, above=0
    )
    prior: str = param("prior family", default="gaussian", choices=("gaussian", "laplace"))
    prior_scale: float = param(
        "variance v of the Gaussian prior, or scale b of the Laplace prior", default=1.0, above=0
    )
    prior_share: str = param(
        "prior in each agent's potential: 1/N of it (split), none (omitted), all of it (whole)",
        default="split",
        choices=SHARES,
    )


def check(params: Params, agents: int) -> None:
    """Refuse more agents than points."""
    points = {"breast_cancer": 569}.get(params.dataset, params.points)
    if agents > points:
        raise ConcordError(
            f"{agents} agents cannot share {points} points; give each agent at least one point"
        )


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, resources: Path
) -> LogisticRegression:
    """Draw or load the points and split them over the agents.

    Synthetic labels are Bernoulli with logit x^T X_j + delta_j. A data set's features are
    standardized over all its rows and get an intercept column of ones.
    """
    if params.dataset == "synthetic":
        features, labels = _synthetic(params, stream("data"))
    else:
        from concord import datasets

        features, labels = datasets.breast_cancer()
        features = (features - features.mean(axis=0)) / features.std(axis=0)
        features = np.column_stack([features, np.ones(len(features))])
    parts = partition.split(labels, agents, stream("partition"))
    return LogisticRegression(AgentData.from_parts(features, labels.astype(float), parts), params)


def _synthetic(params: Params, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    truth = np.sqrt(params.truth_variance) * rng.standard_normal(params.dim)
    features = np.sqrt(params.feature_variance) * rng.standard_normal((params.points, params.dim))
    logit = features @ truth + params.logit_noise_sd * rng.standard_normal(params.points)
    labels = rng.random(params.points) < sigmoid(logit)
    return features, labels.astype(float)


def sigmoid(z: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Return 1 / (1 + exp(-z)) without overflow, as (1 + tanh(z / 2)) / 2."""
    out = np.multiply(z, 0.5, out=out)
    np.tanh(out, out=out)
    out += 1.0
    out *= 0.5
    return out


class LogisticRegression:
    """Logistic regression split over agents."""

    posterior = None

    def __init__(self, data: AgentData, params: Params) -> None:
        self.data = data
        self.counts = data.counts
        self.agents, _, self.dim = data.features.shape
        self.share = prior_share(params.prior_share, self.agents)
        self.prior, self.prior_scale = params.prior, params.prior_scale

    def gradient(self, chains: int) -> Gradient:
        r"""Return ``g(x, out)`` writing sum_j (h(z_j) - y_j) X_j + s grad(-log p)(x_i)."""
        agents, points, _ = self.data.features.shape
        residual = np.empty((agents, chains, points))
        transposed = np.ascontiguousarray(self.data.features.swapaxes(1, 2))
        targets = self.data.targets[:, None, :]

        def gradient(x: np.ndarray, out: np.ndarray) -> np.ndarray:
            np.matmul(x.swapaxes(0, 1), transposed, out=residual)
            sigmoid(residual, out=residual)
            np.subtract(residual, targets, out=residual)
            # Padded rows have zero features, so their residual does not count.
            np.matmul(residual, self.data.features, out=out.swapaxes(0, 1))
            return self._add_prior(x, out)

        return gradient

    def batch_gradient(self, chains: int, batch_size: int) -> BatchGradient:
        """Return ``g(x, rows, out)``; rows: (chains, agents, batch), row numbers of each agent."""
        shape = (chains, self.agents, batch_size)
        features = np.empty((*shape, self.dim))
        targets, residual = np.empty(shape), np.empty(shape)
        flat = np.empty(shape, dtype=np.intp)
        offset = (np.arange(self.agents) * self.data.features.shape[1])[:, None]
        table = self.data.features.reshape(-1, self.dim)
        column = self.data.targets.reshape(-1)
        scale = (self.counts / batch_size)[:, None]

        def gradient(x: np.ndarray, rows: np.ndarray, out: np.ndarray) -> np.ndarray:
            np.add(rows, offset, out=flat)
            np.take(table, flat, axis=0, out=features, mode="clip")
            np.take(column, flat, out=targets, mode="clip")
            np.matmul(features, x[..., None], out=residual[..., None])
            sigmoid(residual, out=residual)
            np.subtract(residual, targets, out=residual)
            np.matmul(residual[..., None, :], features, out=out[..., None, :])
            np.multiply(out, scale, out=out)
            return self._add_prior(x, out)

        return gradient

    def _add_prior(self, x: np.ndarray, out: np.ndarray) -> np.ndarray:
        if self.share == 0:
            return out
        if self.prior == "gaussian":
            out += (self.share / self.prior_scale) * x
        else:
            out += (self.share / self.prior_scale) * np.sign(x)
        return out

    def potential(self, x: np.ndarray) -> np.ndarray:
        """Return f_i(x_i), shape (chains, agents), up to the prior's constant."""
        z = np.einsum("cad,and->can", x, self.data.features)
        likelihood = (np.logaddexp(0, z) - self.data.targets * z) * self.data.mask
        if self.prior == "gaussian":
            prior = (x**2).sum(axis=-1) / (2 * self.prior_scale)
        else:
            prior = np.abs(x).sum(axis=-1) / self.prior_scale
        return likelihood.sum(axis=-1) + self.share * prior

    def misclassified(self, x: np.ndarray) -> np.ndarray:
        """Return how many points of all agents each x_i classifies wrongly, (chains, agents).

        A point is given label 1 where P(y = 1 | x_i) >= 1/2, that is x_i^T X >= 0.
        """
        features, labels = self.data.pooled()
        predicted = x @ features.T >= 0
        return (predicted != (labels > 0.5)).sum(axis=-1)

    def accuracy(self, x: np.ndarray) -> np.ndarray:
        """Return the fraction of all agents' points each x_i classifies right, (chains, agents)."""
        return 1 - self.misclassified(x) / self.counts.sum()
