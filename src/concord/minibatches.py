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
    """Mini-batches in place of full gradients."""

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
        """How many points the likelihood's part stands for; None: for all data of an agent."""
        return {"data": None, "none": self.batch_size, "mean": 1}[self.batch_scale]

    def check(self) -> None:
        """Refuse options of mini-batches without a mini-batch."""
        scale, pool = self.batch_scale, self.batch_pool
        if self.batch_size is None and (scale, pool) != ("data", "all"):
            key, value = ("batch_scale", scale) if scale != "data" else ("batch_pool", pool)
            raise ConcordError(
                f"{key}: {value} is of mini-batches, but batch_size is not given; give one, or "
                f"remove {key}"
            )


class MiniBatches:
    """A problem with mini-batch gradients; everything else is the problem's own.

    problem: potentials that are sums over points (``problem.Batched``).
    batches: how many points are drawn, and how.
    rng: what draws them, the generator of the sampler's noise.

    A ConcordError if the problem has no points, or too few.
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
        """Return what the problem itself offers."""
        if name == "problem":  # of a copy that has none yet
            raise AttributeError(name)
        return getattr(self.problem, name)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return gradients estimated from new mini-batches, (chains, agents, dim)."""
        return self._estimate(x, self._draw(self._rng))

    def gradient_of(self, agents: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return the estimates of these agents, (chains, few) or (few,), at x, (chains, few, dim).

        Points are drawn for all agents, as ``gradient`` draws them.
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
        """Return the gradients of all points."""
        gradient: np.ndarray = self.problem.gradient(x)
        return gradient

    @property
    def full_cost(self) -> np.ndarray:
        """The mini-batches that a full gradient is worth, (agents,)."""
        cost: np.ndarray = -(-self.problem.counts // self.size)
        return cost

    def difference(self, x: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """Return the estimate at x less that at a reference, both from the same points."""
        rows = self._draw(self._rng)
        return self._estimate(x, rows) - self._estimate(reference, rows)

    def _estimate(self, x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return self._scale(self.problem.batch_gradient(x, rows), x)

    def _scale(self, estimate: np.ndarray, x: np.ndarray, agents: Any = slice(None)) -> np.ndarray:
        """Return estimates whose likelihood stands for as many points as it is to."""
        if self._share is None:
            return estimate
        prior: np.ndarray = self.problem.prior_gradient(x)
        return (estimate - prior) * self._share[agents] + prior


def _draw_independently(counts: np.ndarray, shape: tuple[int, int, int]) -> Draw:
    each = counts[:, None]

    def draw(rng: np.random.Generator) -> np.ndarray:
        rows = (rng.random(shape) * each).astype(np.intp)
        return np.minimum(rows, each - 1)  # n (1 - 2^-53) may round up to n

    return draw


class _Epochs:
    """Walks of all agents through their points in random order, shuffled when all are used."""

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
        """Return the next points of every agent, (chains, agents, batch)."""
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
