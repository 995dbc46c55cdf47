"""Compressions: what agents send in place of a vector, and how many bits that takes.

One module each (``CompressionKind``).
"""

import math
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np

from concord.plugins import Chosen

# compress(x, rng, out) writes what stands for vectors x, (..., dim).
Compress = Callable[[np.ndarray, np.random.Generator, np.ndarray], object]


@runtime_checkable
class CompressionKind(Protocol):
    """A module of ``concord.networks.compressions``."""

    Params: type

    def compressor(self, params: Any, shape: tuple[int, ...], dtype: Any) -> Compress:
        """Return ``compress(x, rng, out)``, which writes the compressed x, of this shape."""

    def bits(self, params: Any, dim: int, itemsize: int) -> int:
        """Return the bits of a compressed vector of dim numbers of itemsize bytes."""


class Compression(Chosen):
    """A kind of compression and its options: ``{kind: qsgd, bits: 4}``."""

    package = "compressions"

    def compressor(self, shape: tuple[int, ...], dtype: Any) -> Compress:
        """Return ``compress(x, rng, out)`` for vectors x, (..., dim), of a shape."""
        made: Compress = self.module.compressor(self.params, shape, dtype)
        return made

    def size(self, dim: int, itemsize: int) -> int:
        """Return the bytes of a compressed vector of dim numbers of itemsize bytes."""
        return math.ceil(self.module.bits(self.params, dim, itemsize) / 8)
