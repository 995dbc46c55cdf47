"""Gaussian laws: their moments, draws, and the moments of their monomials."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from concord.errors import ConcordError
from concord.summary import WithMoments
from concord.values import read_numbers


@dataclass(frozen=True, repr=False)
class Gaussian(WithMoments):
    """The law N(mean, cov) with mean (dim,) and cov (dim, dim).

    Raises
    ------
    ConcordError
        If they are no such arrays, or ``cov`` is not symmetric and positive definite.

    Examples
    --------
    >>> import concord, numpy as np
    >>> target = concord.Gaussian(mean=np.zeros(2), cov=np.eye(2))
    >>> problem = concord.Problem(lambda x: x / 4, agents=4, dim=2, posterior=target)
    """

    mean: np.ndarray
    cov: np.ndarray
    draws: ClassVar[float] = math.inf

    def __post_init__(self) -> None:
        """Convert lists to arrays, and refuse values that are no Gaussian law."""
        mean, cov = (read_numbers(getattr(self, n), f"Gaussian: {n}") for n in ("mean", "cov"))
        dim = mean.shape[0] if mean.ndim == 1 else 0
        if not dim or cov.shape != (dim, dim):
            raise ConcordError(
                f"Gaussian: mean of shape {mean.shape} and cov of shape {cov.shape} do not fit; "
                "give (dim,) and (dim, dim)"
            )
        for name, values in (("mean", mean), ("cov", cov)):
            object.__setattr__(self, name, values)
        largest = np.abs(cov).max()
        if (np.abs(cov - cov.T) > 1e-8 * largest).any():
            raise ConcordError("Gaussian: cov is not symmetric; give (cov + cov.T) / 2")
        if np.linalg.eigvalsh(cov)[0] <= -1e-12 * largest or not (np.diagonal(cov) > 0).all():
            raise ConcordError(
                "Gaussian: cov is not positive definite; give one whose eigenvalues are positive"
            )

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Return mean (dim,) and covariance (dim, dim)."""
        return self.mean, self.cov

    def monomials(self) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance of x_1, ..., x_dim, x_1^2, ..., x_dim^2, both (2 dim,)."""
        return monomials(self.mean, self.cov)

    def sample(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Return independent draws, (count, dim)."""
        return rng.standard_normal((count, len(self.mean))) @ matrix_root(self.cov) + self.mean


def monomials(mean: np.ndarray, cov: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance of each x_j and each x_j^2, of normal x, both (..., 2 dim).

    mean, cov: of x, shapes (..., dim) and (..., dim, dim).
    """
    variance = np.diagonal(cov, axis1=-2, axis2=-1)
    means = np.concatenate([mean, variance + mean**2], axis=-1)
    return means, np.concatenate([variance, 2 * variance**2 + 4 * mean**2 * variance], axis=-1)


def matrix_root(cov: np.ndarray) -> np.ndarray:
    """Return the symmetric square root of a positive semidefinite matrix."""
    values, vectors = np.linalg.eigh(cov)
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
