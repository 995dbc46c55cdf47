r"""The mean of a normal law whose covariance is known: the posterior is Gaussian and known.

.. math::
    y_j \sim N(x, \Sigma), \qquad x \sim N(0, V) \text{ or flat}, \qquad
    f_i(x) = \frac12 \sum_{j=1}^{n_i} (y_j^i - x)^\top \Sigma^{-1} (y_j^i - x)
             + \frac{1}{2 N} x^\top V^{-1} x

Points are those of a table, or drawn: those of agent i from :math:`N(m_i, \Sigma)`, with m_i from
:math:`N(0, s^2 I)`, by which agents differ (``spread`` s). Every agent has 1/N of the log prior.
Affine samplers have exact laws on it, and mini-batches may be drawn.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from concord.contracts import DataSets, Stream
from concord.errors import ConcordError
from concord.options import Count, NonNegative, Options, Positive, Some
from concord.problems.points import check_agents
from concord.problems.quadratic_problem import QuadraticProblem
from concord.sampling.partition import AgentData, Partition
from concord_studies.contracts import ProblemDeclaration
from concord_studies.datasets.points import Table, read_points, required_tables

Covariance = Positive | Some[Some[float]]


class Params(Options):
    """Options of the points, their covariance, and the prior."""

    table: Table = None
    points: Annotated[Count, "number of points that are drawn, over all agents"] = 100
    dim: Annotated[Count, "their dimension d"] = 2
    spread: Annotated[
        NonNegative, "standard deviation of the coordinates of agents' own means, if drawn"
    ] = 0.0
    noise: Annotated[Covariance, "covariance Sigma of a point: a variance, or rows"] = 1.0
    prior: Annotated[
        Covariance | None, "covariance V of the prior: a variance, or rows; none: flat"
    ] = None


def check(params: Params, agents: int) -> None:
    """Raise a ConcordError for more agents than points, or for an invalid covariance."""
    if params.table is None:
        check_agents(params, agents)
    for name, entries in (("noise", params.noise), ("prior", params.prior)):
        if isinstance(entries, tuple):
            is_square = {*map(len, entries)} == {len(entries)}
            rows = np.array(entries) if is_square else np.zeros((1, 1))
            if (rows != rows.T).any() or np.linalg.eigvalsh(rows)[0] <= 0:
                raise ConcordError(
                    f"{name}: its rows are no symmetric, positive definite matrix; give one, or a "
                    "variance"
                )


DECLARES = ProblemDeclaration(name="Gaussian location", needs=required_tables)


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, data_sets: DataSets
) -> GaussianLocation:
    """Read points from a table, which says who holds them, or draw them for each agent."""
    if params.table is None:
        rng, shape = stream("data"), (params.points, params.dim)
        root = np.linalg.cholesky(np.linalg.inv(_precision(params.noise, params.dim)))
        points = rng.standard_normal(shape) @ root.T
        parts = partition.split(params.points, agents, stream("partition"))
        means = params.spread * stream("heterogeneity").standard_normal((agents, params.dim))
        for mean, part in zip(means, parts, strict=True):
            points[part] += mean
        return GaussianLocation(AgentData.from_parts(points, np.zeros(len(points)), parts), params)
    first, last, parts = read_points(params.table, data_sets, agents, partition)
    points = np.column_stack([first, last])
    return GaussianLocation(AgentData.from_parts(points, np.zeros(len(points)), parts), params)


class GaussianLocation(QuadraticProblem):
    """The posterior of a normal law's mean, with points ``data`` split over agents."""

    def __init__(self, data: AgentData, params: Params) -> None:
        self.data, self.counts = data, data.counts
        agents, _, dim = data.features.shape
        self.precision = _precision(params.noise, dim)
        prior = np.zeros((dim, dim)) if params.prior is None else _precision(params.prior, dim)
        self.prior = prior / agents
        gram = self.counts[:, None, None] * self.precision + self.prior
        super().__init__(gram, data.features.sum(axis=1) @ self.precision)

    def batch_gradient(self, x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return n_i Sigma^-1 (x - mean of the mini-batch) + V^-1 x / N, (chains, agents, dim).

        rows: points of the mini-batches, (chains, agents, batch), numbered within each agent.
        """
        points, _ = self.data.points_at(rows)
        away = self.counts[:, None] * (x - points.mean(axis=2))
        return away @ self.precision + self.prior_gradient(x)

    def prior_gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the prior's gradient V^-1 x / N, (chains, agents, dim)."""
        return x @ self.prior


def _precision(covariance: Covariance, dim: int) -> np.ndarray:
    """Return the inverse of a covariance, (dim, dim). A ConcordError for another dimension."""
    rows = np.array(covariance, dtype=float)
    matrix = np.eye(dim) * rows if rows.ndim == 0 else rows
    if matrix.shape != (dim, dim):
        raise ConcordError(f"{len(matrix)} rows are no covariance of {dim} coordinates; give {dim}")
    return np.linalg.inv(matrix)
