"""Gradient estimators: full gradients, or mini-batches drawn with replacement."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from concord.problems import Problem

Estimator = Callable[[np.ndarray, np.random.Generator, np.ndarray], np.ndarray]


def estimator(problem: Problem, batch_size: int | None, chains: int) -> Estimator:
    r"""Return ``estimate(x, rng, out)``, which writes a gradient of every agent's potential.

    Without a batch size the estimate is :math:`\nabla f_i(x_i)`. With ``batch_size`` b, each chain
    and agent draws b of the agent's n_i points with replacement and scales the likelihood part by
    n_i / b; the prior part is exact. The estimate is unbiased (gurbuzbalaban2021, eq. 3.2).

    ``x`` and ``out`` have shape (chains, agents, dim). Buffers are allocated here, once.
    """
    if batch_size is None:
        full = problem.gradient(chains)
        return lambda x, rng, out: full(x, out)

    partial = problem.batch_gradient(chains, batch_size)
    shape = (chains, problem.agents, batch_size)
    uniform = np.empty(shape)
    rows = np.empty(shape, dtype=np.intp)
    counts = problem.counts[:, None].astype(float)
    last = problem.counts[:, None] - 1

    def estimate(x: np.ndarray, rng: np.random.Generator, out: np.ndarray) -> np.ndarray:
        rng.random(out=uniform)
        np.multiply(uniform, counts, out=uniform)
        np.copyto(rows, uniform, casting="unsafe")  # truncates towards zero
        np.minimum(rows, last, out=rows)  # n (1 - 2^-53) may round up to n
        return partial(x, rows, out)

    return estimate
