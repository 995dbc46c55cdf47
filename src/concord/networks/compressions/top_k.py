r"""The k coordinates farthest from zero are sent, and zeros stand for the others; biased.

:math:`\lVert C(v) - v \rVert^2 \le (1 - k / d) \lVert v \rVert^2`. It sends the k numbers and where
they stand.

Source: Stich, Cordonnier and Jaggi, "Sparsified SGD with memory" (2018, arXiv:1809.07599),
definition 2.1.
"""

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


def compressor(params: Params, shape: tuple[int, ...], dtype: Any) -> Compress:
    """Return ``compress(x, rng, out)``, which writes the compressed x, (..., dim)."""
    dropped = shape[-1] - number(params.share, shape[-1])
    size = np.empty(shape, dtype)

    def compress(x: np.ndarray, rng: np.random.Generator, out: np.ndarray) -> None:
        np.abs(x, out=size)
        least = np.argpartition(size, dropped, axis=-1)[..., :dropped]
        np.copyto(out, x)
        np.put_along_axis(out, least, 0.0, axis=-1)

    return compress


def bits(params: Params, dim: int, itemsize: int) -> int:
    """Return the bits of a vector."""
    return number(params.share, dim) * (8 * itemsize + (dim - 1).bit_length())
