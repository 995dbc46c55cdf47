r"""Mixture of two Gaussians with tied means: two parameters, a posterior with two modes.

.. math::
    \theta_1 \sim N(0, v_1), \quad \theta_2 \sim N(0, v_2), \qquad
    x_j \sim \tfrac12 N(\theta_1, s) + \tfrac12 N(m, s), \quad m = \theta_1 + \theta_2

    f_i(\theta) = -\sum_{j=1}^{n_i} \log p(x_j^i \mid \theta) - \tfrac1N \log p(\theta)

Source: bhar2023, eqs. (56)-(57), where v_1 = 10, v_2 = 1, s = 2 and the data come from
theta = (0, 1); parayil2020 has the same model. Equation (57) prints the second component as
N(theta_2, s): ``second_mean: theta_2`` follows it, the default is the model of the source that
bhar2023 names. Either way theta = (0, 1) gives the same data. No closed form of the posterior
exists; ``reference`` holds it on a dense grid.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta
from numpy.typing import ArrayLike

from concord import streams
from concord.contracts import DataSets, Stream
from concord.errors import ConcordError
from concord.hints import choices
from concord.laws.quadrature import Grid, from_log_density
from concord.options import Count, Options, Positive
from concord.problems.arithmetic import sum_softplus
from concord.problems.arrays import AgentsOfRows, divide_rows
from concord.problems.one_data_set import OneDataSet, TwoParameters
from concord.problems.points import check_agents
from concord.sampling.partition import AgentData, Partition, PartitionLike
from concord.values import read_numbers

# Two modes are declared out of reach after so many sets of points; of small sets, after so many
# points, which take a millisecond each.
ATTEMPTS, POINTS = 50, 3000

SecondMean = Annotated[Literal["theta_1 + theta_2", "theta_2"], "mean of the second component"]
MEANS = choices(SecondMean)


class Params(Options):
    """Options of the mixture model, its prior, and the points drawn from it."""

    points: Annotated[Count, "number of points, over all agents"] = 100
    second_mean: SecondMean = "theta_1 + theta_2"
    prior_variances: Annotated[tuple[Positive, Positive], "variances of the prior"] = (10.0, 1.0)
    variance: Annotated[Positive, "variance s of each component"] = 2.0
    truth: Annotated[tuple[float, float], "theta that the points are drawn from"] = (0.0, 1.0)
    grid: Annotated[
        int, Meta(ge=8, le=5000), "cells along each axis of the reference posterior"
    ] = 640
    modes: Annotated[
        Literal["any", "two"], "any set of points, or the first one whose posterior has two modes"
    ] = "any"


check = check_agents


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, data_sets: DataSets
) -> TiedMixture:
    """Draw points from the mixture at ``truth``, and split them over the agents.

    The points depend on ``stream("data")`` alone, so every number of agents sees the same ones. A
    ConcordError if ``modes: two`` is required and no draw has them.
    """
    return next(draw_problems(params, agents, partition, stream))


def draw_problems(
    params: Params, agents: int, partition: Partition, stream: Stream
) -> Iterator[TiedMixture]:
    """Yield the problems of one set of points after another, whose posteriors have ``modes``."""
    rng, divide = stream("data"), stream("partition")
    attempts = max(ATTEMPTS, POINTS // params.points)
    tried = 0
    while tried < attempts:
        points = draw_points(params, rng)
        parts = partition.split(params.points, agents, divide)
        problem, tried = mixture(params, points, parts), tried + 1
        if params.modes == "any" or problem.has_two_modes:
            yield problem
            tried = 0
    raise ConcordError(
        f"no draw of {attempts} gave {params.points} points of variance {params.variance:g} a "
        "posterior with two modes; raise points, lower variance or set modes: any"
    )


def draw_points(params: Params, rng: np.random.Generator) -> np.ndarray:
    """Return points drawn from the mixture at ``truth``, (points,)."""
    first, second = params.truth
    means = np.array([first, first + second if params.second_mean == MEANS[0] else second])
    component = rng.integers(0, 2, params.points)
    return means[component] + np.sqrt(params.variance) * rng.standard_normal(params.points)


def mixture(params: Params, points: np.ndarray, parts: list[np.ndarray]) -> TiedMixture:
    """Build the problem of given points, (points,).

    parts: the rows of each agent, an array for each.
    """
    return TiedMixture(AgentData.from_parts(np.empty((len(points), 0)), points, parts), params)


def from_arrays(
    points: ArrayLike,
    agents: AgentsOfRows,
    *,
    variance: float = 2.0,
    prior_variances: tuple[float, float] = (10.0, 1.0),
    second_mean: SecondMean = "theta_1 + theta_2",
    grid: int = 640,
    partition: PartitionLike = "equal",
    seed: int | None = streams.SEED,
    rng: streams.Rng = None,
) -> TiedMixture:
    """Return the mixture of two Gaussians on a caller's own points.

    Parameters
    ----------
    points
        Numbers (rows,).
    agents
        Number of agents that the points are split over, or the site of each.
    variance, prior_variances
        s of each component, and those of the priors of theta_1 and theta_2.
    second_mean
        ``theta_1 + theta_2`` or ``theta_2``.
    grid
        Cells along each axis of the reference posterior.
    partition, seed, rng
        As of ``concord.problems.linear_regression``.

    Returns
    -------
    TiedMixture
        With ``agents``, ``dim`` and ``reference``, the exact posterior on a grid.

    Raises
    ------
    ConcordError
        If the points are not numbers, or do not fit the number of agents.

    Examples
    --------
    >>> import concord
    >>> problem = concord.problems.tied_mixture([-1.0, 0.5, 1.0, 2.5], agents=2)
    >>> problem.counts
    array([2, 2])
    """
    numbers = read_numbers(points, "points")
    if numbers.ndim != 1:
        raise ConcordError(f"points: they have the shape {numbers.shape}; give numbers (rows,)")
    columns = np.ones((len(numbers), 1)), numbers
    data = divide_rows(*columns, agents, partition, streams.seed_of(seed, rng))
    params = Params(
        second_mean=second_mean, prior_variances=prior_variances, variance=variance, grid=grid
    )
    return TiedMixture(data, params)


class TiedMixture(TwoParameters, OneDataSet):
    r"""The posterior of the means of a mixture of two normals, with points split over agents.

    x_j ~ N(theta_1, s) / 2 + N(m, s) / 2, where s is the variance and m = theta_1 + theta_2, or
    theta_2 if ``second_mean`` says so.

    With :math:`t_j = \tanh(w (x_j - q) / 2)`, where :math:`w = (m - \theta_1) / s` and :math:`q =
    (\theta_1 + m) / 2`, point j is of the second component with the probability :math:`(1 + t_j) /
    2`, so that gradients need the points through :math:`\sum_j t_j` and :math:`\sum_j t_j x_j`
    only: one exponential for each point.

    points: shape (agents, n_max), padded with zeros. mask: 1 for points, 0 for padding. totals:
    number and sum of each agent's points, (agents, 2). reference: the exact posterior, a ``Grid``.
    """

    dim = 2
    posterior = None

    def __init__(self, data: AgentData, params: Params) -> None:
        self.counts, self.agents, self.params = data.counts, len(data.counts), params
        self.agent_names = data.sites
        self._data = data
        self.points, self.mask = data.targets, data.mask
        self._table = np.stack([self.mask, self.points], axis=-1)
        self.totals, self._squares = self._table.sum(axis=1), (self.points**2).sum(axis=1)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the gradient of every f_i at x_i, (chains, agents, 2)."""
        tilts = component_contrasts(self.params, x.swapaxes(0, 1), self.points[:, None])
        return self.gradients_from_sums(x, (tilts @ self._table).swapaxes(0, 1), self.totals)

    def gradient_of(self, agents: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return the gradients of chosen agents, (chains, few, dim)."""
        tilts = component_contrasts(self.params, x, self.points.take(agents, axis=0))
        sums = tilts[..., None, :] @ self._table.take(agents, axis=0)
        return self.gradients_from_sums(x, sums[..., 0, :], self.totals.take(agents, axis=0))

    def batch_gradient(self, x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return mini-batch gradients (``WithMiniBatches``), (chains, agents, dim)."""
        _, points = self._data.points_at(rows)
        tilts, count = component_contrasts(self.params, x, points), rows.shape[-1]
        sums = np.stack([tilts.sum(axis=-1), np.vecdot(tilts, points)], axis=-1)
        totals = np.stack([np.full(x.shape[:2], count), points.sum(axis=-1)], axis=-1)
        scale = (self.counts / count)[:, None]
        return self.gradients_from_sums(x, scale * sums, scale * totals)

    def gradients_from_sums(
        self, x: np.ndarray, sums: np.ndarray, totals: np.ndarray
    ) -> np.ndarray:
        """Return gradients at x from sums over points, (..., agents, 2).

        sums: of t_j and t_j x_j, (..., agents, 2). totals: of 1 and x_j, (agents, 2).
        """
        first, mean = _means(self.params, x)
        scale = 0.5 / self.params.variance
        ones, moments = scale * (totals - sums), scale * (totals + sums)
        # sum_j (1 - r_j) (theta_1 - x_j) / s and sum_j r_j (m - x_j) / s
        pull = first * ones[..., 0] - ones[..., 1]
        second_pull = mean * moments[..., 0] - moments[..., 1]
        if self.params.second_mean == MEANS[0]:
            pull = pull + second_pull
        prior = 1 / np.array(self.params.prior_variances) / self.agents
        return np.stack([pull, second_pull], axis=-1) + prior * x

    def curvature(self) -> tuple[np.ndarray, np.ndarray]:
        """Return infinite bounds of the Hessians, both (agents, 2, 2), since they are unbounded.

        Where a point is halfway between the components its second derivative in theta_2 contains
        -(theta_2 / 4 s)^2 (with tied means), however large theta_2 is: gradients are not Lipschitz.
        """
        everywhere = np.full((self.agents, 2, 2), np.inf)
        return -everywhere, everywhere

    def potential(self, x: np.ndarray) -> np.ndarray:
        """Return f_i(x_i), shape (chains, agents), without constants of the normal densities."""
        # Point j has the likelihood of the first component times 1 + e^z_j, with z_j the log odds
        # that it is of the second.
        first, mean = _means(self.params, x)
        weight, middle = (mean - first) / self.params.variance, (first + mean) / 2
        odds = (
            np.where(real, weight * (point - middle), -np.inf)
            for point, real in zip(self.points.T, self.mask.T, strict=True)
        )
        count, total = self.totals.T
        alone = first * (count * first - 2 * total) + self._squares
        prior = 0.5 * (x**2 @ (1 / np.array(self.params.prior_variances))) / self.agents
        likelihood = sum_softplus(odds) - alone / (2 * self.params.variance)
        return prior - likelihood

    @property
    def _all_points(self) -> np.ndarray:
        """Return the points of all agents, (points,)."""
        return self.points[self.mask.astype(bool)]

    @property
    def has_two_modes(self) -> bool:
        """Return whether the marginal density of theta_2 has two modes.

        Between them it must fall by a tenth or more.
        """
        first = self._all_points.mean() + np.linspace(-4, 4, 161)
        second = np.linspace(-6, 6, 121) * np.sqrt(self.params.prior_variances[1])
        log = self.log_posterior(first[:, None], second[None, :])
        marginal = np.exp(log - log.max()).sum(axis=0)
        left, right = np.maximum.accumulate(marginal), np.maximum.accumulate(marginal[::-1])[::-1]
        return bool((marginal < 0.9 * np.minimum(left, right)).any())

    @cached_property
    def reference(self) -> Grid:
        """Return the posterior on a dense grid, which takes a second or so and is cached."""
        return _reference(self._all_points.tobytes(), self.params)


@lru_cache(maxsize=32)  # for runs that one process measures, of the same points
def _reference(points: bytes, params: Params) -> Grid:
    """Return the posterior on a dense grid; points are bytes, so that results can be cached."""
    reach = [9 * np.sqrt(variance) for variance in params.prior_variances]
    box = ((-reach[0], reach[0]), (-reach[1], reach[1]))
    together = mixture(params, np.frombuffer(points), [np.arange(len(points) // 8)])
    return from_log_density(together.log_posterior, box, params.grid)


def _means(params: Params, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the components' means, theta_1 and m, at x (..., 2)."""
    first, second = x[..., 0], x[..., 1]
    return first, first + second if params.second_mean == MEANS[0] else second


def component_contrasts(params: Params, x: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return 2 p_j - 1 for points j (..., n) at parameters x (..., 2).

    p_j: the probability that point j is of the second component.
    """
    first, mean = _means(params, x)
    half_weight, middle = (mean - first) * (0.5 / params.variance), (first + mean) / 2
    tilts: np.ndarray = points - middle[..., None]
    tilts *= half_weight[..., None]
    return np.tanh(tilts, out=tilts)
