r"""A Gaussian fit to a smooth posterior, by the gradients of agents' potentials alone.

.. math::
    E\, g(m + L z) = 0, \qquad H_i = E\, g_i(m + L z)\, z^\top L^{-1}, \qquad
    (L L^\top)^{-1} = \sum_i H_i, \qquad z \sim N(0, I), \quad g = \sum_i g_i

By Stein's identity H_i is the mean Hessian of f_i over the fit, which minimizes the divergence
KL(N(m, L L^T), pi). Expectations are means over antithetic Sobol points, whitened, so that those of
quadratic potentials are exact. Newton's method finds the mode, where the fit begins.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from concord.contracts import dtype_of
from concord.errors import ConcordError
from concord.laws.gaussian import Gaussian
from concord.laws.reference_laws import Draws
from concord.local_coordinates import PosteriorByAgent, number_coordinates
from concord.problem import Problem, Quadratic, local_of
from concord.problems.share_all import share_all

# Gradients of all f_i at x_i, of positions (points, agents, dim), in the same shape.
Field = Callable[[np.ndarray], np.ndarray]

POINTS = 256  # that the fit is a mean over
DRAWN = 2**14  # points that stand for the posterior
BLOCK = 256  # points at which gradients are evaluated together, so that they stay in cache
LEAST_DRAWS = 1000  # that these are worth, so that a mean errs by 0.03 standard deviations at most
SADDLE = -1e-4  # eigenvalue of a scaled Hessian, below what finite differences leave of zero
NEWTON, SWEEPS = 200, 400


class Fit(NamedTuple):
    """A Gaussian fitted to a posterior.

    mean, cov: the fit's mean, (dim,), and covariance, (dim, dim).

    hessians, shift: each agent's mean Hessian over the fit, (agents, dim, dim), and the vector,
    (agents, dim), by which its gradient is about hessian x - shift. The Hessians add up to the
    inverse of cov.

    mode: the posterior's mode, (dim,).

    converged: whether the fit converged; if not, it is the Gaussian at the mode.

    local, of_all: where agents hold local coordinates, their mask (dim,), and the fit of the whole
    model (``share_all``). Mean, covariance and mode are then those of what each agent holds, with a
    first axis of agents.
    """

    mean: np.ndarray
    cov: np.ndarray
    hessians: np.ndarray
    shift: np.ndarray
    mode: np.ndarray
    converged: bool = True
    local: np.ndarray | None = None
    of_all: Fit | None = None

    @property
    def law(self) -> Gaussian | PosteriorByAgent:
        """Return the fit as a law that results can be compared with."""
        if self.of_all is None or self.local is None:
            return Gaussian(self.mean, self.cov)
        return PosteriorByAgent(self.whole, self.local, len(self.shift))

    @property
    def whole(self) -> Gaussian:
        """Return the Gaussian of all coordinates of the model."""
        of = self.of_all or self
        return Gaussian(of.mean, of.cov)


def fit(problem: Problem, start: np.ndarray | float = 0.0) -> Fit:
    """Fit a Gaussian to a problem's posterior; a Gaussian posterior is its own fit.

    start: where the search for the mode begins, (dim,) or a number.

    Raises
    ------
    ConcordError
        If no mode is found, or the Hessian there is not positive definite.
    """
    local = local_of(problem)
    if local is not None:
        return _fit_with_local(problem, local, start)
    if isinstance(problem, Quadratic) and problem.posterior is not None:
        law = problem.posterior
        return Fit(law.mean, law.cov, problem.gram, problem.shift, law.mean)
    field = gradient_field(problem)
    top, hessians = find_mode(field, problem.agents, np.full(problem.dim, start, dtype=float))
    cov = np.linalg.inv(hessians.sum(axis=0))
    for damping in (0.7, 0.2):
        converged = _fit(field, top, cov, problem.agents, damping)
        if converged is not None:
            return converged
    slopes = field(np.broadcast_to(top, (1, problem.agents, problem.dim)))[0]
    return Fit(top, cov, hessians, hessians @ top - slopes, top, converged=False)


def _fit_with_local(problem: Problem, local: np.ndarray, start: np.ndarray | float) -> Fit:
    """Fit a Gaussian to the whole model, and return what each agent holds of it.

    local: the mask of the problem's local coordinates, (dim,).
    """
    places = number_coordinates(local, problem.agents)
    begin = np.empty(places.max() + 1)
    begin[places] = start
    whole = fit(share_all(problem), begin)
    agent, rows, columns = np.arange(problem.agents)[:, None], places[:, :, None], places[:, None]
    return Fit(
        whole.mean[places],
        whole.cov[rows, columns],
        whole.hessians[agent[..., None], rows, columns],
        whole.shift[agent, places],
        whole.mode[places],
        whole.converged,
        local,
        whole,
    )


def gradient_field(problem: Problem) -> Field:
    """Return a function that evaluates a problem's gradients at any number of points.

    It maps x (points, agents, dim) to the gradients of f_i at x_i, of the same shape, as doubles.
    """
    dtype = dtype_of(problem)

    def field(x: np.ndarray) -> np.ndarray:
        """Return the gradients of f_i at x_i, of the shape of x, (points, agents, dim)."""
        with np.errstate(all="ignore"):
            slopes: np.ndarray = problem.gradient(np.ascontiguousarray(x, dtype=dtype))
        return slopes.astype(float, copy=False)

    return field


@lru_cache(maxsize=16)
def normal_points(count: int, dim: int) -> np.ndarray:
    """Return antithetic Sobol points with mean 0 and covariance I, (count, dim) or more rows."""
    from scipy import special, stats  # a second

    half = max(count // 2, 1 << int(np.ceil(np.log2(2 * dim))))
    z = special.ndtri(stats.qmc.Sobol(dim, rng=1).random(half))
    z = np.concatenate([z, -z])
    return np.linalg.solve(np.linalg.cholesky(z.T @ z / len(z)), z.T).T


def linearize(
    field: Field, mean: np.ndarray, cov: np.ndarray, points: int
) -> tuple[np.ndarray, np.ndarray]:
    """Fit affine gradients gram_i x - shift_i to agents' gradients over normal laws of positions.

    field: of ``gradient_field``. mean, cov: of each agent's law, (versions, agents, dim) and
    (versions, agents, dim, dim), positive definite. points: the number of quadrature points.
    Returns gram and shift, of the shapes of cov and mean.
    """
    agents, dim = mean.shape[1:]
    z = normal_points(points, dim)
    root = np.linalg.cholesky(cov)
    x = mean[:, None] + np.einsum("vade,pe->vpad", root, z)
    with np.errstate(all="ignore"):
        g = field(x.reshape(-1, agents, dim)).reshape(x.shape)
        across = np.einsum("vpad,pe->vade", g, z) / len(z)
        gram = np.linalg.solve(root.swapaxes(-1, -2), across.swapaxes(-1, -2))
        gram = (gram + gram.swapaxes(-1, -2)) / 2
        return gram, np.matvec(gram, mean) - g.mean(axis=1)


def find_mode(field: Field, agents: int, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find the posterior's mode (dim,); return it and the Hessians of the f_i, (agents, dim, dim).

    Newton's method takes the absolute eigenvalues of the Hessian, so that it leads downhill; a step
    is halved until the potential no longer rises steeply at its end. field: of
    ``gradient_field``. start: the first point, (dim,).

    Raises
    ------
    ConcordError
        If no mode is found, or the Hessian there is not positive definite.
    """
    x = start.astype(float)
    for _ in range(NEWTON):
        slope = total_gradient(field, x[None], agents)[0]
        hessians = _finite_difference_hessians(field, x, agents)
        if not (np.isfinite(slope).all() and np.isfinite(hessians).all()):
            break
        values, vectors = np.linalg.eigh(hessians.sum(axis=0))
        sizes = np.maximum(np.abs(values), 1e-12 * np.abs(values).max() + 1e-300)
        move = -vectors @ (vectors.T @ slope / sizes)
        descent = -float(slope @ move)
        if descent <= 1e-14 * max(len(x), 1):
            whole = hessians.sum(axis=0)
            curved = np.diag(whole)  # by which units of the coordinates do not count
            units = np.sqrt(np.maximum(curved, 1e-14 * np.abs(curved).max() + 1e-300))
            least = np.linalg.eigvalsh(whole / np.outer(units, units))[0]
            if least < SADDLE:
                raise ConcordError(
                    f"problem: its potential has a saddle at {format_point(x)}, which is no mode "
                    f"(least eigenvalue of the Hessian {values[0]:.3g}); start elsewhere"
                )
            if least <= 1e-10:
                raise ConcordError(
                    "problem: the Hessian of its potential is singular at the stationary point "
                    f"{format_point(x)} (least eigenvalue {values[0]:.3g}), since some parameters "
                    "have no proper prior and no data; give them one, or remove them"
                )
            return x, hessians
        length = 1.0
        for _ in range(60):
            ahead = float(total_gradient(field, (x + length * move)[None], agents)[0] @ move)
            if ahead <= 0.5 * descent:  # no number is not
                break
            length /= 2
        x = x + length * move
    raise ConcordError(
        f"problem: no mode was found within {NEWTON} steps of Newton's method from "
        f"{format_point(start)}; let the starts (initial) be near it, and check that gradients "
        "are those of -log density"
    )


