r"""Damped Newton for the proximal step of logistic regression, all chains and agents at once.

.. math:: \min_x \sum_j \left[ \log(1 + e^{z_j}) - y_j z_j \right] + \frac{c}{2} \lVert x \rVert^2
          - b^\top x, \qquad z_j = x^\top X_j, \quad c > 0

The objective is strongly convex, and a step along the Newton direction is halved until the
gradient's norm falls; that converges from any start, on separable data too. With a good start
almost all problems converge in a few full steps taken together. Those left over are gathered and go
on alone, from 0 if they are many: where every point is far from the boundary there is no curvature
to follow, at 0 there is. Where features are so large that rounding keeps the gradient above the
tolerance, the smallest one that can be reached is taken.

Price: a gradient for every point that a problem tries, and 2 dim for every direction, whose Hessian
could be read off as many products with it, of two gradients each.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from concord.errors import ConcordError

TOLERANCE = 1e-10
ROUNDING = 32 * np.finfo(float).eps
HALVINGS = 60
UNROLLED = 16  # dimensions up to which all problems are factorized at once, entry by entry


class Solver:
    """Minimizes each agent's objective.

    features, targets: X, shape (agents, points, dim), and y in {0, 1}, shape (agents, points),
    padded with zeros.
    curvature: c of each agent, positive, shape (agents,).
    chains: how many it solves for at once.
    gradients: what each agent has paid for its last solution, (chains, agents).
    """

    def __init__(
        self, features: np.ndarray, targets: np.ndarray, curvature: np.ndarray, chains: int
    ) -> None:
        # With labels folded into the features the objective is sum log(1 + exp(signed^T x)).
        self._data = _Data.of(features * (1 - 2 * targets)[..., None])
        self._curvature = curvature
        self._spent = np.zeros((len(curvature), chains), dtype=np.int64)
        self.gradients = self._spent.T

    def __call__(
        self, agent: Any, linear: np.ndarray, start: np.ndarray, out: np.ndarray
    ) -> np.ndarray:
        """Write the minimizers into ``out``.

        ``agent`` is an index, with linear (b), start and out of shape (chains, dim), or
        ``slice(None)``, with shape (chains, agents, dim). The gradient's norm at ``out`` is at most
        ``TOLERANCE``, or what rounding leaves of it where the terms of the gradient are so large
        that rounding leaves more. Where ``linear`` is not finite, ``out`` is nan (the chain has
        diverged). A ConcordError if a gradient stays larger.
        """
        one = not isinstance(agent, slice)
        block = slice(agent, agent + 1) if one else agent
        b = linear[None] if one else np.ascontiguousarray(linear.swapaxes(0, 1))
        x = start[None].copy() if one else np.ascontiguousarray(start.swapaxes(0, 1))
        spent = self._spent[block]
        with np.errstate(over="ignore"):
            _minimize(self._data.part(block), self._curvature[block], b, x, spent)
        np.copyto(out, x[0] if one else x.swapaxes(0, 1))
        return out


class _Data(NamedTuple):
    """Signed features of A agents, and what every step needs of them.

    signed: (A, points, dim); transposed: (A, dim, points); products: the entries of X X^T on and
    below the diagonal, (A, points, dim (dim + 1) / 2).
    """

    signed: np.ndarray
    transposed: np.ndarray
    products: np.ndarray

    @classmethod
    def of(cls, signed: np.ndarray) -> _Data:
        pairs = [signed[..., i] * signed[..., j] for i, j in _lower(signed.shape[-1])]
        return cls(signed, np.ascontiguousarray(signed.swapaxes(1, 2)), np.stack(pairs, axis=-1))

    def part(self, index: Any) -> _Data:
        return _Data(*(array[index] for array in self))


@cache
def _lower(dim: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(dim) for j in range(i + 1)]


@cache
def _places(dim: int) -> np.ndarray:
    """Return where among the entries below the diagonal those of the whole matrix are, (dim^2,)."""
    places = np.empty((dim, dim), dtype=np.intp)
    row, column = np.array(_lower(dim)).T
    places[row, column] = places[column, row] = np.arange(len(row))
    return places.ravel()


def _minimize(
    data: _Data, curvature: np.ndarray, b: np.ndarray, x: np.ndarray, spent: np.ndarray
) -> None:
    """Minimize in place; curvature (A,), b and x (A, chains, dim); write spent (A, chains)."""
    lost = ~np.isfinite(b).all(axis=-1)
    if lost.any():
        b = np.where(lost[..., None], 0.0, b)
        x[lost] = 0.0
    x[~np.isfinite(x).all(axis=-1)] = 0.0
    few = x.shape[0] * x.shape[1] // 16
    left = _newton(data, curvature, b, x, spent, 12, few)
    far = np.count_nonzero(left) > few
    for last in (False, True):
        if not left.any():
            break
        # One problem each: (K, points, dim), (K,), (K, 1, dim).
        agent, chain = np.nonzero(left)
        own = data.part(agent), curvature[agent], b[agent, chain][:, None]
        alone = np.zeros((len(agent), 1, x.shape[2])) if last or far else x[agent, chain][:, None]
        more = np.empty((len(agent), 1), dtype=spent.dtype)
        still = _newton(*own, alone, more, 300 if last else 25, to_rounding=last)
        x[agent, chain] = alone[:, 0]
        spent[agent, chain] += more[:, 0]
        left[agent, chain] = still[:, 0]
    if left.any():
        raise ConcordError(
            f"the proximal step did not converge for {int(left.sum())} of {left.size} problems: "
            f"gradients stay above {TOLERANCE:g}; scale the features"
        )
    x[lost] = np.nan


def _newton(
    data: _Data,
    curvature: np.ndarray,
    b: np.ndarray,
    x: np.ndarray,
    spent: np.ndarray,
    steps: int,
    few: int = 0,
    to_rounding: bool = False,
) -> np.ndarray:
    """Improve x in place for at most ``steps`` steps; return which have not converged, (A, m).

    Stops early when no more than ``few`` are left. With ``to_rounding`` a gradient that rounding
    does not let fall further, along a direction in which it must, counts as converged.
    """
    c = curvature[:, None, None]
    signed, transposed, _ = data
    shares = np.empty((*x.shape[:2], signed.shape[1]))
    trial, trial_gradient = np.empty_like(x), np.empty_like(x)

    def evaluate(at: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Write the gradient into out, leave sigmoid(z) in shares, and return the norms."""
        np.matmul(at, transposed, out=shares)
        np.negative(shares, out=shares)
        np.exp(shares, out=shares)
        np.add(shares, 1.0, out=shares)
        np.reciprocal(shares, out=shares)
        np.matmul(shares, signed, out=out)
        np.add(out, c * at, out=out)
        np.subtract(out, b, out=out)
        return np.sqrt(np.einsum("amd,amd->am", out, out))

    gradient = np.empty_like(x)
    norm = evaluate(x, gradient)
    price, again = 1, np.zeros_like(spent)  # of all that went on so far; of what was halved
    spent.fill(price)
    active = norm > TOLERANCE
    stuck = np.zeros_like(active)
    for _ in range(steps):
        if np.count_nonzero(active) <= few:
            break
        move = _direction(data, shares, curvature, gradient)
        length = active.astype(float)
        price += 2 * x.shape[2] + 1  # a direction, and the first point tried along it
        np.copyto(spent, price, where=active)
        for _ in range(HALVINGS):
            np.multiply(move, length[..., None], out=trial)
            np.subtract(x, trial, out=trial)
            trial_norm = evaluate(trial, trial_gradient)
            worse = active & ~(trial_norm <= (1 - 1e-4 * length) * norm)
            if not worse.any():
                break
            length[worse] /= 2
            again += worse
        if worse.any():
            stuck |= worse
            trial[worse] = x[worse]
            trial_norm = evaluate(trial, trial_gradient)
        np.copyto(x, trial)
        gradient, trial_gradient = trial_gradient, gradient
        norm = trial_norm
        active = (norm > TOLERANCE) & ~stuck
    spent += again
    if to_rounding:
        return active & (norm > _rounding(signed, shares, c, b, x))
    return norm > TOLERANCE


