r"""Damped Newton for the proximal step of logistic regression, all chains and agents at once.

.. math:: \min_x \sum_j \left[ \log(1 + e^{z_j}) - y_j z_j \right] + \frac{c}{2} \lVert x \rVert^2
          - b^\top x, \qquad z_j = x^\top X_j, \quad c > 0

The objective is strongly convex, and a step along the Newton direction is halved until the
gradient's norm falls; that converges from any start, on separable data too. With a good start
almost all problems converge in a few full steps, which are computed for all problems together. The
others continue alone; if they are many they start again from 0, where the loss has curvature: far
from the decision boundary it has none. The gradient's norm is at the end below 1e-10, or below its
rounding error where features or b are so large that this is more.

Price: a gradient for every trial point, and 2 dim gradients for every direction: its Hessian takes
dim products with vectors, of two gradients each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from concord.errors import ConcordError

TOLERANCE = 1e-10
ROUNDING = 32 * np.finfo(float).eps
HALVINGS = 60


class SignedFeatures(NamedTuple):
    """Signed features of A agents, with the arrays that a Newton step derives from them.

    With labels y in {0, 1} folded into the features, (1 - 2 y) X, the objective is the sum of
    log(1 + exp(signed^T x)). Padding is zero.

    signed: (A, points, dim); transposed: (A, dim, points); products: the entries of X X^T,
    (A, points, dim^2); sizes: the sum of the lengths of the features, (A,).
    """

    signed: np.ndarray
    transposed: np.ndarray
    products: np.ndarray
    sizes: np.ndarray

    @classmethod
    def from_signed(cls, signed: np.ndarray) -> SignedFeatures:
        """Return the arrays that Newton steps need, from signed features (agents, points, dim)."""
        products = (signed[..., :, None] * signed[..., None, :]).reshape(*signed.shape[:2], -1)
        sizes = np.linalg.norm(signed, axis=-1).sum(axis=-1)
        return cls(signed, np.ascontiguousarray(signed.swapaxes(1, 2)), products, sizes)

    def select(self, index: np.ndarray | slice) -> SignedFeatures:
        """Return the features of the agents that ``index`` selects."""
        return SignedFeatures(*(array[index] for array in self))


def minimize(
    data: SignedFeatures, curvature: np.ndarray, linear: np.ndarray, start: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the minimizers of the module's objective, and the gradients that they cost.

    There are A agents, with a problem for each chain: (A, chains, dim), and (A, chains).

    curvature: c, positive, (A,). linear: b, (A, chains, dim). start: a guess, of the same shape.

    Where ``linear`` is not finite the minimizer is nan (the chain has diverged). A ConcordError if
    a problem does not converge.
    """
    lost = ~np.isfinite(linear).all(axis=-1)
    b = np.where(lost[..., None], 0.0, linear)
    guess = np.where(lost[..., None] | ~np.isfinite(start).all(axis=-1, keepdims=True), 0.0, start)
    few = guess.shape[0] * guess.shape[1] // 16
    limit = np.maximum(TOLERANCE, ROUNDING * (data.sizes[:, None] + np.linalg.norm(b, axis=-1)))
    with np.errstate(over="ignore"):
        x, spent, left = _take_newton_steps(data, curvature, b, guess, limit, 12, few)
        if left.any():  # one problem each: (K, points, dim), (K,), (K, 1, dim)
            at = agent, _ = np.nonzero(left)
            start = x[at][:, None] * (len(agent) <= few)
            parts = data.select(agent), curvature[agent], b[at][:, None], start, limit[at][:, None]
            alone, more, still = _take_newton_steps(*parts, 300)
            x[at], left[at] = alone[:, 0], still[:, 0]
            spent[at] += more[:, 0]
    if left.any():
        raise ConcordError(
            f"the proximal step did not converge for {int(left.sum())} of {left.size} problems: "
            f"gradients stay above {TOLERANCE:g}; scale the features"
        )
    x[lost] = np.nan
    return x, spent


def _take_newton_steps(
    data: SignedFeatures,
    curvature: np.ndarray,
    b: np.ndarray,
    x: np.ndarray,
    limit: np.ndarray,
    steps: int,
    few: int = 0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Take damped Newton steps on the module's objective for A agents with m problems each.

    data: the signed features. curvature: c, (A,). b, x: the linear term and the first points,
    (A, m, dim). limit: the gradient's norm at which a problem has converged, (A, m). Returns the
    last points, the gradients that each problem cost, and a mask of the problems not converged,
    both (A, m). Ends after ``steps`` steps, or when at most ``few`` have not.
    """
    c = curvature[:, None, None]

    def evaluate(at: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return sigmoid(z), the gradient, and the gradient's norm at points x."""
        shares = np.exp(-(at @ data.transposed))
        shares += 1.0
        np.reciprocal(shares, out=shares)
        gradient = shares @ data.signed + c * at - b
        return shares, gradient, np.sqrt((gradient**2).sum(axis=-1))

    shares, gradient, norm = evaluate(x)
    price, again = 1, np.zeros(norm.shape, dtype=np.int64)  # of all so far; of what was halved
    spent = np.ones_like(again)
    active = norm > limit
    for _ in range(steps):
        if np.count_nonzero(active) <= few:
            break
        move = _newton_directions(data, shares, curvature, gradient)
        length = active.astype(float)
        price += 2 * x.shape[2] + 1  # a direction, and the first point tried along it
        spent[active] = price
        for _ in range(HALVINGS):
            trial = x - move * length[..., None]
            shares, gradient, trial_norm = evaluate(trial)
            worse = active & ~(trial_norm <= (1 - 1e-4 * length) * norm)
            if not worse.any():
                break
            length[worse] /= 2
            again += worse
        if worse.any():
            trial[worse] = x[worse]
            shares, gradient, trial_norm = evaluate(trial)
        x, norm = trial, trial_norm
        active = norm > limit
    return x, spent + again, active


def _newton_directions(
    data: SignedFeatures, shares: np.ndarray, curvature: np.ndarray, gradient: np.ndarray
) -> np.ndarray:
    """Return the Newton directions H^-1 g of A agents with m problems each, (A, m, dim).

    H is the sum over points of s (1 - s) a a^T, plus c I. shares: s = sigmoid(z) of each point,
    (A, m, points). curvature: c, (A,). gradient: g, (A, m, dim).
    """
    dim = data.signed.shape[-1]
    hessian = np.matmul(shares * (1 - shares), data.products).reshape(*gradient.shape, dim)
    diagonal = hessian[..., range(dim), range(dim)]
    # Curvature that rounding would lose beside that of the loss leaves a singular matrix.
    least = ROUNDING * diagonal.sum(axis=-1, keepdims=True)
    hessian[..., range(dim), range(dim)] = diagonal + np.maximum(curvature[:, None, None], least)
    return np.linalg.solve(hessian, gradient[..., None])[..., 0]
