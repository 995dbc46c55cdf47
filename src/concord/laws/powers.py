r"""Powers of an affine update, by which a law gets over many iterations in few products.

With :math:`T(m, C) = (A m + c, A C A^\top + Q)` the maps T, T^2, T^4, ... make the law after any
number of steps from as many products as that number has binary digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

Moments = tuple[np.ndarray, np.ndarray]


class Map(NamedTuple):
    """Stacked maps of moments: matrix (..., S, S), offset (..., S), noise (..., S, S)."""

    matrix: np.ndarray
    offset: np.ndarray
    noise: np.ndarray

    @classmethod
    def stacked(cls, maps: Sequence[Any]) -> Map:
        """Return the maps of versions as one; of one version its own arrays."""
        if len(maps) == 1:
            return cls(*(getattr(maps[0], field)[None] for field in cls._fields))
        return cls(*(np.stack([getattr(m, field) for m in maps]) for field in cls._fields))

    def of(self, mean: np.ndarray, cov: np.ndarray) -> Moments:
        """Return the moments after the map."""
        transposed = self.matrix.swapaxes(-1, -2).conj()  # of modes they are complex
        return self.mean(mean), self.matrix @ cov @ transposed + self.noise

    def mean(self, mean: np.ndarray) -> np.ndarray:
        """Return the mean after the map."""
        return np.matvec(self.matrix, mean) + self.offset

    def then(self, later: Map) -> Map:
        """Return the composition: this one, then ``later``."""
        return Map(later.matrix @ self.matrix, *later.of(self.offset, self.noise))

    def summing(self, read: np.ndarray) -> Map:
        """Return the map with a running sum of what is read, R s, after it."""
        stack, size, sums = self.matrix.shape[:-2], self.matrix.shape[-1], len(read)
        matrix = np.zeros((*stack, size + sums, size + sums), self.matrix.dtype)
        matrix[..., :size, :size], matrix[..., size:, :size] = self.matrix, read @ self.matrix
        matrix[..., size:, size:] = np.eye(sums)
        both = np.concatenate([np.eye(size), read])
        return Map(matrix, np.matvec(both, self.offset), both @ self.noise @ both.T)


class Powers:
    """Powers of two of what has ``of`` and ``then``, as ``Map`` does, made when they are needed."""

    def __init__(self, once: Any) -> None:
        self._maps = [once]

    def after(self, steps: int, *state: np.ndarray) -> Any:
        """Return the state, which ``of`` takes and returns, after so many applications."""
        power = 0
        while steps:
            if power == len(self._maps):
                self._maps.append(self._maps[-1].then(self._maps[-1]))
            if steps & 1:
                state = self._maps[power].of(*state)
            steps, power = steps >> 1, power + 1
        return state
