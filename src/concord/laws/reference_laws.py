"""Posteriors in any dimension, given by formulas or by draws (``concord.reference``)."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from concord.laws.wasserstein import fit
from concord.summary import WithMoments


@runtime_checkable
class WithQuantiles(Protocol):
    """A law whose marginals have quantiles."""

    def quantiles(self, levels: np.ndarray) -> np.ndarray:
        """Return quantiles of every parameter, (levels, dim), at levels from 0 to 1."""


@dataclass(frozen=True, repr=False)
class AnalyticLaw(WithMoments):
    """A law with formulas for its moments, and a function that draws from it independently.

    mean, cov: shapes (dim,) and (dim, dim).
    third, fourth: central moments of each coordinate, (dim,).
    draw: ``draw(count, rng)`` returns independent draws, (count, dim).
    """

    mean: np.ndarray
    cov: np.ndarray
    third: np.ndarray
    fourth: np.ndarray
    draw: Callable[[int, np.random.Generator], np.ndarray]
    draws: ClassVar[float] = math.inf

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Return mean (dim,) and covariance (dim, dim)."""
        return self.mean, self.cov

    def monomials(self) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance of x_1, ..., x_dim, x_1^2, ..., x_dim^2, both (2 dim,)."""
        m, variance = self.mean, np.diag(self.cov)
        squares = 4 * m**2 * variance + 4 * m * self.third + self.fourth - variance**2
        means = np.concatenate([m, m**2 + variance])
        return means, np.concatenate([variance, squares])

    def sample(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Return independent draws, (count, dim)."""
        return self.draw(count, rng)


@dataclass(frozen=True, repr=False)
class Draws(WithMoments):
    """A law given by draws that count as independent, or by weighted points.

    values: draws, (draws, dim).
    weights: of the points, (draws,), not negative, with sum 1; none: all are equal.
    """

    values: np.ndarray
    weights: np.ndarray | None = None

    @property
    def draws(self) -> float:
        """The effective sample size, 1 / sum of squared weights.

        The law's means have the error of a standard deviation over its square root.
        """
        return len(self.values) if self.weights is None else 1 / float(self.weights @ self.weights)

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Return mean (dim,) and covariance (dim, dim)."""
        if self.weights is None:
            return fit(self.values)
        mean = self.weights @ self.values
        centered = self.values - mean
        return mean, (centered * self.weights[:, None]).T @ centered

    def monomials(self) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance of x_1, ..., x_dim, x_1^2, ..., x_dim^2, both (2 dim,)."""
        return self._monomials

    @cached_property
    def _monomials(self) -> tuple[np.ndarray, np.ndarray]:
        """The mean and variance of coordinates and their squares, computed once."""
        values = np.concatenate([self.values, self.values**2], axis=1)
        if self.weights is None:
            return values.mean(axis=0), values.var(axis=0)
        means = self.weights @ values
        return means, self.weights @ (values - means) ** 2

    def sample(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Return ``count`` draws in random order, (count, dim).

        Of draws without weights each is returned as often as any other, or once more; points with
        weights are drawn by these.
        """
        if self.weights is not None:
            return self.values[rng.choice(len(self.values), count, p=self.weights)]
        rounds = -(-count // len(self.values))
        order = [rng.permutation(len(self.values)) for _ in range(rounds)]
        return self.values[np.concatenate(order)[:count]]
