"""Reasons why a Gaussian fit to a posterior may be wrong, and mini-batch errors over the fit."""

import numpy as np

from concord.contracts import dtype_of
from concord.errors import ConcordError
from concord.laws.exact import Moments
from concord.problem import Problem, Quadratic, WithMiniBatches
from concord.problems.gaussian_fit import (
    POINTS,
    Fit,
    format_point,
    gradient_field,
    mode,
    normals,
    total_gradient,
)

WEIGHED = 2048  # points that are weighed against the posterior
WIDER = 1.25  # their standard deviations over those of the fit
DIFFERS = 2**0.4  # factor between variances from which the fit is not believed
FAR = 5.0  # standard deviations of the fit, from which starts are doubted


def estimate_by_weights(problem: Problem, found: Fit) -> tuple[np.ndarray, np.ndarray]:
    """Estimate mean and variances of the posterior, both (dim,), by importance sampling.

    The points are drawn from a wider version of the fit ``found``. Log densities at them are
    integrals of gradients along rays from the mean, by Gauss-Legendre quadrature.
    """
    at, z = gradient_field(problem), normals(WEIGHED, problem.dim)
    rays = WIDER * z @ np.linalg.cholesky(found.cov).T
    rise = np.zeros(len(z))
    for node, weight in zip(*np.polynomial.legendre.leggauss(8), strict=True):
        x = found.mean + (1 + node) / 2 * rays
        rise += weight / 2 * np.einsum("pd,pd->p", total_gradient(at, x, problem.agents), rays)
    logs = 0.5 * (z**2).sum(axis=1) - rise
    logs = np.where(np.isfinite(logs), logs, -np.inf)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    center = weights @ rays
    return found.mean + center, weights @ (rays - center) ** 2


def batch_errors(problem: Problem, found: Fit, size: int) -> np.ndarray:
    """Return the covariances of the errors of mini-batch gradients, (agents, dim, dim).

    A mini-batch has ``size`` points that an agent draws independently from its own. Covariances are
    averaged over the fit ``found``.

    Raises
    ------
    ConcordError
        If the problem takes no mini-batches.
    """
    if not isinstance(problem, WithMiniBatches):
        raise ConcordError(
            f"{type(problem).__name__} takes no mini-batches; leave the sampler's batch_size out"
        )
    z = normals(POINTS, problem.dim)
    counts, shape = problem.counts, (len(z), problem.agents, problem.dim)
    x = np.repeat((found.mean + z @ np.linalg.cholesky(found.cov).T)[:, None], shape[1], axis=1)
    x = x.astype(dtype_of(problem))
    mean, square = np.zeros(shape), np.zeros((*shape[1:], problem.dim))
    for row in range(counts.max()):
        rows = np.broadcast_to(np.minimum(row, counts - 1)[:, None], (*shape[:2], 1))
        g = problem.batch_gradient(x, rows) * ((row < counts) / np.sqrt(counts))[:, None]
        mean += g / np.sqrt(counts)[:, None]
        square += np.einsum("pad,pae->ade", g, g) / len(z)
    return (square - np.einsum("pad,pae->ade", mean, mean) / len(z)) / size


def doubts(problem: Problem, found: Fit, positions: Moments | None = None) -> list[str]:
    """Return sentences that say why a Gaussian fit, and predictions by it, may be wrong.

    They tell that the fit did not converge, the variances differ from those of
    ``estimate_by_weights``, another mode was found from one of eight other starts, a Hessian is not
    positive definite, or agents start far away. The list is empty where no reason is found.
    positions: mean and covariance of an agent's start.
    """
    if isinstance(problem, Quadratic):
        return []
    at, dim, reasons = gradient_field(problem), problem.dim, []
    if not found.settled:
        reasons.append("the Gaussian fit did not converge; it is the one at the mode")
    root = np.linalg.cholesky(found.cov)
    ratio = estimate_by_weights(problem, found)[1] / np.diag(found.cov)
    worst = int(np.argmax(np.abs(np.log(ratio))))
    if not 1 / DIFFERS < ratio[worst] < DIFFERS:
        reasons.append(
            f"the posterior is far from Gaussian: coordinate {worst} has {ratio[worst]:.2g} times "
            "the variance of the fit"
        )
    directions = normals(16, dim)[:8]
    for z in directions / np.linalg.norm(directions, axis=1, keepdims=True):
        try:
            other = mode(at, problem.agents, found.mean + 3 * root @ z)[0]
        except ConcordError:
            continue
        if np.linalg.norm(np.linalg.solve(root, other - found.mode)) > 1:
            reasons.append(f"there is a second mode, at {format_point(other)}")
            break
    least = np.linalg.eigvalsh(found.hessians)[:, 0]
    if (least < -1e-9 * np.abs(found.hessians).max()).any():
        reasons.append(f"the Hessian of agent {int(np.argmin(least))} is not positive definite")
    if positions is not None:
        center, spread = positions
        variance = np.square(spread) if np.ndim(spread) == 0 else np.diag(spread)
        apart = np.sqrt(((center - found.mean) ** 2 + variance) / np.diag(found.cov)).max()
        if apart > FAR:
            reasons.append(
                f"agents start {apart:.0f} standard deviations away from the posterior, where some "
                "chains may diverge though their law does not"
            )
    return reasons
