r"""Exact second moments of FALD and VR-FALD* with any number of clients, and formulas of the print.

With positions counted from the mode of a Gaussian posterior, a step of client i is

.. math:: \tilde x_i = M_i x_i + N_i z + w_i, \qquad M_i = I - \gamma H_i

where z is what all clients share: of FALD the number 1, with :math:`N_i = -\gamma \nabla f_i` at
the mode; of VR-FALD* the reference point, with :math:`N_i = \gamma (H_i - \bar H)`. With
probability p the clients take the mean of the :math:`\tilde x_j`, and with probability q the
reference takes the mean of the x_j from before the step. The moments
:math:`A_{ij} = E x_i x_j^\top` and :math:`D_i = E x_i z^\top` settle where

.. math::
    A_{ij} = (1 - p) (M_i A_{ij} M_j + R_{ij}) + p S, \qquad S = \frac{1}{b^2} \sum_{ij} A_{ij},

R being what z and the noise add. In the eigenvectors of M_i and M_j, A_ij follows from S and D
entry by entry, so that S and D remain, which solve a linear system (derived here). The law itself
is no normal one, as averages are taken at random.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator, gmres

# Table 5, and what Figure 1 leaves open: the start's I(mu_0), the clients and the renewals.
TABLE_5 = {"d": 10.0, "m": 1.0, "omega": 10.0, "H": 100.0, "J": 20.0, "V_pi": 10.0, "V_star": 30.0}
START, CLIENTS, RENEWAL = 1.0, 10.0, 1.0


class Rounds(NamedTuple):
    """The options of a run on which its law depends.

    step: gamma. communication, renewal: p and q; renewal None: FALD. own, common: the variances of
    each client's noise and of the noise that all share, over 2 gamma.
    """

    step: float
    communication: float
    renewal: float | None
    own: float
    common: float


class Block:
    """The clients' steps in coordinates that are independent of the others, in eigenvectors."""

    def __init__(self, gram: np.ndarray, slopes: np.ndarray, rounds: Rounds) -> None:
        """Read the Hessians (clients, dim, dim) and the slopes at the mode (clients, dim)."""
        self.rounds, (self.clients, self.dim, _) = rounds, gram.shape
        self.precision = gram.sum(axis=0)
        values, vectors = np.linalg.eigh(gram)
        self.basis = vectors.swapaxes(1, 2).reshape(-1, self.dim)
        self.factor = 1 - rounds.step * values.reshape(-1)
        forces = -slopes[:, :, None] if rounds.renewal is None else gram - gram.mean(axis=0)
        self.push = rounds.step * (vectors.swapaxes(1, 2) @ forces).reshape(len(self.factor), -1)

    def average(self, stacked: np.ndarray) -> np.ndarray:
        """Return the mean over clients of vectors or matrices given in their eigenvectors."""
        result: np.ndarray = self.basis.T @ stacked / self.clients
        return result

    @cached_property
    def means(self) -> np.ndarray:
        """The clients' mean positions under FALD, in eigenvectors, (clients * dim, 1)."""
        p = self.rounds.communication
        shrink = 1 / (1 - (1 - p) * self.factor[:, None])
        fixed, moving = (1 - p) * shrink * self.push, p * shrink * self.basis
        center = np.linalg.solve(np.eye(self.dim) - self.average(moving), self.average(fixed))
        return fixed + moving @ center

    def advance(self, D: np.ndarray, S: np.ndarray, each: np.ndarray) -> np.ndarray:
        """Return D after a step of VR-FALD*, given S and each client's moment with the average."""
        p, q = self.rounds.communication, float(self.rounds.renewal or 0)
        factor, apart = self.factor[:, None], self.average(D).T
        moved = q * (factor * each + self.push @ apart) + (1 - q) * (factor * D + self.push @ S)
        return (1 - p) * moved + p * self.basis @ self.average(moved)


def largest_step(hessian: np.ndarray) -> float:
    """Return gamma-bar, 2 over the sum of the extreme eigenvalues of the posterior's precision."""
    values = np.linalg.eigvalsh(hessian)
    return float(2 / (values[0] + values[-1]))


