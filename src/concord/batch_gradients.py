"""Mini-batch gradients: estimates of a problem's gradients from a few of each agent's points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from concord.errors import ConcordError
from concord.minibatches import Batches
from concord.problem import ALL, Agents

# Takes a generator, and an index of the agents whose points are returned; without it all are.
Draw = Callable[..., np.ndarray]


class MiniBatches:
    """A problem whose gradients are mini-batch estimates, and all else that of a given problem.

    problem: its potentials are sums over points (``problem.WithMiniBatches``).
    batches: options of how many points are drawn, and how.
    rng: the generator that draws points, which is that of the sampler's noise.

    Raises a ConcordError if the problem has no points, or agents have too few.
    """

    problem: Any = None  # of a copy that is not filled yet

    def __init__(
        self, problem: Any, batches: Batches, chains: int, rng: np.random.Generator
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
        batches.check_points(problem.counts)
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
        return getattr(self.problem, name)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return gradients at x, (chains, agents, dim), estimated from new mini-batches."""
        return self._estimate(x, self._draw(self._rng))

    def gradient_of(self, agents: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return gradients of some agents, estimated from new mini-batches, (chains, few, dim).

        agents: which agents, (chains, few) or (few,). x: their positions, (chains, few, dim).
        Points are drawn for all agents, so that the generator advances as in ``gradient``.
        """
        chosen = np.arange(len(x))[:, None], agents
        if hasattr(self.problem, "batch_gradient_of"):
            estimate = self.problem.batch_gradient_of(agents, x, self._draw(self._rng, chosen))
        else:
            everyone = np.zeros((len(x), self.problem.agents, self.problem.dim))
            everyone[chosen] = x
            estimate = self.problem.batch_gradient(everyone, self._draw(self._rng))[chosen]
        return self._scale(estimate, x, agents)

    def full_gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the exact gradients at x, (chains, agents, dim), of all points."""
        return self.problem.gradient(x)

    @property
    def full_cost(self) -> np.ndarray:
        """The cost of a full gradient of each agent, in mini-batches, (agents,)."""
        return -(-self.problem.counts // self.size)

    def difference(self, x: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """Return the gradient estimate at x less that at a reference, from the same mini-batches.

        x, reference: (chains, agents, dim), and so is the difference.
        """
        rows = self._draw(self._rng)
        return self._estimate(x, rows) - self._estimate(reference, rows)

    def _estimate(self, x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the gradient estimates at x from points ``rows``, (chains, agents, batch)."""
        return self._scale(self.problem.batch_gradient(x, rows), x)

    def _scale(self, estimate: np.ndarray, x: np.ndarray, agents: Agents = ALL) -> np.ndarray:
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
    most = np.broadcast_to(counts[:, None], (*shape[:2], 1))

    def draw(rng: np.random.Generator, chosen: Any = ...) -> np.ndarray:
        """Return independent points of the chosen agents, (chains, few, batch)."""
        each = most[chosen]
        rows = (rng.random(shape)[chosen] * each).astype(np.intp)
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

    def draw(self, rng: np.random.Generator, chosen: Any = ...) -> np.ndarray:
        """Return the points of the next mini-batch of the chosen agents, (chains, few, batch)."""
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
        return rows[chosen]
