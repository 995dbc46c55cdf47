"""Wasserstein distances between Gaussian laws, of fits to draws, and their sampling error.

The squared distance between N(m, S) and N(mu, V) is

    W2^2 = |m - mu|^2 + tr S + tr V - 2 tr (V^1/2 S V^1/2)^1/2

(the Bures-Wasserstein distance). For laws that are not Gaussian the same expression of their first
two moments is a lower bound of W2 (Gelbrich).
"""

import math
from typing import Protocol

import numpy as np

from concord.laws.gaussian import Gaussian, matrix_root, monomials

# Fits that the floor is the mean of.
FLOORS = 1000


class WithMonomials(Protocol):
    """A law whose coordinates and their squares have known moments."""

    def monomials(self) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance of x_1, ..., x_dim, x_1^2, ..., x_dim^2, both (2 dim,)."""


def w2(mean: np.ndarray, cov: np.ndarray, target: Gaussian) -> np.ndarray:
    """Return the 2-Wasserstein distance between N(mean, cov) and ``target``.

    mean: means, shape (..., dim).
    cov: covariances, shape (..., dim, dim); they may be singular.
    target: the Gaussian to compare with.
    Returns distances, shape (...): ``inf`` where a moment is not finite, or so large that its
    square is not (a sampler that diverged). Rounding leaves about 1e-8 of the moments' size.
    """
    mean, cov = np.asarray(mean, dtype=float), np.asarray(cov, dtype=float)
    with np.errstate(all="ignore"):
        total = np.sum((mean - target.mean) ** 2, axis=-1)
        total = total + np.trace(cov, axis1=-2, axis2=-1) + np.trace(target.cov)
        total = total - 2 * _trace_root(cov, target.cov)
        # Rounding may leave a tiny negative square; inf - inf is nan.
        return np.where(np.isfinite(total), np.sqrt(np.maximum(total, 0.0)), np.inf)


def bias2(mean: np.ndarray, cov: np.ndarray, target: WithMonomials) -> np.ndarray:
    """Return max over f in x_j, x_j^2 of (E f - E_target f)^2 / Var_target f.

    Parameters and shapes are those of ``w2``; E is that of any law with these moments. target: a
    ``Gaussian``, or another law with the method ``monomials``.
    """
    means, variances = target.monomials()
    with np.errstate(all="ignore"):
        squares = (monomials(mean, cov)[0] - means) ** 2 / variances
    return np.nan_to_num(squares, nan=np.inf, posinf=np.inf).max(axis=-1)


def fit(samples: np.ndarray, axis: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return the maximum-likelihood mean and covariance (division by n) of ``samples``.

    samples: draws, shape (..., dim), with the n draws along ``axis`` (not the last one). axis: the
    axis of the draws. Returns mean (..., dim) and covariance (..., dim, dim), ``axis`` removed; not
    finite where a draw is not.
    """
    draws = np.moveaxis(np.asarray(samples, dtype=float), axis, -2)
    with np.errstate(all="ignore"):
        mean = draws.mean(axis=-2)
        centered = draws - mean[..., None, :]
        cov = centered.swapaxes(-1, -2) @ centered / draws.shape[-2]
    return mean, cov


