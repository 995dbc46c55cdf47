r"""Mini-batches: a problem whose gradients are estimated from a few of each agent's points.

With b points drawn of the n_i that agent i has, the likelihood's part is scaled by n_i / b and the
prior's is exact, so that the estimate is unbiased (gurbuzbalaban2021, eq. 3.2).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np

from concord.errors import ConcordError
from concord.options import Count, Options

Draw = Callable[[np.random.Generator], np.ndarray]


class Batches(Options):
    """Options of mini-batch gradients: their size, order, scale and pool of points."""

    batch_size: Annotated[Count | None, "points per mini-batch; none: full gradients"] = None
    batch_order: Annotated[
        Literal["with_replacement", "epochs", "whole_batches"],
        "points of a mini-batch are drawn independently, or without replacement in epochs, or in "
        "epochs of whole batches, which leave out points that do not fill one",
    ] = "with_replacement"
    batch_scale: Annotated[
        Literal["data", "none", "mean"],
        "a mini-batch's gradient is scaled up to all of the agent's points; or it is the sum over "
        "the mini-batch, so that the data count as much as that; or its mean, as much as one point",
    ] = "data"
    batch_pool: Annotated[
        Literal["all", "all_but_last"],
        "points of an agent that mini-batches are drawn from: all, or all but the last",
    ] = "all"

    @property
    def points_stood_for(self) -> int | None:
        """The number of points that the likelihood's gradient is scaled to.

        None: the number of the agent's own points, so that the estimate is unbiased.
        """
        return {"data": None, "none": self.batch_size, "mean": 1}[self.batch_scale]

    def check(self) -> None:
        """Refuse a scale or a pool of mini-batches that is given without a batch size."""
        scale, pool = self.batch_scale, self.batch_pool
        if self.batch_size is None and (scale, pool) != ("data", "all"):
            key, value = ("batch_scale", scale) if scale != "data" else ("batch_pool", pool)
            raise ConcordError(
                f"{key}: {value} is of mini-batches, but batch_size is not given; give one, or "
                f"remove {key}"
            )


class MiniBatches:
    """A problem whose gradients are mini-batch estimates, and all else that of a given problem.

    problem: its potentials are sums over points (``problem.Batched``).
    batches: options of how many points are drawn, and how.
    rng: the generator that draws points, which is that of the sampler's noise.

    Raises a ConcordError if the problem has no points, or an agent too few.
    """

    def __init__(
        self,
        problem: Any,
        batches: Batches,
        chains: int,
        rng: np.random.Generator,
    ) -> None:
        name, size = type(problem).__name__, batches.batch_size or 1
        order, scale, pool = batches.batch_order, batches.batch_scale, batches.batch_pool
        if not hasattr(problem, "batch_gradient"):
            raise ConcordError(f"{name} takes no mini-batches; leave the sampler's batch_size out")
        if scale != "data" and not hasattr(problem, "prior_gradient"):
            raise ConcordError(
                f"{name} does not give its prior's gradient apart; use batch_scale: data"
            )
        counts = problem.counts - (pool == "all_but_last")
        if counts.min() < 1:
            raise ConcordError(
                f"agent {counts.argmin()} has one point, so batch_pool: all_but_last leaves none; "
                "give it more, or use batch_pool: all"
            )
        self.problem, self.size, self._rng = problem, size, rng
        shape = chains, problem.agents, size
        self._draw = (
            _draw_independently(counts, shape)
            if order == "with_replacement"
            else _Epochs(counts, shape, whole=order == "whole_batches").draw
        )
        points = batches.points_stood_for
        self._share = None if points is None else (points / problem.counts)[:, None]

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the problem with full gradients."""
        if name == "problem":  # of a copy that has none yet
            raise AttributeError(name)
        return getattr(self.problem, name)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return gradients at x, (chains, agents, dim), estimated from new mini-batches."""
        return self._estimate(x, self._draw(self._rng))

    def gradient_of(self, agents: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return gradients of some agents, estimated from new mini-batches, (chains, few, dim).

        agents: which agents, (chains, few) or (few,). x: their positions, (chains, few, dim).
        Points are drawn for all agents, so that the generator advances as in ``gradient``.
        """
        rows, chain = self._draw(self._rng), np.arange(len(x))[:, None]
        if hasattr(self.problem, "batch_gradient_of"):
            estimate = self.problem.batch_gradient_of(agents, x, rows[chain, agents])
        else:
            everyone = np.zeros((len(x), self.problem.agents, self.problem.dim))
            everyone[chain, agents] = x
            estimate = self.problem.batch_gradient(everyone, rows)[chain, agents]
        return self._scale(estimate, x, agents)

    def full_gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the exact gradients at x, (chains, agents, dim), of all points."""
        gradient: np.ndarray = self.problem.gradient(x)
        return gradient

    @property
    def full_cost(self) -> np.ndarray:
        """The cost of a full gradient of each agent, in mini-batches, (agents,)."""
        cost: np.ndarray = -(-self.problem.counts // self.size)
        return cost

    def difference(self, x: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """Return the gradient estimate at x less that at a reference, from the same mini-batches.

        x, reference: (chains, agents, dim), and so is the difference.
        """
        rows = self._draw(self._rng)
        return self._estimate(x, rows) - self._estimate(reference, rows)

    def _estimate(self, x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the gradient estimates at x from points ``rows``, (chains, agents, batch)."""
        return self._scale(self.problem.batch_gradient(x, rows), x)

    def _scale(self, estimate: np.ndarray, x: np.ndarray, agents: Any = slice(None)) -> np.ndarray:
        """Rescale the likelihood's part of gradient estimates to the points it must stand for.

        estimate: gradients with the likelihood scaled to all points, and the prior's gradient at x
        added. agents: which agents they are of. Returns them as they are where all points count.
        """
        if self._share is None:
            return estimate
        prior: np.ndarray = self.problem.prior_gradient(x)
        return (estimate - prior) * self._share[agents] + prior


