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

from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta

from concord.contracts import BatchGradient, Gradient, GradientAt, Stream
from concord.errors import ConcordError
from concord.laws.quadrature import Grid, from_log_density
from concord.options import Count, Options, Positive, choices
from concord.problems._common import OneDataSet, check_points, numbers, own_data, takes_arrays
from concord.sampling.partition import AgentData, Partition

# Two modes are declared out of reach after so many sets of points; of small sets, after so many
# points, which take a millisecond each.
ATTEMPTS, POINTS = 50, 3000

SecondMean = Annotated[Literal["theta_1 + theta_2", "theta_2"], "mean of the second component"]
MEANS = choices(SecondMean)


class Params(Options):
    """The model, its prior, and the points drawn from it."""

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
    data_sets: Annotated[
        int,
        Meta(ge=1, le=10000),
        "independent sets of points; chain c samples the posterior of set c mod data_sets",
    ] = 1


def check(params: Params, agents: int) -> None:
    """Refuse more agents than points."""
    check_points(params.points, agents)


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, resources: Path
) -> TiedMixture | TiedMixtures:
    """Draw the points from the mixture at ``truth`` and split them over the agents.

    The points depend on ``stream("data")`` alone, so every number of agents sees the same ones, and
    the first sets are the same however many there are.

    Raises
    ------
    ConcordError
        If ``modes: two`` is required and no draw has them.
    """
    rng, divide = stream("data"), stream("partition")

    def draw() -> TiedMixture:
        points = draw_points(params, rng)
        parts = partition.split(params.points, agents, divide)
        return mixture(params, points, parts)

    def draw_with_modes() -> TiedMixture:
        attempts = max(ATTEMPTS, POINTS // params.points)
        for _ in range(attempts):
            problem = draw()
            if params.modes == "any" or problem.two_modes:
                return problem
        raise ConcordError(
            f"no draw of {attempts} gave {params.points} points of variance {params.variance:g} a "
            "posterior with two modes; raise points, lower variance or set modes: any"
        )

    sets = [draw_with_modes() for _ in range(params.data_sets)]
    return sets[0] if params.data_sets == 1 else TiedMixtures(sets, stream)


def draw_points(params: Params, rng: np.random.Generator) -> np.ndarray:
    """Return points drawn from the mixture at ``truth``, (points,)."""
    first, second = params.truth
    means = np.array([first, first + second if params.second_mean == MEANS[0] else second])
    component = rng.integers(0, 2, params.points)
    return means[component] + np.sqrt(params.variance) * rng.standard_normal(params.points)


def mixture(params: Params, points: np.ndarray, parts: list[np.ndarray]) -> TiedMixture:
    """Return the mixture of given points; ``parts`` are the rows of each agent."""
    return TiedMixture(AgentData.from_parts(np.empty((len(points), 0)), points, parts), params)


def from_arrays(
    points: Any,
    agents: int | None = None,
    *,
    variance: float = 2.0,
    prior_variances: tuple[float, float] = (10.0, 1.0),
    second_mean: SecondMean = "theta_1 + theta_2",
    grid: int = 640,
    partition: Any = "equal",
    seed: int = 1,
) -> TiedMixture:
    """Return the mixture of one's own points; ``concord.problems.tied_mixture``.

    Parameters
    ----------
    points
        Numbers (rows,); or a list of such arrays, one of each agent, without ``agents``.
    agents
        Number of agents that the points are split over.
    variance, prior_variances
        s of each component, and those of the priors of theta_1 and theta_2.
    second_mean
        ``theta_1 + theta_2`` or ``theta_2``.
    grid
        Cells along each axis of the reference posterior.
    partition, seed
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
    together = agents is not None or not isinstance(points, (list, tuple))
    parts = [numbers(part, "points") for part in ([points] if together else points)]
    for part in parts:
        if part.ndim != 1:
            raise ConcordError(f"points: they have the shape {part.shape}; give numbers (rows,)")
    ones = [np.ones((len(part), 1)) for part in parts]
    X, y = (ones[0], parts[0]) if together else (ones, parts)
    data = own_data(X, y, agents, partition, seed)
    params = Params(
        second_mean=second_mean, prior_variances=prior_variances, variance=variance, grid=grid
    )
    return TiedMixture(data, params)


takes_arrays(__name__, from_arrays)


class TiedMixture(OneDataSet):
    r"""The mixture split over agents.

    With :math:`r_j` the probability that point j is of the second component,
    :math:`2 r_j - 1 = \tanh(c x_j + d)`, where :math:`c = (m - \theta_1) / 2s` and
    :math:`d = -c (m + \theta_1) / 2`. Gradients need the points through :math:`\sum_j r_j` and
    :math:`\sum_j r_j x_j` only.

    Attributes
    ----------
    points
        Shape (agents, n_max), padded with zeros.
    reference
        The exact posterior, a ``Grid``.
    """

    dim = 2
    posterior = None

    def __init__(self, data: AgentData, params: Params) -> None:
        self.counts = data.counts
        self.points = data.targets
        self.agents = len(data.counts)
        self.params = params
        self._mask = data.mask
        self._tied = params.second_mean == MEANS[0]
        # Per agent two rows: ones (zeros where padded) and the points.
        self._basis = np.stack([data.mask, data.targets], axis=1)
        self._sums = np.column_stack([data.counts.astype(float), data.targets.sum(axis=1)])
        self._prior_precision = 1 / np.array(params.prior_variances)

    def gradient(self, chains: int) -> Gradient:
        """Return ``g(x, out)``, the gradient of every f_i at x_i."""
        agents, _, points = self._basis.shape
        line = np.empty((agents, chains, 2))
        tanh = np.empty((agents, chains, points))
        moments = np.empty((agents, chains, 2))
        basis, transposed = self._basis, np.ascontiguousarray(self._basis.swapaxes(1, 2))

        def gradient(x: np.ndarray, out: np.ndarray) -> np.ndarray:
            self._line(x, line.swapaxes(0, 1))
            np.matmul(line, basis, out=tanh)
            np.tanh(tanh, out=tanh)
            np.matmul(tanh, transposed, out=moments)
            return self._assemble(x, moments.swapaxes(0, 1), self._sums, out)

        return gradient

    def gradient_at(self, chains: int, width: int) -> GradientAt:
        """Return ``g(x, agents, out)``: the gradients of ``width`` chosen agents of each chain."""
        _, rows, points = self._basis.shape
        table = self._basis
        basis = np.empty((chains, width, rows, points))
        sums = np.empty((chains, width, 2))
        line = np.empty((chains, width, 2))
        tanh = np.empty((chains, width, points))
        moments = np.empty((chains, width, 2))
        product = np.empty_like(tanh)

        def gradient(x: np.ndarray, agents: np.ndarray, out: np.ndarray) -> np.ndarray:
            np.take(table, agents, axis=0, out=basis, mode="clip")
            np.take(self._sums, agents, axis=0, out=sums, mode="clip")
            self._line(x, line)
            # Sums written out: these products are too small for matmul to pay.
            np.multiply(basis[..., 0, :], line[..., :1], out=tanh)
            np.multiply(basis[..., 1, :], line[..., 1:], out=product)
            np.add(tanh, product, out=tanh)
            np.tanh(tanh, out=tanh)
            np.einsum("cap,carp->car", tanh, basis, out=moments)
            return self._assemble(x, moments, sums, out)

        return gradient

    def batch_gradient(self, chains: int, batch_size: int) -> BatchGradient:
        """Return ``g(x, rows, out)``; rows: (chains, agents, batch), row numbers of each agent."""
        shape = (chains, self.agents, batch_size)
        line = np.empty((chains, self.agents, 2))
        points, tanh, product = np.empty(shape), np.empty(shape), np.empty(shape)
        moments, sums = np.empty((chains, self.agents, 2)), np.empty((chains, self.agents, 2))
        flat = np.empty(shape, dtype=np.intp)
        offset = (np.arange(self.agents) * self.points.shape[1])[:, None]
        column = self.points.reshape(-1)
        scale = (self.counts / batch_size)[:, None]
        sums[..., 0] = self.counts

        def gradient(x: np.ndarray, rows: np.ndarray, out: np.ndarray) -> np.ndarray:
            np.add(rows, offset, out=flat)
            np.take(column, flat, out=points, mode="clip")
            self._line(x, line)
            np.multiply(points, line[..., 1:], out=tanh)
            np.add(tanh, line[..., :1], out=tanh)
            np.tanh(tanh, out=tanh)
            tanh.sum(axis=-1, out=moments[..., 0])
            np.multiply(tanh, points, out=product)
            product.sum(axis=-1, out=moments[..., 1])
            np.multiply(moments, scale, out=moments)
            points.sum(axis=-1, out=sums[..., 1])
            np.multiply(sums[..., 1], scale[:, 0], out=sums[..., 1])
            return self._assemble(x, moments, sums, out)

        return gradient

    def _line(self, x: np.ndarray, out: np.ndarray) -> None:
        """Write d and c, the coefficients of 1 and of a point, for parameters x (..., 2)."""
        first, second = x[..., 0], x[..., 1]
        intercept, slope = out[..., 0], out[..., 1]
        if self._tied:
            np.multiply(second, 1 / (2 * self.params.variance), out=slope)
            np.multiply(second, 0.5, out=intercept)
            np.add(intercept, first, out=intercept)
        else:
            np.subtract(second, first, out=slope)
            np.multiply(slope, 1 / (2 * self.params.variance), out=slope)
            np.add(second, first, out=intercept)
            np.multiply(intercept, 0.5, out=intercept)
        np.multiply(intercept, slope, out=intercept)
        np.negative(intercept, out=intercept)

    def _assemble(
        self, x: np.ndarray, moments: np.ndarray, sums: np.ndarray, out: np.ndarray
    ) -> np.ndarray:
        """Write the gradient from sum_j t_j (1, x_j), which it overwrites, and sum_j (1, x_j)."""
        np.add(moments, sums, out=moments)
        np.multiply(moments, 0.5, out=moments)  # sum_j r_j (1, x_j)
        first, second = x[..., 0], x[..., 1]
        number, total = moments[..., 0], moments[..., 1]
        d_first, d_second = out[..., 0], out[..., 1]
        np.multiply(number, second, out=d_second)
        if self._tied:
            # sum_j (x_j - theta_1 - r_j theta_2) and sum_j r_j (x_j - theta_1 - theta_2)
            np.multiply(sums[..., 0], first, out=d_first)
            np.add(d_first, d_second, out=d_first)
            np.subtract(d_first, sums[..., 1], out=d_first)
            np.multiply(number, first, out=number)
            np.add(d_second, number, out=d_second)
        else:
            # sum_j (1 - r_j) (x_j - theta_1) and sum_j r_j (x_j - theta_2)
            np.subtract(sums[..., 0], number, out=d_first)
            np.multiply(d_first, first, out=d_first)
            np.subtract(d_first, sums[..., 1], out=d_first)
            np.add(d_first, total, out=d_first)
        np.subtract(d_second, total, out=d_second)
        np.multiply(out, 1 / self.params.variance, out=out)
        np.multiply(x, self._prior_precision / self.agents, out=moments)
        return np.add(out, moments, out=out)

    def curvature(self) -> tuple[np.ndarray, np.ndarray]:
        """Return no bounds, (agents, 2, 2): there are none.

        Where a point is halfway between the components its second derivative in theta_2 contains
        -(theta_2 / 4 s)^2 (with tied means), however large theta_2 is: gradients are not Lipschitz.
        """
        everywhere = np.full((self.agents, 2, 2), np.inf)
        return -everywhere, everywhere

    def potential(self, x: np.ndarray) -> np.ndarray:
        """Return f_i(x_i), shape (chains, agents), without constants of the normal densities."""
        first, second = x[..., 0, None], x[..., 1, None]
        likelihood = (self._log_likelihood(first, second, self.points) * self._mask).sum(axis=-1)
        return 0.5 * (x**2 @ self._prior_precision) / self.agents - likelihood

    def _log_likelihood(
        self, first: np.ndarray, second: np.ndarray, points: np.ndarray
    ) -> np.ndarray:
        """Log density of points at theta, up to a constant; arrays broadcast."""
        mean = first + second if self._tied else second
        scale = 2 * self.params.variance
        return np.logaddexp(-((points - first) ** 2) / scale, -((points - mean) ** 2) / scale)

    def log_posterior(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Log density of the posterior at (theta_1, theta_2), up to a constant."""
        u, v = self._prior_precision
        # Point by point, so that the grid is held once and not once per point.
        log = -0.5 * (u * first**2 + v * second**2)
        for point in self.points[self._mask.astype(bool)]:
            log = log + self._log_likelihood(first, second, point)
        return log

    @property
    def two_modes(self) -> bool:
        """Whether the marginal density of theta_2 falls by a tenth, or more, between two modes."""
        points = self.points[self._mask.astype(bool)]
        first = points.mean() + np.linspace(-4, 4, 161)
        second = np.linspace(-6, 6, 121) * np.sqrt(self.params.prior_variances[1])
        log = self.log_posterior(first[:, None], second[None, :])
        marginal = np.exp(log - log.max()).sum(axis=0)
        left, right = np.maximum.accumulate(marginal), np.maximum.accumulate(marginal[::-1])[::-1]
        return bool((marginal < 0.9 * np.minimum(left, right)).any())

    @cached_property
    def reference(self) -> Grid:
        """The posterior on a dense grid; it costs a second or so, and is kept."""
        reach = [9 * np.sqrt(variance) for variance in self.params.prior_variances]
        box = ((-reach[0], reach[0]), (-reach[1], reach[1]))
        return from_log_density(self.log_posterior, box, self.params.grid)


class TiedMixtures:
    """Several data sets of the mixture at once: chain c belongs to ``sets[c % len(sets)]``.

    Replicates of an experiment then advance together like chains of one. All sets divide their
    points in the same numbers over the agents. They are sampled with full gradients.
    """

    dim = 2
    posterior = None

    def __init__(self, sets: list[TiedMixture], stream: Stream) -> None:
        self.sets, self._stream = sets, stream
        self.counts, self.agents = sets[0].counts, sets[0].agents
        if any((one.counts != self.counts).any() for one in sets):
            raise ConcordError(
                "partition: data sets must divide their points in the same numbers; "
                "use kind equal or sizes"
            )

    def exact_pairs(self, counts: list[int]) -> list[np.ndarray]:
        """Return two independent exact samples, (2, counts[d], 2), of each data set d requested.

        The same at every call, and for every number of agents.
        """
        streams = self._stream("reference").spawn(len(self.sets))
        return [
            one.reference.sample(2 * count, rng).reshape(2, count, 2)
            for one, rng, count in zip(self.sets, streams, counts, strict=False)
        ]

    def from_chain(self, first: int) -> TiedMixtures:
        """Return the same problem with the chains counted from number ``first``."""
        start = first % len(self.sets)
        return TiedMixtures(self.sets[start:] + self.sets[:start], self._stream)

    def gradient(self, chains: int) -> Gradient:
        """Return ``g(x, out)``, the gradient of every f_i at x_i."""
        own = [self.sets[chain % len(self.sets)] for chain in range(chains)]
        ones = np.array([one._basis[:, 0] for one in own])
        points = np.array([one._basis[:, 1] for one in own])
        sums = np.array([one._sums for one in own])
        line, moments = np.empty_like(sums), np.empty_like(sums)
        tanh, product = np.empty_like(points), np.empty_like(points)
        first = self.sets[0]

        def gradient(x: np.ndarray, out: np.ndarray) -> np.ndarray:
            first._line(x, line)
            np.multiply(ones, line[..., :1], out=tanh)
            np.multiply(points, line[..., 1:], out=product)
            np.add(tanh, product, out=tanh)
            np.tanh(tanh, out=tanh)
            np.einsum("cap,cap->ca", tanh, ones, out=moments[..., 0])
            np.einsum("cap,cap->ca", tanh, points, out=moments[..., 1])
            return first._assemble(x, moments, sums, out)

        return gradient

    def potential(self, x: np.ndarray) -> np.ndarray:
        """Return f_i(x_i), shape (chains, agents), without constants of the normal densities."""
        values = np.empty(x.shape[:2])
        for number, one in enumerate(self.sets[: len(x)]):
            values[number :: len(self.sets)] = one.potential(x[number :: len(self.sets)])
        return values
