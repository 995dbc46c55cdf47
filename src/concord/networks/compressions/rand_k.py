r"""k coordinates at random are sent, times d/k, and zeros stand for the others; unbiased.

:math:`E \lVert C(v) - v \rVert^2 = (d / k - 1) \lVert v \rVert^2`. It sends the k numbers, and the
seed of which they are, 32 bits.

Source: Stich, Cordonnier and Jaggi, "Sparsified SGD with memory" (2018, arXiv:1809.07599),
definition 2.1, there without the factor.
"""

from typing import Any

import numpy as np

from concord.networks.compressions import Compress, top_k
from concord.networks.compressions.top_k import begins, number


class Params(top_k.Params):
    """How many coordinates are sent."""


def compressor(params: Params, shape: tuple[int, ...], dtype: Any) -> Compress:
    """Return ``compress(x, rng, out)``, which writes the compressed x, (..., dim)."""
    dim = shape[-1]
    kept = number(params.share, dim)
    uniform, first = np.empty(shape), begins(shape)

    def compress(x: np.ndarray, rng: np.random.Generator, out: np.ndarray) -> None:
        rng.random(out=uniform)
        sent = uniform.argpartition(kept - 1)[..., :kept] + first
        out.fill(0.0)
        out.put(sent, x.take(sent) * (dim / kept))

    return compress


def bits(params: Params, dim: int, itemsize: int) -> int:
    """Return the bits of a vector."""
    return number(params.share, dim) * 8 * itemsize + 32
