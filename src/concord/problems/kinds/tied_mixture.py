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

from collections.abc import Callable
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta

from concord.compiled import Kernel, built
from concord.contracts import BatchGradient, Gradient, GradientAt, Stream
from concord.errors import ConcordError
from concord.laws.quadrature import Grid, add_softplus, from_log_density
from concord.options import Count, Options, Positive, choices
from concord.problems._data import OneDataSet, check_agents
from concord.problems._own import numbers, own_data
from concord.problems._shares import LOG2_E, shares_of
from concord.sampling.partition import AgentData, Partition

# Two modes are declared out of reach after so many sets of points; of small sets, after so many
# points, which take a millisecond each.
ATTEMPTS, POINTS = 50, 3000
# A mask, and a scale, where all points are there and count once.
NO_MASK, NO_SCALE = np.empty((0, 0)), np.empty(0)

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


check = check_agents


def shares(params: Params) -> bool:
    """Tell whether runs have exact samples in common: those of several sets are the same."""
    return params.data_sets > 1


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, resources: Path
) -> TiedMixture | TiedMixtures:
    """Draw the points from the mixture at ``truth`` and split them over the agents.

    The points depend on ``stream("data")`` alone, so every number of agents sees the same ones, and
    the first sets are the same however many there are. A ConcordError if ``modes: two`` is required
    and no draw has them.
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
    seed: int | None = 1,
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


class TiedMixture(OneDataSet):
    r"""The mixture split over agents.

    With :math:`r_j = 1 / (1 + e^{w (q - x_j)})` the probability that point j is of the second
    component, where :math:`w = (m - \theta_1) / s` and :math:`q = (\theta_1 + m) / 2`, gradients
    need the points through :math:`\sum_j r_j` and :math:`\sum_j r_j x_j` only: one exponential for
    each point.

    points: shape (agents, n_max), padded with zeros. reference: the exact posterior, a ``Grid``.
    """

    dim = 2
    posterior = None

    def __init__(self, data: AgentData, params: Params) -> None:
        self.counts = data.counts
        self.points = data.targets
        self.agents = len(data.counts)
        self.params = params
        self._mask = data.mask

    def gradient(self, chains: int) -> Gradient:
        """Return ``g(x, out)``, the gradient of every f_i at x_i."""
        return _gradient([self] * chains)

    def gradient_at(self, chains: int, width: int) -> GradientAt:
        """Return ``g(x, agents, out)``: the gradients of ``width`` chosen agents of each chain."""
        tables = self.points.T.copy(), self._mask.T.copy()
        size = chains * width
        points, mask = (np.empty((len(table), size)) for table in tables)
        totals, own = _totals(self.params, *tables), np.empty((2, size))
        padded = not self._mask.all()
        differentiate = _differentiate(self, points.shape)

        def gradient(x: np.ndarray, agents: np.ndarray, out: np.ndarray) -> np.ndarray:
            chosen = agents.reshape(-1)
            tables[0].take(chosen, 1, points, "clip")
            totals.take(chosen, 1, own, "clip")
            if padded:
                tables[1].take(chosen, 1, mask, "clip")
            return differentiate(x, points, own, out, mask if padded else NO_MASK)

        return gradient

    def compiled_gradient(self, chains: int, width: int | None = None) -> tuple[Any, Any] | None:
        """Return the compiled gradient and its tables, of all agents or of chosen ones."""
        if width is None:
            return _compiled_gradient([self] * chains)
        return _compiled_gradient([self], chains * width)

    def batch_gradient(self, chains: int, batch_size: int) -> BatchGradient:
        """Return ``g(x, rows, out)``; rows: (chains, agents, batch), row numbers of each agent."""
        size = chains * self.agents
        points, totals = np.empty((batch_size, size)), np.empty((2, size))
        places = np.empty(points.shape, dtype=np.intp)
        offset = np.tile(np.arange(self.agents) * self.points.shape[1], chains)
        column = self.points.reshape(-1)
        scale, variance = np.tile(self.counts / batch_size, chains), self.params.variance
        over_variance = scale / variance
        totals[0] = np.tile(self.counts / variance, chains)
        differentiate = _differentiate(self, points.shape)

        def gradient(x: np.ndarray, rows: np.ndarray, out: np.ndarray) -> np.ndarray:
            np.add(rows.reshape(size, batch_size).T, offset, out=places)
            np.take(column, places, out=points, mode="clip")
            _column_sums(points, totals[1])
            np.multiply(totals[1], over_variance, out=totals[1])
            return differentiate(x, points, totals, out, scale=scale)

        return gradient

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
        means = first, first + second if _tied(self.params) else second
        scale = 2 * self.params.variance
        each = np.logaddexp(*(-((self.points - mean) ** 2) / scale for mean in means))
        likelihood = (each * self._mask).sum(axis=-1)
        return 0.5 * (x**2 @ _prior_precision(self.params)) / self.agents - likelihood

    def log_posterior(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return the log density at (theta_1, theta_2), up to a constant; arrays broadcast."""
        return _log_posterior(self._all_points, self.params, first, second)

    @property
    def _all_points(self) -> np.ndarray:
        return self.points[self._mask.astype(bool)]

    @property
    def two_modes(self) -> bool:
        """Whether the marginal density of theta_2 falls by a tenth, or more, between two modes."""
        first = self._all_points.mean() + np.linspace(-4, 4, 161)
        second = np.linspace(-6, 6, 121) * np.sqrt(self.params.prior_variances[1])
        log = self.log_posterior(first[:, None], second[None, :])
        marginal = np.exp(log - log.max()).sum(axis=0)
        left, right = np.maximum.accumulate(marginal), np.maximum.accumulate(marginal[::-1])[::-1]
        return bool((marginal < 0.9 * np.minimum(left, right)).any())

    @cached_property
    def reference(self) -> Grid:
        """The posterior on a dense grid; it costs a second or so, and is kept."""
        return _reference(self._all_points.tobytes(), self.params)


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
        return _gradient([self.sets[chain % len(self.sets)] for chain in range(chains)])

    def compiled_gradient(self, chains: int, width: int | None = None) -> tuple[Any, Any] | None:
        """Return the compiled gradient and its tables, of all agents together."""
        if width is not None:
            return None
        return _compiled_gradient([self.sets[chain % len(self.sets)] for chain in range(chains)])

    def potential(self, x: np.ndarray) -> np.ndarray:
        """Return f_i(x_i), shape (chains, agents), without constants of the normal densities."""
        values = np.empty(x.shape[:2])
        for number, one in enumerate(self.sets[: len(x)]):
            values[number :: len(self.sets)] = one.potential(x[number :: len(self.sets)])
        return values


