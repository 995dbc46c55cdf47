"""Gradient estimators: full gradients, or mini-batches drawn with replacement or in epochs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np

from concord.contracts import Batched, Problem
from concord.errors import ConcordError
from concord.options import Count, choices

if TYPE_CHECKING:
    from concord.contracts import Problem

Estimator = Callable[[np.ndarray, np.random.Generator, np.ndarray], np.ndarray]
Draw = Callable[[np.random.Generator, np.ndarray], object]

BatchSize = Annotated[Count | None, "points per mini-batch; none: full gradients"]
BatchOrder = Annotated[
    Literal["with_replacement", "epochs"],
    "points of a mini-batch are drawn independently, or without replacement in epochs",
]
BATCH_ORDERS = choices(BatchOrder)


def estimator(
    problem: Problem, batch_size: int | None, chains: int, order: str = "with_replacement"
) -> Estimator:
    r"""Return ``estimate(x, rng, out)``, which writes a gradient of every agent's potential.

    Without a batch size the estimate is :math:`\nabla f_i(x_i)`. With ``batch_size`` b, each chain
    and agent draws b of the agent's n_i points and scales the likelihood part by n_i / b; the prior
    part is exact. The estimate is unbiased (gurbuzbalaban2021, eq. 3.2). The order is one of

    ``with_replacement``
        independent draws;
    ``epochs``
        the agent walks through its points in random order, shuffled again when all have been used,
        so that every n_i draws use each point once; a batch may hold the last points of one epoch
        and the first of the next (parayil2020, section 5.2).

    ``x`` and ``out`` have shape (chains, agents, dim). Buffers are allocated here, once.

    Raises
    ------
    ConcordError
        If the problem takes no mini-batches.
    """
    if batch_size is None:
        full = problem.gradient(chains)
        return lambda x, rng, out: full(x, out)

    shape = (chains, problem.agents, batch_size)
    if not isinstance(problem, Batched):
        raise ConcordError(
            f"{type(problem).__name__} takes no mini-batches; leave the sampler's batch_size out"
        )
    partial = problem.batch_gradient(chains, batch_size)
    rows = np.empty(shape, dtype=np.intp)
    draw = (
        _epochs(problem.counts, shape) if order == "epochs" else _replacing(problem.counts, shape)
    )

    def estimate(x: np.ndarray, rng: np.random.Generator, out: np.ndarray) -> np.ndarray:
        draw(rng, rows)
        return partial(x, rows, out)

    return estimate


def _replacing(sizes: np.ndarray, shape: tuple[int, int, int]) -> Draw:
    uniform = np.empty(shape)
    counts = sizes[:, None].astype(float)
    last = sizes[:, None] - 1

    def draw(rng: np.random.Generator, rows: np.ndarray) -> None:
        rng.random(out=uniform)
        np.multiply(uniform, counts, out=uniform)
        np.copyto(rows, uniform, casting="unsafe")  # truncates towards zero
        np.minimum(rows, last, out=rows)  # n (1 - 2^-53) may round up to n

    return draw


def _epochs(sizes: np.ndarray, shape: tuple[int, int, int]) -> Draw:
    groups = [
        _Walk(np.flatnonzero(sizes == size), int(size), shape[0]) for size in np.unique(sizes)
    ]

    def draw(rng: np.random.Generator, rows: np.ndarray) -> None:
        for group in groups:
            group.draw(rng, rows)

    return draw


class _Walk:
    """The walk of all agents that hold ``size`` points each, which end their epochs together."""

    def __init__(self, agents: np.ndarray, size: int, chains: int) -> None:
        self.agents = agents
        shape = (chains, len(agents), size)
        self.order = np.broadcast_to(np.arange(size, dtype=np.int32), shape).copy()
        self.used = size

    def draw(self, rng: np.random.Generator, rows: np.ndarray) -> None:
        """Write the next points of these agents into ``rows``."""
        filled, batch = 0, rows.shape[2]
        while filled < batch:
            if self.used == self.order.shape[2]:
                rng.permuted(self.order, axis=2, out=self.order)
                self.used = 0
            more = min(batch - filled, self.order.shape[2] - self.used)
            rows[:, self.agents, filled : filled + more] = self.order[
                :, :, self.used : self.used + more
            ]
            filled += more
            self.used += more
