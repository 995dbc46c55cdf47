r"""k coordinates at random are sent, times d/k, and zeros stand for the others; unbiased.

:math:`E \lVert C(v) - v \rVert^2 = (d / k - 1) \lVert v \rVert^2`. It sends the k numbers, and the
seed of which they are, 32 bits.

Source: Stich, Cordonnier and Jaggi, "Sparsified SGD with memory" (2018, arXiv:1809.07599),
definition 2.1, there without the factor.
"""

import numpy as np

from concord.networks.compressions.top_k import Params, count_coordinates, keep_coordinates


def compress(params: Params, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return x, (..., dim), with zeros for all but some coordinates, which are scaled."""
    count = count_coordinates(params.share, x.shape[-1])
    places = rng.random(x.shape).argpartition(count - 1)[..., :count]
    return keep_coordinates(x, places) * (x.shape[-1] / count)


def bits(params: Params, dim: int, itemsize: int) -> int:
    """Return the bits of a compressed vector of ``dim`` numbers of ``itemsize`` bytes each."""
    return count_coordinates(params.share, dim) * 8 * itemsize + 32