def _log_posterior(
    points: np.ndarray, params: Params, first: np.ndarray, second: np.ndarray
) -> np.ndarray:
    r"""Log density of the posterior at (theta_1, theta_2), up to a constant; arrays broadcast.

    With :math:`z_j = w (x_j - q)`, the log odds that point j is of the second component, the
    likelihood of the point is that of the first component times :math:`1 + e^{z_j}`.
    """
    u, v = _prior_precision(params)
    variance = params.variance
    mean = first + second if _tied(params) else second
    weight, middle = (mean - first) / variance, (first + mean) / 2
    alone = len(points) * first**2 - 2 * points.sum() * first
    log = np.array(-0.5 * (u * first**2 + v * second**2 + alone / variance))

    def odds(j: int, out: np.ndarray) -> None:
        np.subtract(points[j], middle, out=out)
        np.multiply(out, weight, out=out)

    add_softplus(log, len(points), odds)
    return log


@lru_cache(maxsize=32)  # for runs that one process measures, of the same points
def _reference(points: bytes, params: Params) -> Grid:
    reach = [9 * np.sqrt(variance) for variance in params.prior_variances]
    box = ((-reach[0], reach[0]), (-reach[1], reach[1]))
    density = partial(_log_posterior, np.frombuffer(points), params)
    return from_log_density(density, box, params.grid)


def _tied(params: Params) -> bool:
    return params.second_mean == MEANS[0]


def _prior_precision(params: Params) -> np.ndarray:
    return 1 / np.array(params.prior_variances)


