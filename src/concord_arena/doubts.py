"""Reasons why a Gaussian fit to a posterior may be wrong, and mini-batch errors over the fit."""

import numpy as np

from concord.contracts import dtype_of
from concord.errors import ConcordError
from concord.laws.exact import Moments
from concord.minibatches import Batches
from concord.networks.network import Network
from concord.problem import Problem, Quadratic, WithMiniBatches
from concord.problems.gaussian_fit import (
    POINTS,
    Fit,
    find_second_mode,
    format_point,
    normal_points,
    weigh,
)
from concord.problems.share_all import share_all

WEIGHED = 2048  # points that are weighed against the posterior
WIDER = 1.25  # their standard deviations over those of the fit
DIFFERS = 2**0.4  # factor between variances from which the fit is not believed
FAR = 5.0  # standard deviations of the fit, from which starts are doubted


def estimate_by_weights(problem: Problem, fit: Fit) -> tuple[np.ndarray, np.ndarray]:
    """Estimate mean and variances of the posterior, both (dim,), by importance sampling.

    They are those of the whole model (``share_all``). fit: the Gaussian fit; points are drawn from
    a normal law ``WIDER`` than it.
    """
    rays, weights = weigh(share_all(problem), fit.whole, WEIGHED, WIDER)
    center = weights @ rays
    return fit.whole.mean + center, weights @ (rays - center) ** 2


def batch_errors(problem: Problem, mean: np.ndarray, cov: np.ndarray, size: int) -> np.ndarray:
    """Return the covariances of the errors of mini-batch gradients, (agents, dim, dim).

    A mini-batch has ``size`` points that an agent draws independently from its own data.
    Covariances are averaged over normal laws of the agents' positions, of mean (dim,) or (agents,
    dim) and cov (dim, dim) or (agents, dim, dim).

    Raises
    ------
    ConcordError
        If the problem takes no mini-batches, or an agent has fewer than ``size`` points.
    """
    if not isinstance(problem, WithMiniBatches):
        raise ConcordError(
            f"{type(problem).__name__} takes no mini-batches; leave the sampler's batch_size out"
        )
    Batches(batch_size=size).check_points(problem.counts)
    z = normal_points(POINTS, problem.dim)
    counts, shape = problem.counts, (len(z), problem.agents, problem.dim)
    x = mean + np.matvec(np.linalg.cholesky(cov), z[:, None])
    x = np.broadcast_to(x, shape).astype(dtype_of(problem))
    mean, square = np.zeros(shape), np.zeros((*shape[1:], problem.dim))
    for row in range(counts.max()):
        rows = np.broadcast_to(np.minimum(row, counts - 1)[:, None], (*shape[:2], 1))
        g = problem.batch_gradient(x, rows) * ((row < counts) / np.sqrt(counts))[:, None]
        mean += g / np.sqrt(counts)[:, None]
        square += np.einsum("pad,pae->ade", g, g) / len(z)
    return (square - np.einsum("pad,pae->ade", mean, mean) / len(z)) / size


def list_doubts(
    problem: Problem,
    fit: Fit,
    positions: Moments | None = None,
    network: Network | None = None,
) -> list[str]:
    """Return sentences that say why a Gaussian fit, and predictions by it, may be wrong.

    Reasons are: the fit did not converge, its variances differ from those of
    ``estimate_by_weights``, another mode was found from one of eight other starts, a Hessian is not
    positive definite, agents start far away, or one is Byzantine. The list is empty without any.
    positions: mean and covariance of an agent's start.
    """
    if isinstance(problem, Quadratic):
        return []
    reasons = []
    if not fit.converged:
        reasons.append("the Gaussian fit did not converge; it is the one at the mode")
    whole = share_all(problem)
    ratio = estimate_by_weights(problem, fit)[1] / np.diag(fit.whole.cov)
    worst = int(np.argmax(np.abs(np.log(ratio))))
    if not 1 / DIFFERS < ratio[worst] < DIFFERS:
        names = getattr(whole, "coordinate_names", None)
        reasons.append(
            f"the posterior is far from Gaussian: coordinate {names[worst] if names else worst} "
            f"has {ratio[worst]:.2g} times the variance of the fit"
        )
    second = find_second_mode(whole, fit.of_all or fit)
    if second is not None:
        reasons.append(f"there is a second mode, at {format_point(second)}")
    least = np.linalg.eigvalsh(fit.hessians)[:, 0]
    if (least < -1e-9 * np.abs(fit.hessians).max()).any():
        reasons.append(f"the Hessian of agent {int(np.argmin(least))} is not positive definite")
    if network is not None and network.conditions.byzantine is not None:
        reasons.append(
            "an agent lies and draws others away from the posterior, where gradients were fitted"
        )
    if positions is not None:
        center, spread = positions
        variance = np.square(spread) if np.ndim(spread) == 0 else np.diag(spread)
        wide = np.diagonal(fit.cov, axis1=-2, axis2=-1)
        apart = np.sqrt(((center - fit.mean) ** 2 + variance) / wide).max()
        if apart > FAR:
            reasons.append(
                f"agents start {apart:.0f} standard deviations away from the posterior, where some "
                "chains may diverge though their law does not"
            )
    return reasons
