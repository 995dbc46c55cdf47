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

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import NamedTuple

import numpy as np

from concord.laws.exact import Moments, Powers

# The limit solves a dense system of as many unknowns as a covariance has entries.
SIZE_LIMIT = 40


@dataclass(frozen=True, eq=False)
class Choices:
    """The affine updates among which a step chooses at random, and their probabilities.

    probability: p_c, shape (choices,).
    matrix, offset, noise: A_c, b_c and Q_c, shapes (choices, S, S), (choices, S) and (choices, S,
    S).
    """

    probability: np.ndarray
    matrix: np.ndarray
    offset: np.ndarray
    noise: np.ndarray

    def step(self, mean: np.ndarray, cov: np.ndarray) -> Moments:
        """Return the state's mean (S,) and covariance (S, S) after a step.

        mean, cov: of the state before the step.
        """
        means = self.matrix @ mean + self.offset
        center = self.probability @ means
        deviations = means - center
        each = self.matrix @ cov @ self.matrix.swapaxes(1, 2) + self.noise
        return center, np.tensordot(
            self.probability, each + deviations[:, :, None] * deviations[:, None, :], axes=1
        )

    def same(self, other: Choices) -> bool:
        """Return whether another step has the same updates with the same probabilities."""
        return all(
            np.array_equal(getattr(self, field.name), getattr(other, field.name))
            for field in fields(self)
        )

    def radius(self) -> float:
        """Return the square root of the spectral radius of the covariance's linear map.

        Moments settle if it is below 1. With a single update it is the spectral radius of A.
        """
        return float(np.sqrt(np.abs(np.linalg.eigvals(self._second_moments.second[0])).max()))

    def stationary(self) -> Moments | None:
        """Return the limits of mean (S,) and covariance (S, S); None where there are none."""
        if self.radius() >= 1:
            return None
        mean, cov = self._second_moments.fixed_point()
        return mean[0], cov[0]

    @cached_property
    def _second_moments(self) -> SecondMoments:
        """The recursion of first and second moments; a ValueError for too many entries."""
        if len(self.offset[0]) > SIZE_LIMIT:
            raise ValueError(f"{len(self.offset[0])} entries exceed {SIZE_LIMIT}")
        return SecondMoments([self])


class _Linear(NamedTuple):
    """Affine maps s' = A s + c of versions, (..., S, S) and (..., S), as ``Powers`` takes them."""

    matrix: np.ndarray
    shift: np.ndarray

    def apply(self, state: np.ndarray) -> tuple[np.ndarray]:
        """Return A s + c, as a tuple."""
        return (np.matvec(self.matrix, state) + self.shift,)

    def compose_with(self, later: _Linear) -> _Linear:
        """Return the composition of this map and a later one."""
        return _Linear(later.matrix @ self.matrix, *later.apply(self.shift))


class SecondMoments:
    r"""Powers of versions whose choices are the same in all iterations.

    First and second moments obey one linear recursion, whose powers are squared: with :math:`M = E
    s s^\top`,

    .. math::
        M' = \sum_c p_c \bigl( A_c M A_c^\top + A_c m b_c^\top + b_c m^\top A_c^\top + b_c b_c^\top
             + Q_c \bigr), \qquad m' = \sum_c p_c (A_c m + b_c).

    chosen: the choices of each version, with the same probabilities.
    second: the map of the second moments' upper triangles alone, (versions, entries, entries).
    lead: the mean matrix, (versions, S, S).
    """

    def __init__(self, chosen: Sequence[Choices]) -> None:
        size = len(chosen[0].offset[0])
        self._upper = upper = np.triu_indices(size)
        share = chosen[0].probability
        matrix, offset, noise = (
            np.stack([getattr(c, f) for c in chosen]) for f in ("matrix", "offset", "noise")
        )  # versions, choices, ...
        quadratic = np.einsum("c,vcij,vckl->vikjl", share, matrix, matrix, optimize=True)[:, *upper]
        both = (quadratic + quadratic.swapaxes(-1, -2))[..., *upper]
        self.second = both * np.where(upper[0] == upper[1], 0.5, 1.0)
        mixed = np.einsum("c,vcij,vck->vikj", share, matrix, offset, optimize=True)
        mixed = (mixed + mixed.swapaxes(1, 2))[:, *upper]
        added = np.einsum("c,vci,vck->vik", share, offset, offset)[:, *upper]
        added = added + np.tensordot(noise, share, axes=(1, 0))[:, *upper]
        self.lead = np.tensordot(matrix, share, axes=(1, 0))
        nothing = np.zeros((len(chosen), size, len(upper[0])))
        rows = np.concatenate([self.second, nothing], 1), np.concatenate([mixed, self.lead], 1)
        shift = np.concatenate([added, np.tensordot(offset, share, axes=(1, 0))], axis=1)
        self._once = _Linear(np.concatenate(rows, axis=2), shift)
        self._powers = Powers(self._once)

    def apply(self, mean: np.ndarray, cov: np.ndarray) -> Moments:
        """Return mean (versions, S) and covariance (versions, S, S) after a step."""
        return self.advance(1, mean, cov)

    def advance(self, steps: int, mean: np.ndarray, cov: np.ndarray) -> Moments:
        """Return mean (versions, S) and covariance (versions, S, S) after a number of steps.

        mean, cov: those before the steps.
        """
        second = (cov + mean[..., :, None] * mean[..., None, :])[..., *self._upper]
        (state,) = self._powers.advance(steps, np.concatenate([second, mean], axis=-1))
        return self._moments(state)

    def fixed_point(self) -> Moments:
        """Return the mean (versions, S) and covariance (versions, S, S) that a step keeps."""
        change = np.eye(self._once.shift.shape[-1]) - self._once.matrix
        return self._moments(np.linalg.solve(change, self._once.shift[..., None])[..., 0])

    def _moments(self, state: np.ndarray) -> Moments:
        """Return means and covariances, from second moments above means, (versions, entries)."""
        count = len(self._upper[0])
        mean = state[..., count:]
        cov = np.empty((*mean.shape, mean.shape[-1]))
        cov[..., *self._upper] = cov[..., *self._upper[::-1]] = state[..., :count]
        return mean, cov - mean[..., :, None] * mean[..., None, :]