def average_moments(
    gram: np.ndarray, slopes: np.ndarray, rounds: Rounds
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return mean and covariance of the clients' average, from the mode; None: they grow.

    gram: the clients' Hessians, (clients, dim, dim). slopes: their gradients at the mode, (clients,
    dim).
    """
    dim = gram.shape[1]
    count, labels = connected_components(np.abs(gram).sum(axis=0) > 0)
    where = [np.flatnonzero(labels == block) for block in range(count)]
    blocks = [Block(gram[:, w[:, None], w], slopes[:, w], rounds) for w in where]
    mean, second = np.zeros(dim), np.zeros((dim, dim))
    for i, left in enumerate(blocks):
        # Under VR-FALD* blocks are uncorrelated; under FALD all drift on at the same times.
        for j in range(i, count) if rounds.renewal is None else [i]:
            moments = _settle(left, blocks[j])
            if moments is None:
                return None
            second[np.ix_(where[i], where[j])] = moments
            second[np.ix_(where[j], where[i])] = moments.T
        if rounds.renewal is None:
            mean[where[i]] = left.average(left.means)[:, 0]
    return mean, second - np.outer(mean, mean)


def _settle(a: Block, b: Block) -> np.ndarray | None:
    """Return S between two blocks, the second moments of the average; None: they grow."""
    rounds, vr, entries = a.rounds, a.rounds.renewal is not None, a.dim * b.dim
    p, weight = (
        rounds.communication,
        1 / (1 - (1 - rounds.communication) * np.outer(a.factor, b.factor)),
    )
    noise = np.zeros(weight.shape)
    if a is b:
        noise = rounds.own * np.eye(len(weight)) + rounds.common * a.basis @ a.basis.T
        noise *= 2 * rounds.step

    def split(u: np.ndarray, on: float) -> tuple[np.ndarray, ...]:
        """Return S, D of either block, and E z z^T of unknowns u; on: 1, or 0 without constants."""
        S = u[:entries].reshape(a.dim, b.dim)
        if vr:
            D = u[entries:].reshape(-1, a.dim)
            return S, D, D, S
        return S, on * a.means, on * b.means, on * np.ones((1, 1))

    def moments(u: np.ndarray, on: float) -> np.ndarray:
        """Return all A_ij, in eigenvectors."""
        S, left, right, shared = split(u, on)
        R = (a.factor[:, None] * left) @ b.push.T + a.push @ (b.factor[:, None] * right).T
        R = R + a.push @ shared @ b.push.T + on * noise
        A: np.ndarray = weight * ((1 - p) * R + p * a.basis @ S @ b.basis.T)
        return A

    def advance(u: np.ndarray, on: float) -> np.ndarray:
        """Return the S and D that follow from S and D."""
        each = moments(u, on) @ b.basis / b.clients
        S, D, *_ = split(u, on)
        parts = [a.average(each)] + ([a.advance(D, S, each)] if vr else [])
        return np.concatenate([part.ravel() for part in parts])

    size = entries + (a.basis.size if vr else 0)
    change = LinearOperator(
        (size, size), lambda u: u.ravel() - advance(u.ravel(), 0.0), dtype=float
    )
    # About the size of the solution, whose rounding ends the iteration.
    near = rounds.own + a.clients * rounds.common
    near *= np.linalg.norm(np.linalg.inv(a.precision)) * np.sqrt(1 + a.clients)
    constants = advance(np.zeros(size), 1.0)
    u, failed = gmres(
        change, constants, rtol=1e-12, atol=1e-14 * near, restart=min(size, 500), maxiter=2
    )
    S, D, *_ = split(u, 1.0)
    if a is b and not failed:
        whole = moments(u, 1.0)
        whole = np.block([[whole, D], [D.T, S]]) if vr else whole - D @ D.T
        # What solves the equation is a covariance exactly where the iteration is stable.
        failed = np.linalg.eigvalsh(whole)[0] < -1e-9 * np.abs(whole).max()
    return None if failed else S


def fewest_communications(tolerance: float, drift: float) -> tuple[float, float, float]:
    r"""Return scenario A's p_c K, lambda and 1/rho, where W2 is to be at most a tolerance.

    drift: what 1/rho^2 multiplies, H + d/b of FALD and d/b of VR-FALD*. The share z^2 of the
    squared tolerance is that of the drift; :math:`\lambda \rho` is least over z.
    """

    def time(z: float) -> float:
        """Return lambda, the physical time that leaves the share 1 - z^2 of the start."""
        return 8 / TABLE_5["m"] * np.log(START / (tolerance**2 * (1 - z**2)))

    from scipy.optimize import minimize_scalar  # not at the start of every job

    best = minimize_scalar(lambda z: time(z) / z, bounds=(1e-3, 1 - 1e-9), method="bounded")
    rho = np.sqrt(drift) / (best.x * tolerance)
    return time(best.x) * rho, time(best.x), 1 / rho


def fewest_iterations(
    tolerance: float, variance: float, error: float
) -> tuple[float, float, float]:
    """Return scenario B's K, gamma K and gamma, with averages after every step.

    variance, error: what gamma and gamma^2 multiply in the bound on the squared W2.
    """

    def count(log_step: float) -> float:
        """Return the iterations after which the bound is within the tolerance, or infinity."""
        step = np.exp(log_step)
        left = tolerance**2 - variance * step - error * step**2
        return np.inf if left <= 0 else 8 / (TABLE_5["m"] * step) * np.log(START / left)

    from scipy.optimize import minimize_scalar  # as above

    longest = (np.sqrt(variance**2 + 4 * error * tolerance**2) - variance) / (2 * error)
    bounds = (np.log(longest) - 5, np.log(longest) - 1e-9)
    best = minimize_scalar(count, bounds=bounds, method="bounded", options={"xatol": 1e-10})
    step = float(np.exp(best.x))
    return float(best.fun), float(best.fun) * step, step


def step_bound(gram: np.ndarray, rounds: Rounds) -> float:
    """Return the smaller of gamma_1 and gamma_2 of Theorem 20, or under VR-FALD* of Theorem 28.

    Gradients are full ones, for which A4 holds with the L of A1, and omega and its like are zero.
    In the last root of Theorem 28's gamma_1 a summand of q_c, of another unit, is left out: without
    it the bound is no smaller.
    """
    values = np.linalg.eigvalsh(gram)
    m, L = values.min(), values.max()
    p, q = rounds.communication, rounds.renewal
    local = np.inf if p == 1 else 1 / (1 - p)  # averages after every step leave no drift
    if q is not None:
        first = min(m / (192 * L**2), 2 * q / m, p / (2 * m), p * m / (96 * L**2))
        first = min(first, local * p / (2 * L * np.sqrt(3 * p + 9)))
        return float(min(first, q / L, q / (2 * m), 1 / (6 * L)))
    first = min(m / (6 * L**2), p / (2 * m), np.sqrt(local * p / (12 * (1 + 1 / p))) / L)
    drift = local * p * m / (38 * np.sqrt(3) * L**2)
    return float(min(first, p / (4 * m), 1 / (6 * (L + L**2 / m)), drift))
