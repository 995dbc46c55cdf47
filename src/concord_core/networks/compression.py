"""Compressions: what agents send in place of a vector, and how many bytes that takes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from concord_core.errors import ConcordError


class Compressor(Protocol):
    """A way to make something shorter of vectors."""

    def compress(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return what stands for vectors x, (..., dim)."""

    def bits(self, dim: int, itemsize: int) -> int:
        """Return the bits of a compressed vector of dim numbers of itemsize bytes."""


def vector_bytes(compressor: Compressor | None, dim: int, itemsize: int) -> int:
    """Return the bytes of a vector as it is sent."""
    return math.ceil(compressor.bits(dim, itemsize) / 8) if compressor else dim * itemsize


@dataclass(frozen=True)
class QSGD:
    r"""Coordinates are rounded at random to a few levels of the vector's length; unbiased.

    .. math::
        C(v)_j = \lVert v \rVert \, \mathrm{sign}(v_j) \, \frac{\lfloor s r_j + u_j \rfloor}{s},
        \qquad r_j = \frac{|v_j|}{\lVert v \rVert}, \quad u_j \sim U(0, 1)

    so that :math:`E \lVert C(v) - v \rVert^2 \le \min(d / s^2, \sqrt d / s) \lVert v \rVert^2`. It
    sends the length, and for each coordinate its sign and its level.

    coordinate_bits: b, of which the levels are s = 2^(b - 1) - 1. levels: s itself, instead.

    Source: Alistarh, Grubic, Li, Tomioka and Vojnovic, "QSGD: communication-efficient SGD via
    gradient quantization and encoding" (2017, arXiv:1610.02132), section 3.1, without its coding.
    """

    coordinate_bits: int | None = None
    levels: int | None = None

    def __post_init__(self) -> None:
        """Refuse both or none."""
        if (self.coordinate_bits is None) == (self.levels is None):
            raise ConcordError("compression: qsgd takes bits or levels; give one of them")

    @property
    def _levels(self) -> int:
        return self.levels or 2 ** ((self.coordinate_bits or 2) - 1) - 1

    def compress(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the rounded x, (..., dim)."""
        unit = np.sqrt((x * x).sum(axis=-1, keepdims=True)) / self._levels
        unit = np.maximum(unit, np.finfo(x.dtype).tiny)  # of a vector of zeros
        uniform = rng.random(x.shape, dtype=x.dtype.type)
        return np.copysign(np.floor(np.abs(x) / unit + uniform) * unit, x)

    def bits(self, dim: int, itemsize: int) -> int:
        """Return the bits of a vector."""
        each = self.coordinate_bits or 1 + math.ceil(math.log2(self._levels + 1))
        return 8 * itemsize + each * dim


@dataclass(frozen=True)
class TopK:
    r"""The k coordinates farthest from zero are sent, and zeros stand for the others; biased.

    :math:`\lVert C(v) - v \rVert^2 \le (1 - k / d) \lVert v \rVert^2`. It sends the k numbers and
    where they stand. share: k as a share of the dimension, rounded up.

    Source: Stich, Cordonnier and Jaggi, "Sparsified SGD with memory" (2018, arXiv:1809.07599),
    definition 2.1.
    """

    share: float

    def compress(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return x with zeros for all but its largest coordinates, (..., dim)."""
        size, dropped = np.abs(x), x.shape[-1] - coordinates_kept(self.share, x.shape[-1])
        if dropped == x.shape[-1] - 1:  # the first of several that are equally large
            places = size.argmax(-1, keepdims=True)
        else:
            places = size.argpartition(dropped)[..., dropped:]
        return _only(x, places)

    def bits(self, dim: int, itemsize: int) -> int:
        """Return the bits of a vector."""
        return coordinates_kept(self.share, dim) * (8 * itemsize + (dim - 1).bit_length())


@dataclass(frozen=True)
class RandomK:
    r"""k coordinates at random are sent, times d/k, and zeros stand for the others; unbiased.

    :math:`E \lVert C(v) - v \rVert^2 = (d / k - 1) \lVert v \rVert^2`. It sends the k numbers, and
    the seed of which they are, 32 bits. share: k as a share of the dimension, rounded up.

    Source: as of ``TopK``, there without the factor.
    """

    share: float

    def compress(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return x with zeros for all but some coordinates, (..., dim)."""
        kept = coordinates_kept(self.share, x.shape[-1])
        places = rng.random(x.shape).argpartition(kept - 1)[..., :kept]
        return _only(x, places) * (x.shape[-1] / kept)

    def bits(self, dim: int, itemsize: int) -> int:
        """Return the bits of a vector."""
        return coordinates_kept(self.share, dim) * 8 * itemsize + 32


def coordinates_kept(share: float, dim: int) -> int:
    """Return k, the share of dim coordinates, rounded up."""
    return int(np.ceil(round(share * dim, 9)))


def _only(x: np.ndarray, places: np.ndarray) -> np.ndarray:
    kept = np.zeros_like(x)
    np.put_along_axis(kept, places, np.take_along_axis(x, places, -1), -1)
    return kept
