r"""Exact moments of updates that are affine once a random choice is known, such as who gossips.

One step draws a choice c with probability p_c, independently of all else, and moves the state by

    s' = A_c s + b_c + w,    w ~ N(0, Q_c).

Mean and covariance follow a linear recursion, so they are exact at every step and in the limit:

    m' = sum_c p_c m_c,  m_c = A_c m + b_c
    C' = sum_c p_c (A_c C A_c^T + Q_c + (m_c - m') (m_c - m')^T)

The law itself is a mixture over the choices and not normal: distances of the normal law with these
moments are lower bounds of its own. Where choices are the same in all iterations the recursion of
first and second moments has powers, which lead over many of them: with :math:`M = E s s^\top`,

.. math::
    M' = \sum_c p_c \bigl( A_c M A_c^\top + A_c m b_c^\top + b_c m^\top A_c^\top + b_c b_c^\top
         + Q_c \bigr), \qquad m' = \sum_c p_c (A_c m + b_c).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from concord.laws.exact import Moments, Powers

# The limit solves a dense system of as many unknowns as a covariance has entries.
SIZE_LIMIT = 40


class _AffineMaps(NamedTuple):
    """Affine maps s' = A s + c of versions, (..., S, S) and (..., S), as ``Powers`` takes them."""

    matrix: np.ndarray
    shift: np.ndarray

    def apply(self, state: np.ndarray) -> tuple[np.ndarray]:
        """Return A s + c, as a tuple."""
        return (np.matvec(self.matrix, state) + self.shift,)

    def compose_with(self, later: _AffineMaps) -> _AffineMaps:
        """Return the composition of this map and a later one."""
        return _AffineMaps(later.matrix @ self.matrix, *later.apply(self.shift))


@dataclass(frozen=True, eq=False)
class Choices:
    """The affine updates among which a step chooses at random, and their probabilities.

    probability: p_c, shape (choices,).
    matrix, offset, noise: A_c, b_c and Q_c, shapes (..., choices, S, S), (..., choices, S) and
    (..., choices, S, S). Versions of a sampler, which have the same probabilities, may stand on the
    first axis.
    gradient_gain: G_c of mini-batches (``exact.Affine``), (choices, S, agents * dim), or None.
    """

    STACKED: ClassVar = ("matrix", "offset", "noise")

    probability: np.ndarray
    matrix: np.ndarray
    offset: np.ndarray
    noise: np.ndarray
    gradient_gain: np.ndarray | None = None

    @cached_property
    def lead(self) -> np.ndarray:
        """The mean matrix, (..., S, S)."""
        return np.einsum("c,...cij->...ij", self.probability, self.matrix)

    def apply(self, mean: np.ndarray, cov: np.ndarray) -> Moments:
        """Return the state's mean (..., S) and covariance (..., S, S) after a step.

        mean, cov: of the state before the step.
        """
        means = np.matvec(self.matrix, mean[..., None, :]) + self.offset
        center = np.einsum("c,...ci->...i", self.probability, means)
        apart = means - center[..., None, :]
        each = self.matrix @ cov[..., None, :, :] @ self.matrix.swapaxes(-1, -2) + self.noise
        each = each + apart[..., :, None] * apart[..., None, :]
        return center, np.einsum("c,...cij->...ij", self.probability, each)

    def advance(self, steps: int, mean: np.ndarray, cov: np.ndarray) -> Moments:
        """Return mean (..., S) and covariance (..., S, S) after a number of steps.

        mean, cov: those before the steps.
        """
        second = (cov + mean[..., :, None] * mean[..., None, :])[..., *self._upper]
        (state,) = self._powers.advance(steps, np.concatenate([second, mean], axis=-1))
        return self._moments(state)

    def radius(self) -> float:
        """Return the square root of the spectral radius of the covariance's linear map.

        Moments settle if it is below 1. With a single update it is the spectral radius of A.
        """
        count = len(self._upper[0])
        return float(np.sqrt(np.abs(np.linalg.eigvals(self._once.matrix[:count, :count])).max()))

    def stationary(self) -> Moments | None:
        """Return the limits of mean (S,) and covariance (S, S). None where there are none."""
        if self.radius() >= 1:
            return None
        change = np.eye(len(self._once.shift)) - self._once.matrix
        return self._moments(np.linalg.solve(change, self._once.shift))

    @cached_property
    def _upper(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows and columns of a covariance's upper triangle."""
        return np.triu_indices(self.offset.shape[-1])

    @cached_property
    def _powers(self) -> Powers:
        """The powers of the recursion."""
        return Powers(self._once)

    @cached_property
    def _once(self) -> _AffineMaps:
        """The recursion of second moments' upper triangles, above that of means."""
        share, matrix, offset, upper = self.probability, self.matrix, self.offset, self._upper
        quadratic = np.einsum("c,...cij,...ckl->...ikjl", share, matrix, matrix, optimize=True)
        quadratic = quadratic[..., *upper, :, :]
        both = (quadratic + quadratic.swapaxes(-1, -2))[..., *upper]
        second = both * np.where(upper[0] == upper[1], 0.5, 1.0)
        mixed = np.einsum("c,...cij,...ck->...ikj", share, matrix, offset, optimize=True)
        mixed = (mixed + mixed.swapaxes(-3, -2))[..., *upper, :]
        added = np.einsum("c,...ci,...ck->...ik", share, offset, offset)
        added = (added + np.einsum("c,...cij->...ij", share, self.noise))[..., *upper]
        above = np.concatenate([second, mixed], axis=-1)
        below = np.concatenate([np.zeros_like(mixed.swapaxes(-1, -2)), self.lead], axis=-1)
        shift = np.concatenate([added, np.einsum("c,...ci->...i", share, offset)], axis=-1)
        return _AffineMaps(np.concatenate([above, below], axis=-2), shift)

    def _moments(self, state: np.ndarray) -> Moments:
        """Return means and covariances, from second moments above means, (..., entries)."""
        count = len(self._upper[0])
        mean = state[..., count:]
        cov = np.empty((*mean.shape, mean.shape[-1]))
        cov[..., *self._upper] = cov[..., *self._upper[::-1]] = state[..., :count]
        return mean, cov - mean[..., :, None] * mean[..., None, :]