def weigh(
    problem: Problem, law: Gaussian, count: int, wider: float
) -> tuple[np.ndarray, np.ndarray]:
    """Draw quasi-random points from a Gaussian and weigh them by importance for the posterior.

    Returns the points as differences x - mean, (points, dim), and weights (points,), posterior over
    proposal density, which add up to 1. Log densities are integrals of gradients along rays from
    the mean, by Gauss-Legendre quadrature. wider: the factor by which the proposal's standard
    deviations exceed those of ``law``. count: the least number of points.
    """
    field, z = gradient_field(problem), normal_points(count, problem.dim)
    rays = wider * z @ np.linalg.cholesky(law.cov).T
    rise = np.zeros(len(z))
    for node, weight in zip(*np.polynomial.legendre.leggauss(8), strict=True):
        x = law.mean + (1 + node) / 2 * rays
        rise += weight / 2 * np.einsum("pd,pd->p", total_gradient(field, x, problem.agents), rays)
    logs = 0.5 * (z**2).sum(axis=1) - rise
    logs = np.where(np.isfinite(logs), logs, -np.inf)
    weights = np.exp(logs - logs.max())
    return rays, weights / weights.sum()


def estimate_posterior(problem: Problem) -> Draws | PosteriorByAgent:
    r"""Return the posterior of a problem as weighted points about a Gaussian.

    A first set of points, about the fit, gives the moments of the Gaussian that the second is
    about. Points have its covariance times :math:`1 + \mathrm{dim}^{-1/2}`: where the posterior is
    Gaussian, they are worth about four fifths of their number in any dimension.

    Points do not reach far into tails like :math:`|x|^{-(\nu + \mathrm{dim})}`, along which
    :math:`x^\top g(x)` tends to nu + dim instead of growing: with nu = 3 variances are a quarter
    too small.

    Raises
    ------
    ConcordError
        If there is no fit, a second mode, such a tail with nu below 6 along a column of the fit's
        root L, or the weighted points are worth fewer than ``LEAST_DRAWS`` independent draws
        (Kish's effective sample size, 1 / sum of squared weights).
    """
    local = local_of(problem)
    if local is not None:
        return PosteriorByAgent(estimate_posterior(share_all(problem)), local, problem.agents)
    remedy = (
        "give draws of it that count as independent, an array (draws, dim), in the place of the "
        "problem"
    )
    try:
        normal_fit = fit(problem)
    except ConcordError as error:
        raise ConcordError(f"posterior: no Gaussian fits it ({error}); {remedy}") from None
    second = find_second_mode(problem, normal_fit, (3.0, 10.0, 30.0))
    if second is not None:
        raise ConcordError(
            f"posterior: it has a second mode, at {format_point(second)}, and one Gaussian does "
            f"not fit both; {remedy}"
        )
    field, root = gradient_field(problem), np.linalg.cholesky(normal_fit.cov).T
    inner, outer = (
        np.einsum("pd,pd->p", x, total_gradient(field, normal_fit.mean + x, problem.agents))
        for x in (10 * np.concatenate([root, -root]), 30 * np.concatenate([root, -root]))
    )
    if ((outer < 1.5 * inner) & (outer < problem.dim + 6)).any():
        raise ConcordError(f"posterior: its tails fall too slowly for weighted points; {remedy}")
    center, wider = normal_fit.whole, math.sqrt(1 + problem.dim**-0.5)
    for _ in range(2):
        rays, weights = weigh(problem, center, DRAWN, wider)
        law = Draws(center.mean + rays, weights)
        center = Gaussian(*law.moments())
    if not law.draws >= LEAST_DRAWS:
        raise ConcordError(
            f"posterior: it is too far from a Gaussian, so that {len(weights)} weighted points are "
            f"worth {law.draws:.0f} draws and {LEAST_DRAWS} are needed; {remedy}"
        )
    return law