def _totals(params: Params, points: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Return the number of points and their sum, (2, columns), over s."""
    totals = np.empty((2, points.shape[1]))
    _column_sums(mask, totals[0])
    _column_sums(points, totals[1])
    return totals / params.variance


def _column_sums(table: np.ndarray, out: np.ndarray) -> None:
    """Add rows to zero one after another, so that a column's sum depends on nothing beside it."""
    if table.shape[1] == 1:
        out[0] = 0.0 + table.cumsum()[-1]  # a sum would go by pairs
    else:
        np.add.reduce(table, axis=0, out=out, initial=0.0)


def _gradient(sets: list[TiedMixture]) -> Gradient:
    """Return ``g(x, out)``, the gradient of every f_i at x_i; chain c belongs to ``sets[c]``."""
    points, totals, padding = _columns(sets)
    differentiate = _differentiate(sets[0], points.shape)
    return lambda x, out: differentiate(x, points, totals, out, padding)


def _columns(sets: list[TiedMixture]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return points, totals and mask, as ``_differentiate`` takes them, of all agents of sets."""
    points, mask = (
        np.ascontiguousarray(np.concatenate(arrays).T)
        for arrays in ([one.points for one in sets], [one._mask for one in sets])
    )
    totals = _totals(sets[0].params, points, mask)
    return points, totals, NO_MASK if mask.all() else mask


def _compiled_gradient(
    sets: list[TiedMixture], chosen: int | None = None
) -> tuple[Any, Any] | None:
    """Return the compiled gradient of all columns, or of so many chosen ones, and its tables."""
    kernels = built(_kernels)
    if kernels is None:
        return None
    points, totals, mask = _columns(sets)
    settings = np.array([(_tied(sets[0].params), 1 / sets[0].params.variance), _own_prior(sets[0])])
    if chosen is None:
        buffer, own = np.empty((5, points.shape[1])), [NO_MASK] * 3
    else:
        buffer, own = np.empty((5, chosen)), [np.empty((len(t), chosen)) for t in (points, totals)]
        own.append(np.empty((len(mask), chosen if mask.size else 0)))
    tables = settings.astype(float), points, totals, mask, buffer, *own
    return kernels[0 if chosen is None else 1], tables


def _own_prior(problem: TiedMixture) -> np.ndarray:
    """Return the precision of an agent's share of the prior, (2,)."""
    return _prior_precision(problem.params) / problem.agents


def _kernels() -> tuple[Kernel, Kernel, Kernel]:
    from concord.problems._compiled import chosen, everyone, tied_mixture  # of an extra

    return everyone, chosen, tied_mixture


def _differentiate(problem: TiedMixture, shape: tuple[int, int]) -> Callable[..., np.ndarray]:
    """Return ``differentiate(x, points, totals, out, mask, scale)`` for points of this shape.

    A column of ``points``, (n, m), belongs to a row of x and out, which have m in all; ``totals``
    (2, m) are as ``_totals`` returns them. ``mask``, (n, m), is zero where there is no point, and
    ``scale``, (m,), how much a point counts; ``NO_MASK`` and ``NO_SCALE``: all are there, and count
    once.

    ``_compiled.tied_mixture`` does the same operations in the same order, none of which leaves a
    bit to the library or the processor, so that its gradients have the same bytes.
    """
    tied, precision = _tied(problem.params), 1 / problem.params.variance
    prior = _own_prior(problem)
    if (kernels := built(_kernels)) is not None:
        compiled = kernels[2]
        kernel = partial(compiled, tied, precision, prior, np.empty((5, shape[1])))

        def call(
            x: np.ndarray,
            points: np.ndarray,
            totals: np.ndarray,
            out: np.ndarray,
            mask: np.ndarray = NO_MASK,
            scale: np.ndarray = NO_SCALE,
        ) -> np.ndarray:
            rows = out.reshape(-1, 2, copy=False)
            kernel(x.reshape(-1, 2), points, totals, rows, mask, scale)
            return out

        return call
    prior, per_share = prior[:, None], precision * LOG2_E
    shares, shared = shares_of(shape)
    weight, middle, mean = (np.empty(shape[1]) for _ in range(3))
    sums, pulls = np.empty((2, shape[1])), np.empty((2, shape[1]))
    (number, total), (pull, second_pull) = sums, pulls

    def differentiate(
        x: np.ndarray,
        points: np.ndarray,
        totals: np.ndarray,
        out: np.ndarray,
        mask: np.ndarray = NO_MASK,
        scale: np.ndarray = NO_SCALE,
    ) -> np.ndarray:
        theta = x.reshape(-1, 2).T
        first, second = theta
        if tied:
            np.add(first, second, out=mean)
            np.multiply(second, per_share, out=weight)
        else:
            np.copyto(mean, second)
            np.subtract(second, first, out=weight)
            np.multiply(weight, per_share, out=weight)
        np.add(first, mean, out=middle)
        np.multiply(middle, 0.5, out=middle)
        shares(middle, points, weight)
        if mask.size:
            np.multiply(shared, mask, out=shared)
        _column_sums(shared, number)
        np.multiply(shared, points, out=shared)
        _column_sums(shared, total)
        np.multiply(sums, precision, out=sums)
        if scale.size:
            np.multiply(sums, scale, out=sums)
        # sum_j r_j (m - x_j) / s and sum_j (1 - r_j) (theta_1 - x_j) / s
        np.multiply(mean, number, out=second_pull)
        np.subtract(second_pull, total, out=second_pull)
        np.subtract(totals, sums, out=sums)
        np.multiply(first, number, out=pull)
        np.subtract(pull, total, out=pull)
        if tied:
            np.add(pull, second_pull, out=pull)
        np.multiply(theta, prior, out=sums)
        np.add(pulls, sums, out=out.reshape(-1, 2, copy=False).T)
        return out

    return differentiate
