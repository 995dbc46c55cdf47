"""Theorem 3 of tzikas2024, conditions and bound, every constant computed from the problem."""

from typing import Any, NamedTuple

import numpy as np

from concord.laws.wasserstein import w2


class Theorem3(NamedTuple):
    """The sufficient condition of Theorem 3 of tzikas2024.

    tau_graph: condition number of the graph, sqrt(largest eigenvalue of the signless Laplacian /
    algebraic connectivity); inf if it is not connected.
    strong, smooth: m_f and M_f, the least strong convexity and the largest smoothness of the f_i.
    tau_f: M_f / m_f.
    limit: the tau_f below which the condition holds at this m_f and graph; nan if at none.
    rate: the smallest a over kappa and rho, by (86)-(90): the bound falls by sqrt(a) per iteration,
    and the condition is that a < 1.
    penalty: the rho at which a is smallest, (86) at the kappa of (88); nan for a graph in parts.
    """

    tau_graph: float
    strong: float
    smooth: float
    tau_f: float
    limit: float
    rate: float
    penalty: float


def theorem3(strong: float, smooth: float, signless: float, connectivity: float) -> Theorem3:
    """Return when Theorem 3 of tzikas2024 lets D-ADMMS converge.

    The condition is sqrt(u^2 + 4 u/tau_G^2) - u > 1/m_f with u = 1/tau_f^2; solved for tau_f,
    tau_f^2 < 4 m_f^2/tau_G^2 - 2 m_f. It is delta > 1/(2 m_f) at the largest delta, (90), and
    a = (2 m_f + 1)/(2 m_f (1 + delta)), (21).

    strong, smooth: m_f and M_f.
    signless: largest eigenvalue of D + A.
    connectivity: smallest nonzero eigenvalue of D - A; 0 for a graph in parts.
    """
    tau_f = smooth / strong
    # Rounding leaves 1e-15 or so for a graph in parts.
    connected = connectivity > 1e-10 * max(signless, 1.0)
    tau_graph = float(np.sqrt(signless / connectivity)) if connected else np.inf
    u, v = 1 / tau_f**2, 4 / tau_graph**2
    delta = (np.sqrt(u**2 + u * v) - u) / 2
    square = strong**2 * v - 2 * strong
    ratio = tau_graph / tau_f
    root = (ratio + np.sqrt(ratio**2 + 4)) / 2  # of kappa
    penalty = root * smooth / np.sqrt(signless * connectivity) if connected else np.nan
    limit = np.sqrt(square) if square >= 1 else np.nan
    rate = (2 * strong + 1) / (2 * strong * (1 + delta))
    return Theorem3(tau_graph, strong, smooth, tau_f, float(limit), float(rate), float(penalty))


def theorem3_bound(
    theorem: Theorem3,
    problem: Any,
    laplacian: np.ndarray,
    start: tuple[np.ndarray, np.ndarray],
    iterations: np.ndarray,
) -> np.ndarray:
    """Return Theorem 3's bound on the distance of all agents' joint law, at its best penalty.

    It is on W(law of X^(k), mu* x ... x mu*) with mu* = exp(-sum_i f_i), for quadratic f_i, dual
    variables that start at zero, Y = C sqrt(E|Dw|^2) for y = C |Dw|, (18), and R = |E r|, (19). The
    print has 1/sqrt(2 m_f) before D w in (16) and in the theorem; here it is 1/(sqrt(2) m_f), as in
    (20) and in the proof, after (62).

    theorem: the constants of ``theorem3``.
    problem: quadratic, with mu* as the law that is ``sampled``.
    laplacian: D - A, shape (N, N).
    start: mean (N dim,) and covariance (N dim, N dim) of X^(0).
    iterations: k, shape (K,).
    Returns shape (K,); infinite at k = 0, of which it says nothing, and throughout if a >= 1.
    """
    agents, dim, target = problem.agents, problem.dim, problem.sampled
    k = np.asarray(iterations)
    a, m, rho = theorem.rate, theorem.strong, theorem.penalty
    if not a < 1:
        return np.full(k.shape, np.inf)
    degrees = laplacian.diagonal()
    signless = 2 * np.diag(degrees) - laplacian
    # sigma^2 of the incidence matrices is twice the Laplacians' eigenvalues.
    spectrum = 2 * np.linalg.eigvalsh(laplacian)
    minus, minus_max = spectrum[1], spectrum[-1]
    delta = (2 * m + 1) / (2 * m * a) - 1
    b = 1 / (2 * (1 + delta))
    c = 2 * np.sqrt(2) * delta / ((1 + delta) * minus)
    d = rho * minus_max / 2
    e = 2 * delta / ((1 + delta) * rho * minus)
    square = dim * float(np.sum(degrees**2))  # E|Dw|^2
    kick = 1 / (np.sqrt(2) * m) + np.sqrt(2)  # w bar over |Dw|
    y = 2 * b / np.sqrt(m) * kick + c * np.sqrt(minus_max * rho) + c * d / np.sqrt(m)
    r = np.sqrt(2) * b / m * kick + b * kick**2 + b / (2 * m**2) + np.sqrt(2) * c * d / m - e
    # Z = M_+^T X / 2, and beta* is the shortest solution of M_- beta* = -grad f(X*).
    moved = start[0] - np.tile(target.mean, agents)
    extended = np.kron(signless, np.eye(dim))
    primal = (moved @ extended @ moved + np.trace(extended @ start[1])) / 2
    gradient = problem.gram @ target.mean - problem.shift
    dual = np.trace(gradient.T @ np.linalg.pinv(2 * laplacian, hermitian=True) @ gradient)
    first = np.sqrt(rho * primal + dual / rho)
    # mu* against the law of x* - D_ii w_i / (sqrt(2) m), agent by agent.
    widths = degrees[:, None, None] ** 2 / (2 * m**2) * np.eye(dim)
    noise = np.sqrt(
        np.sum(w2(np.broadcast_to(target.mean, problem.shift.shape), widths, target) ** 2)
    )
    root = np.sqrt(a)
    constant = (y / root + np.sqrt(abs(r))) * np.sqrt(square) / (np.sqrt(m) * (1 - root))
    constant += np.sqrt(square) / (np.sqrt(2) * m) + noise
    with np.errstate(over="ignore"):
        bound = root ** (k - 1.0) * first / np.sqrt(m) + constant
    return np.where(k > 0, bound, np.inf)