def find_second_mode(
    problem: Problem, normal_fit: Fit, distances: tuple[float, ...] = (3.0,)
) -> np.ndarray | None:
    """Search for another mode (dim,) of the posterior than the fit's; None if none is found.

    Newton's method starts in eight directions from the mean, at each of ``distances`` in standard
    deviations of the fit.
    """
    field, root = gradient_field(problem), np.linalg.cholesky(normal_fit.cov)
    directions = normal_points(16, problem.dim)[:8]
    directions = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    for z in (length * z for length in distances for z in directions):
        try:
            other = find_mode(field, problem.agents, normal_fit.mean + root @ z)[0]
        except ConcordError:
            continue
        if np.linalg.norm(np.linalg.solve(root, other - normal_fit.mode)) > 1:
            return other
    return None


def _fit(field: Field, mean: np.ndarray, cov: np.ndarray, agents: int, share: float) -> Fit | None:
    """Fit a Gaussian by damped sweeps from the one at the mode; None if they do not converge.

    field: of ``gradient_field``. mean, cov: the Gaussian at the mode. share: of a full
    step that a sweep takes.
    """
    top, precision = mean, np.linalg.inv(cov)
    for _ in range(SWEEPS):
        cov = np.linalg.inv(precision)
        values = np.linalg.eigvalsh(cov)
        if not (np.isfinite(values).all() and values[0] > 0):
            return None
        means, covs = (np.broadcast_to(part, (1, agents, *part.shape)) for part in (mean, cov))
        (gram,), (shift,) = linearize(field, means, covs, POINTS)
        whole, slope = gram.sum(axis=0), gram.sum(axis=0) @ mean - shift.sum(axis=0)
        if not np.isfinite(whole).all() or np.linalg.eigvalsh(whole)[0] <= 0:
            return None
        move = -share * np.linalg.solve(whole, slope)
        length = float(np.sqrt(move @ precision @ move))
        change = np.abs(whole - precision).max() / np.abs(precision).max()
        mean = mean + move / max(length, 1.0)
        precision = precision + share * (whole - precision)
        if length < 1e-9 and change < 1e-9:
            return Fit(mean, np.linalg.inv(whole), gram, shift, top)
    return None