def _draw_independently(counts: np.ndarray, shape: tuple[int, int, int]) -> Draw:
    """Return a function that draws points with replacement, (chains, agents, batch).

    counts: number of points of each agent, (agents,). shape: (chains, agents, batch).
    """
    each = counts[:, None]

    def draw(rng: np.random.Generator) -> np.ndarray:
        """Return independent points of every agent, (chains, agents, batch)."""
        rows = (rng.random(shape) * each).astype(np.intp)
        return np.minimum(rows, each - 1)  # n (1 - 2^-53) may round up to n

    return draw


class _Epochs:
    """Mini-batches without replacement: each agent goes through its points in random order.

    Points are shuffled anew after each epoch. counts: number of points of each agent, (agents,).
    shape: (chains, agents, batch). whole: leave out points that do not fill a mini-batch.
    """

    def __init__(self, counts: np.ndarray, shape: tuple[int, int, int], whole: bool) -> None:
        chains, _, batch = self._shape = shape
        if whole and counts.min() < batch:
            raise ConcordError(
                f"batch_order: whole_batches of {batch} points need as many of each agent, but "
                f"agent {counts.argmin()} has {counts.min()}; use smaller batches, or epochs"
            )
        # Agents with as many points end their epochs together: [agents, order, points used].
        self._walks = [
            [
                agents,
                np.broadcast_to(np.arange(n, dtype=np.int32), (chains, len(agents), n)).copy(),
                n - n % (batch if whole else 1),
            ]
            for n in np.unique(counts).tolist()
            for agents in [np.flatnonzero(counts == n)]
        ]
        self._ends = [used for *_, used in self._walks]

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Return the points of the next mini-batch of every agent, (chains, agents, batch)."""
        rows = np.empty(self._shape, dtype=np.intp)
        for walk, end in zip(self._walks, self._ends, strict=True):
            agents, order, used = walk
            filled = 0
            while filled < self._shape[2]:
                if used == end:
                    order, used = rng.permuted(order, axis=2), 0
                count = min(self._shape[2] - filled, end - used)
                rows[:, agents, filled : filled + count] = order[:, :, used : used + count]
                filled, used = filled + count, used + count
            walk[1:] = order, used
        return rows
