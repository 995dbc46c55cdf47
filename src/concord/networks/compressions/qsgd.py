r"""Coordinates are rounded at random to a few levels of the vector's length (QSGD); unbiased.

.. math::
    C(v)_j = \lVert v \rVert \, \mathrm{sign}(v_j) \, \frac{\lfloor s r_j + u_j \rfloor}{s},
    \qquad r_j = \frac{|v_j|}{\lVert v \rVert}, \quad u_j \sim U(0, 1), \quad s = 2^{b - 1} - 1

or as many levels s as are given, so that E C(v) = v and :math:`E \lVert C(v) - v \rVert^2 \le
\min(d / s^2, \sqrt d / s) \lVert v \rVert^2`. It
sends the length, and b bits for each coordinate: its sign and its level.

Source: Alistarh, Grubic, Li, Tomioka and Vojnovic, "QSGD: communication-efficient SGD via gradient
quantization and encoding" (2017, arXiv:1610.02132), section 3.1, without its coding of the levels.
"""

import math
from typing import Annotated

import numpy as np
from msgspec import Meta

from concord.errors import ConcordError
from concord.options import Count, Options


class Params(Options):
    """To how many bits, or levels, a coordinate is rounded."""

    bits: Annotated[
        Annotated[int, Meta(ge=2, le=16)] | None, "bits b of each coordinate, one of them its sign"
    ] = None
    levels: Annotated[Count | None, "levels s, instead of bits"] = None


def count_levels(params: Params) -> int:
    """Return the number of levels. A ConcordError unless it is given once."""
    if (params.bits is None) == (params.levels is None):
        raise ConcordError("compression: qsgd takes bits or levels; give one of them")
    return params.levels or 2 ** ((params.bits or 2) - 1) - 1


def compress(params: Params, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return x, (..., dim), with coordinates rounded to levels of each vector's length."""
    unit = np.sqrt((x * x).sum(axis=-1, keepdims=True)) / count_levels(params)
    unit = np.maximum(unit, np.finfo(x.dtype).tiny)  # of a vector of zeros
    uniform = rng.random(x.shape, dtype=x.dtype.type)
    return np.copysign(np.floor(np.abs(x) / unit + uniform) * unit, x)


def bits(params: Params, dim: int, itemsize: int) -> int:
    """Return the bits of a compressed vector of ``dim`` numbers of ``itemsize`` bytes each."""
    each = params.bits or 1 + math.ceil(math.log2(count_levels(params) + 1))
    return 8 * itemsize + each * dim
