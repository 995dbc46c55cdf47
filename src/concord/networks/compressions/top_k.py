r"""The k coordinates farthest from zero are sent, and zeros stand for the others; biased.

:math:`\lVert C(v) - v \rVert^2 \le (1 - k / d) \lVert v \rVert^2`. It sends the k numbers and where
they stand.

Source: Stich, Cordonnier and Jaggi, "Sparsified SGD with memory" (2018, arXiv:1809.07599),
definition 2.1.
"""

import math
from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from concord.networks.compressions import Compress
from concord.options import Options


class Params(Options):
    """How many coordinates are sent."""

    share: Annotated[float, Meta(gt=0, le=1), "k as a share of the dimension, rounded up"]


def number(share: float, dim: int) -> int:
    """Return k."""
    return int(np.ceil(round(share * dim, 9)))


def begins(shape: tuple[int, ...]) -> np.ndarray:
    """Return where each vector of an array begins among all of its numbers, (..., 1)."""
    return np.arange(0, math.prod(shape), shape[-1]).reshape(*shape[:-1], 1)


def compressor(params: Params, shape: tuple[int, ...], dtype: Any) -> Compress:
    """Return ``compress(x, rng, out)``, which writes the compressed x, (..., dim)."""
    dropped = shape[-1] - number(params.share, shape[-1])
    size, first = np.empty(shape, dtype), begins(shape)
    one = dropped == shape[-1] - 1  # which argmax finds in a sixth of the time

    def compress(x: np.ndarray, rng: np.random.Generator, out: np.ndarray) -> None:
        np.abs(x, out=size)
        kept = size.argmax(-1, keepdims=True) if one else size.argpartition(dropped)[..., dropped:]
        places = kept + first
        out.fill(0.0)
        out.put(places, x.take(places))

    return compress


def bits(params: Params, dim: int, itemsize: int) -> int:
    """Return the bits of a vector."""
    return number(params.share, dim) * (8 * itemsize + (dim - 1).bit_length())
