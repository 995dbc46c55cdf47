r"""The k coordinates farthest from zero are sent, and zeros stand for the others; biased.

:math:`\lVert C(v) - v \rVert^2 \le (1 - k / d) \lVert v \rVert^2`. It sends the k numbers and where
they stand.

Source: Stich, Cordonnier and Jaggi, "Sparsified SGD with memory" (2018, arXiv:1809.07599),
definition 2.1.
"""

from typing import Annotated

import numpy as np
from msgspec import Meta

from concord.options import Options


class Params(Options):
    """How many coordinates are sent."""

    share: Annotated[float, Meta(gt=0, le=1), "k as a share of the dimension, rounded up"]


def count_coordinates(share: float, dim: int) -> int:
    """Return k, how many of dim coordinates a share is, rounded up."""
    return int(np.ceil(round(share * dim, 9)))


def keep_coordinates(x: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return x, (..., dim), with zeros at all but the coordinates ``places``, (..., k)."""
    sparse = np.zeros_like(x)
    np.put_along_axis(sparse, places, np.take_along_axis(x, places, -1), -1)
    return sparse


def compress(params: Params, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return x, (..., dim), with zeros for all but its largest coordinates."""
    size, dropped = np.abs(x), x.shape[-1] - count_coordinates(params.share, x.shape[-1])
    if dropped == x.shape[-1] - 1:  # the first of several that are equally large
        return keep_coordinates(x, size.argmax(-1, keepdims=True))
    return keep_coordinates(x, size.argpartition(dropped)[..., dropped:])


def bits(params: Params, dim: int, itemsize: int) -> int:
    """Return the bits of a compressed vector of ``dim`` numbers of ``itemsize`` bytes each."""
    return count_coordinates(params.share, dim) * (8 * itemsize + (dim - 1).bit_length())
