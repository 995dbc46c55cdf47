"""Exact moments of updates that are affine once a random choice is known, such as who gossips.

One step draws a choice c with probability p_c, independently of all else, and moves the state by

    s' = A_c s + b_c + w,    w ~ N(0, Q_c).

Mean and covariance follow a linear recursion, so they are exact at every step and in the limit:

    m' = sum_c p_c m_c,  m_c = A_c m + b_c
    C' = sum_c p_c (A_c C A_c^T + Q_c + (m_c - m') (m_c - m')^T)

The law itself is a mixture over the choices and not normal: distances of the normal law with these
moments are lower bounds of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# The limit solves a dense system of as many unknowns as a covariance has entries.
SIZE_LIMIT = 40


@dataclass(frozen=True, eq=False)
class Choices:
    """The updates that a step chooses from.

    probability: p_c, shape (choices,). matrix, offset, noise: A_c, b_c and Q_c, shapes (choices, S,
    S), (choices, S) and (choices, S, S).
    """

    probability: np.ndarray
    matrix: np.ndarray
    offset: np.ndarray
    noise: np.ndarray

    def step(self, mean: np.ndarray, cov: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean (S,) and covariance (S, S) after a step."""
        means = self.matrix @ mean + self.offset
        center = self.probability @ means
        apart = means - center
        each = self.matrix @ cov @ self.matrix.swapaxes(1, 2) + self.noise
        return center, np.tensordot(
            self.probability, each + apart[:, :, None] * apart[:, None, :], axes=1
        )

    def radius(self) -> float:
        """Return the root of the spectral radius of the covariance's map.

        Below 1 moments settle. It is the spectral radius of A where there is no choice.
        """
        return float(np.sqrt(np.abs(np.linalg.eigvals(self._map())).max()))

    def stationary(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the limit of mean (S,) and covariance (S, S), None where there is none."""
        size = len(self.offset[0])
        if self.radius() >= 1:
            return None
        mean = np.linalg.solve(
            np.eye(size) - np.tensordot(self.probability, self.matrix, axes=1),
            self.probability @ self.offset,
        )
        added = self.step(mean, np.zeros((size, size)))[1]
        cov = np.linalg.solve(np.eye(size**2) - self._map(), added.ravel()).reshape(size, size)
        return mean, (cov + cov.T) / 2

    def _map(self) -> np.ndarray:
        """Return sum_c p_c A_c (x) A_c, shape (S^2, S^2)."""
        size = len(self.offset[0])
        if size > SIZE_LIMIT:
            raise ValueError(f"{size} entries exceed {SIZE_LIMIT}")
        kron = np.zeros((size**2, size**2))
        for probability, matrix in zip(self.probability, self.matrix, strict=True):
            kron += probability * np.kron(matrix, matrix)
        return kron
