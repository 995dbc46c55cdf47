r"""Gaussian laws from which agents draw, how they are combined, and ties between agents' copies.

Where :math:`f_i(x) = x^\top H_i x / 2 - b_i^\top x`, :math:`\exp(-f_i)` is the Gaussian
:math:`N(S_i b_i, S_i)` with :math:`S_i = H_i^{-1}`.
"""

from functools import lru_cache

import numpy as np

from concord.errors import ConcordError
from concord.needs import check_positive_definite

Rows = tuple[tuple[float, ...], ...]  # of a matrix
Factor = np.ndarray | float  # of vectors: a matrix, or 1.0


def invert_precisions(precisions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the covariances of Gaussians, and their Cholesky factors, (agents, dim, dim) both.

    precisions: H_i, (agents, dim, dim). A ConcordError if one is not positive definite.
    """
    check_positive_definite(precisions)
    covariance = np.linalg.inv(precisions)
    return covariance, np.linalg.cholesky(covariance)


def multiply_each(matrices: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return each agent's matrix times its vectors, (chains, agents, dim).

    matrices: (agents, dim, dim). x: (chains, agents, dim).
    """
    return np.einsum("aed,cad->cae", matrices, x)


@lru_cache(maxsize=8)
def coupling_matrices(rows: Rows | None, dim: int) -> tuple[Factor, Factor, Factor]:
    r"""Return the transposes of A, of its inverse, and of :math:`G = (A^\top A)^{-1}`.

    A ties copies z of a vector theta by :math:`\lVert A (z - \theta) \rVert^2`. rows: of A, as
    tuples; None: the identity, for which 1.0 stands. dim: length of the vectors. The matrices are
    (dim, dim). A ConcordError if A is no invertible matrix of this size.
    """
    if rows is None:
        return 1.0, 1.0, 1.0
    if {len(rows), *map(len, rows)} != {dim} or not np.linalg.det(rows):
        raise ConcordError(f"coupling: give the {dim} rows of an invertible matrix, {dim} numbers")
    inverse = np.linalg.inv(rows)
    return np.transpose(rows), inverse.T, inverse @ inverse.T


def add_draws(
    x: np.ndarray, mean: np.ndarray, squares: np.ndarray, count: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the running moments of draws after one more of each agent (Welford's update).

    x: the draws, (chains, agents, dim). mean: of those before, like x. squares: their sums of
    squared deviations, (chains, agents, dim, dim). count: their number, (1,). Return the new mean,
    squares and count.
    """
    count, deviation = count + 1, x - mean
    outer = deviation[..., None] * deviation[..., None, :]
    return mean + deviation / count, squares + outer * (1 - 1 / count), count


def combine_gaussians(
    centers: np.ndarray, covariances: np.ndarray, w: np.ndarray | None = None
) -> np.ndarray:
    r"""Return the average of centers m_i weighted by inverse covariances, (chains, dim).

    That is the mean of the product of the Gaussians N(m_i, \Lambda_i^{-1}) of all agents,

    .. math:: \bigl( \textstyle \sum_i \Lambda_i \bigr)^{-1} \sum_i \Lambda_i m_i.

    centers: (chains, agents, dim). covariances: (chains, agents, dim, dim). w: normal numbers,
    (chains, dim), by which a draw from the product is returned; None: its mean. It is nan in chains
    with numbers that are not finite.
    """
    average = np.full((len(centers), centers.shape[2]), np.nan)
    finite = np.isfinite(covariances).all(axis=(1, 2, 3)) & np.isfinite(centers).all(axis=(1, 2))
    weights = np.linalg.pinv(covariances[finite], hermitian=True)
    cov = np.linalg.inv(weights.sum(axis=1))
    average[finite] = np.einsum("cij,cajk,cak->ci", cov, weights, centers[finite])
    if w is not None:
        average[finite] += np.einsum("cij,cj->ci", np.linalg.cholesky(cov), w[finite])
    return average
