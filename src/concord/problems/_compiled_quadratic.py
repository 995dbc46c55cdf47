"""Gradients of quadratic potentials in two dimensions as numba compiles them, the extra ``fast``.

``numpy.matmul`` leaves a matrix times a vector to BLAS, which on processors with fused
multiplications adds up two products as ``chosen`` does. ``as_blas`` asks whether it does here.
"""

from functools import cache
from typing import Any

import numpy as np

from concord.compiled.kernels import GRADIENT, compiled, fused


@compiled(GRADIENT)
def chosen(x: np.ndarray, agents: np.ndarray, out: np.ndarray, tables: Any) -> None:
    """Write gram_i x - shift_i of these agents; the tables are gram, (agents, 4), and shift."""
    gram, shift = tables[0], tables[1]
    for m in range(len(agents)):
        i, first, second = agents[m], x[m, 0], x[m, 1]
        out[m, 0] = fused(gram[i, 0], first, gram[i, 1] * second) - shift[i, 0]
        out[m, 1] = fused(gram[i, 2], first, gram[i, 3] * second) - shift[i, 1]


@cache
def as_blas() -> bool:
    """Tell whether BLAS, asked of a thousand products, does what ``chosen`` does."""
    rng, count = np.random.default_rng(0), 1000
    gram, x = rng.standard_normal((count, 2, 2)), rng.standard_normal((count, 2))
    own, nothing = np.empty_like(x), np.zeros_like(x)
    tables = gram.reshape(count, 4), nothing, *[np.empty((0, 0))] * 6
    chosen(x, np.arange(count), own, tables)
    return bool((own == np.matmul(gram, x[..., None])[..., 0]).all())