def total_gradient(field: Field, x: np.ndarray, agents: int) -> np.ndarray:
    """Return the gradients of sum_i f_i at points x, both (points, dim).

    field: of ``gradient_field``.
    """
    blocks = (x[start : start + BLOCK, None] for start in range(0, len(x), BLOCK))
    return np.concatenate([field(np.repeat(block, agents, axis=1)).sum(axis=1) for block in blocks])


def _finite_difference_hessians(field: Field, x: np.ndarray, agents: int) -> np.ndarray:
    """Return the Hessians of the f_i at x (dim,), (agents, dim, dim), by finite differences."""
    size = 1e-5 * np.maximum(np.abs(x), 1.0)
    steps = np.diag(size)
    points = np.repeat((x + np.concatenate([steps, -steps]))[:, None], agents, axis=1)
    up, down = np.split(field(points), 2)
    with np.errstate(all="ignore"):
        hessians = ((up - down) / (2 * size[:, None, None])).transpose(1, 0, 2)
    return (hessians + hessians.swapaxes(1, 2)) / 2


def format_point(x: np.ndarray) -> str:
    """Return the first four coordinates of a point as text."""
    more = ", ..." if len(x) > 4 else ""
    return f"({', '.join(f'{value:.3g}' for value in x[:4])}{more})"