def _rounding(
    signed: np.ndarray, shares: np.ndarray, c: np.ndarray, b: np.ndarray, x: np.ndarray
) -> np.ndarray:
    """Return what rounding of x and of the gradient's terms leaves of its norm, (A, m)."""
    size = np.sqrt(np.einsum("apd,apd->ap", signed, signed))
    length = np.sqrt(np.einsum("amd,amd->am", x, x))
    terms = np.matmul(shares, size[..., None])[..., 0]
    moved = np.matmul(shares * (1 - shares), (size**2)[..., None])[..., 0] * length
    return ROUNDING * (terms + moved + c[..., 0] * length + np.sqrt((b**2).sum(axis=-1)))


def _direction(
    data: _Data, shares: np.ndarray, curvature: np.ndarray, gradient: np.ndarray
) -> np.ndarray:
    """Return the Newton direction: by Cholesky, dimensions unrolled, all problems at once.

    The entries' number of operations grows as dim^3, so that beyond ``UNROLLED`` LAPACK takes one
    problem after the other.
    """
    dim = data.signed.shape[-1]
    entries = np.matmul(shares * (1 - shares), data.products)
    if dim > UNROLLED:
        hessian = entries.take(_places(dim), axis=-1).reshape(*gradient.shape, dim)
        hessian[..., range(dim), range(dim)] += curvature[:, None, None]
        with suppress(np.linalg.LinAlgError):  # curvature that vanishes beside the rest
            return np.linalg.solve(hessian, gradient[..., None])[..., 0]
    factor = {
        (i, j): entries[..., n] + (curvature[:, None] if i == j else 0.0)
        for n, (i, j) in enumerate(_lower(dim))
    }
    move = [gradient[..., i].copy() for i in range(dim)]
    for j in range(dim):
        for k in range(j):
            for i in range(j, dim):
                factor[i, j] -= factor[i, k] * factor[j, k]
        # Rounding may make a pivot vanish that is at least c.
        factor[j, j] = np.sqrt(np.maximum(factor[j, j], curvature[:, None]))
        for i in range(j + 1, dim):
            factor[i, j] /= factor[j, j]
    for i in range(dim):
        for k in range(i):
            move[i] -= factor[i, k] * move[k]
        move[i] /= factor[i, i]
    for i in reversed(range(dim)):
        for k in range(i + 1, dim):
            move[i] -= factor[k, i] * move[k]
        move[i] /= factor[i, i]
    return np.stack(move, axis=-1)