def bootstrap_w2(
    samples: np.ndarray,
    target: Gaussian,
    replicates: int,
    rng: np.random.Generator,
    level: float = 0.95,
    resampled: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return W2 between the Gaussian fitted to the chains and ``target``, with an interval.

    The interval is for the distance v of the chains' true law, found by resampling whole chains.
    The fitted distance overestimates v: the squared distance by the bias b, that of a resample by
    b once more. So b is estimated by the mean excess of the resampled squares over the fitted one,
    and the ends are percentiles of the resampled squares less 2b (lower) and less b (upper),
    clipped at 0. Subtracting once above keeps the fitted value inside the interval and the
    coverage up where v is small.

    Measured coverage of the 95 % interval, 200 replicates, 1000 trials per case (Gaussian chains
    in dimension 1, 2 and 5, shifted, widened and narrowed; n = 100 and 1000; s^2 = tr V / 2):
    0.97 to 1.00 for v below 4 s/sqrt(n), 0.92 to 0.99 above.
    In dimension 2 the percentile interval covers v = 0 never and small v seldom (0 to 0.94), as
    does the bias-corrected one; the reverse percentile interval falls to 0.78.
    With few chains (dimension 1 to 5, the same cases and v = 2 sd, 1000 trials each) it covers 0.89
    to 1.00 with 20 chains, 0.83 to 0.99 with 10 and 0.73 to 0.97 with 5: too few chains have
    covariances that are too small, and all of their resamples do.
    Where ``has_heavy_tails`` there is no such interval, and the ends are 0 and infinity.

    samples: shape (chains, draws, ..., dim), or of one draw (chains, dim).
    target: the Gaussian to compare with.
    replicates: number of resamples; all leading positions share them.
    rng: source of the resamples.
    level: nominal coverage.
    resampled: where the resampled squares are put, shape (replicates, positions); none: nowhere.
    Returns value, lower and upper end, each of shape (...); ``inf`` where a draw is not finite. The
    ends of one chain are not a number: it has no interval.
    """
    samples = np.asarray(samples, dtype=float)
    chains, dim = samples.shape[0], samples.shape[-1]
    shape = samples.shape[1:-1]
    flat = samples.reshape(chains, -1, dim)
    positions = flat.shape[1]
    weights = rng.multinomial(chains, np.full(chains, 1 / chains), size=replicates) / chains
    upper = np.triu_indices(dim)
    value, low, high, fourth = (np.empty(positions) for _ in range(4))
    # Blocks bound the memory (some 30 MB) whatever the number of positions.
    block = max(1, 2_000_000 // ((chains + replicates) * (dim + dim * dim)))
    for start in range(0, positions, block):
        part = slice(start, min(start + block, positions))
        draws = flat[:, part]
        with np.errstate(all="ignore"):
            mean, cov = fit(draws)
            value[part] = w2(mean, cov, target)
            # Moments of every resample are weighted sums of monomials of the centered draws: one
            # matrix product.
            draws = draws - mean
            monomials = np.concatenate([draws, draws[..., upper[0]] * draws[..., upper[1]]], axis=2)
            sums = weights @ monomials.reshape(chains, -1)
            sums = sums.reshape(replicates, *monomials.shape[1:])
            shift = sums[..., :dim]
            second = np.empty((*shift.shape, dim))
            second[..., upper[0], upper[1]] = second[..., upper[1], upper[0]] = sums[..., dim:]
            second -= shift[..., :, None] * shift[..., None, :]
            squares = w2(mean + shift, second, target) ** 2
            low[part], high[part] = correct_interval(squares, value[part], level)
            fourth[part] = kurtosis(draws)
        if resampled is not None:
            resampled[:, part] = squares
    lost = ~np.isfinite(value)
    for array in (low, high):
        array[lost | ~np.isfinite(array)] = np.inf
    heavy = has_heavy_tails(fourth.reshape(shape), chains).ravel() & ~lost
    heavy &= high > low + 1e-9 * value  # chains apart by rounding have no tails
    low[heavy], high[heavy] = 0.0, np.inf
    if chains == 1:
        low[:] = high[:] = np.nan
    return value.reshape(shape), low.reshape(shape), high.reshape(shape)


def kurtosis(centered: np.ndarray) -> np.ndarray:
    """Return the largest kurtosis over coordinates of centered draws.

    centered: n draws less their mean, shape (n, ..., dim). Returns shape (...); nan where no
    coordinate varies.
    """
    with np.errstate(all="ignore"):
        squares = centered**2
        return np.fmax.reduce((squares**2).mean(axis=0) / squares.mean(axis=0) ** 2, axis=-1)


def has_heavy_tails(values: np.ndarray, count: int) -> np.ndarray:
    """Return whether draws have tails so heavy that intervals for fitted moments do not hold.

    The error of a fitted variance follows from the kurtosis, which few draws far away decide, and
    which most sets of draws underestimate. So tails are heavy at a draw if its kurtosis is more
    than 6, twice a Gaussian's, and ten standard errors sqrt(24 / count) above a Gaussian's 3; and
    where that is so of more than a tenth of the draws in the later half of those up to it. Fewer
    than 17 independent draws cannot show it. What was measured is in docs/python.md.

    values: their kurtosis, shape (draws, ...) along a run, or of one draw (). count: the number of
    independent draws of each.
    """
    beyond = np.atleast_1d(values > 3 + max(3, 10 * math.sqrt(24 / count)))
    rows, total = np.arange(len(beyond)), beyond.cumsum(axis=0)
    half = (rows - rows // 2).reshape(-1, *[1] * (beyond.ndim - 1))
    heavy: np.ndarray = beyond | (10 * (total - total[rows // 2]) > half)
    return heavy.reshape(np.shape(values))


def refits(
    law: Gaussian, draws: int, replicates: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw fitted means and covariances, as of fits to ``draws`` draws of a Gaussian law.

    replicates: the number of fits. Returns means (replicates, dim) and covariances (replicates,
    dim, dim). No draw of the law itself is made: for n independent draws of N(m, V) the fitted mean
    is N(m, V/n), and n times the fitted covariance Wishart with n - 1 degrees of freedom
    (Bartlett's decomposition); n is greater than dim.
    """
    dim, root = len(law.mean), matrix_root(law.cov) / math.sqrt(draws)
    lower = np.tril(rng.standard_normal((replicates, dim, dim)), -1)
    degrees = draws - 1 - np.arange(dim)
    lower[:, range(dim), range(dim)] = np.sqrt(rng.chisquare(degrees, (replicates, dim)))
    factors = root @ lower
    mean = law.mean + rng.standard_normal((replicates, dim)) @ root
    return mean, factors @ factors.swapaxes(1, 2)


def correct_interval(
    squares: np.ndarray, value: np.ndarray | float, level: float = 0.95
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of a distance's interval, from its resampled squares (first axis).

    squares: squares of the distance in resamples, (replicates, ...). value: the estimated distance.
    The mean of squares exceeds value^2 by a bias, which is subtracted as in ``bootstrap_w2``.
    """
    bias, tail = squares.mean(axis=0) - value**2, (1 - level) / 2
    low, high = np.quantile(squares, [tail, 1 - tail], axis=0)
    return np.sqrt(np.maximum(low - 2 * bias, 0.0)), np.sqrt(np.maximum(high - bias, 0.0))


def _trace_root(cov: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return tr (V^1/2 S V^1/2)^1/2 for S = ``cov`` (..., dim, dim) and V = ``target``.

    Dimensions 1 and 2 need only trace and determinant of the product, which the bootstrap's many
    small matrices are evaluated by at once.
    """
    dim = cov.shape[-1]
    if dim <= 2:
        square = np.sum(cov * target, axis=(-2, -1))
        if dim == 2:
            minor = cov[..., 0, 0] * cov[..., 1, 1] - cov[..., 0, 1] * cov[..., 1, 0]
            square = square + 2 * np.sqrt(np.maximum(minor * np.linalg.det(target), 0.0))
        return np.sqrt(np.maximum(square, 0.0))
    root = matrix_root(target)
    inner = root @ cov @ root
    finite = np.isfinite(inner).all(axis=(-2, -1))
    # eigvalsh raises on nan.
    values = np.linalg.eigvalsh(np.where(finite[..., None, None], inner, 0.0))
    return np.where(finite, np.sqrt(np.maximum(values, 0.0)).sum(axis=-1), np.nan)
