"""Compressions: what agents send in place of a vector, and how many bytes that takes.

One module each (``CompressionKind``).
"""

import math
from typing import Protocol, runtime_checkable

import numpy as np

from concord.options import Chosen, Options


@runtime_checkable
class CompressionKind(Protocol):
    """A module of ``concord.networks.compressions``."""

    Params: type

    def compress(self, params: Options, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the vectors (..., dim) that receivers decode from the compressed x."""

    def bits(self, params: Options, dim: int, itemsize: int) -> int:
        """Return the bits of a compressed vector of dim numbers of itemsize bytes."""


class Compression(Chosen):
    """A kind of compression and its options: ``{kind: qsgd, bits: 4}``."""

    room = "compressions"

    def compress(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the vectors (..., dim) that receivers decode from the compressed x."""
        code: np.ndarray = self.module.compress(self.params, x, rng)
        return code

    def size(self, dim: int, itemsize: int) -> int:
        """Return the bytes of a compressed vector of dim numbers of itemsize bytes."""
        return math.ceil(self.module.bits(self.params, dim, itemsize) / 8)
