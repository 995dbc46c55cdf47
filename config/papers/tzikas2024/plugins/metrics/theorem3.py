"""Theorem 3 and Lemma 2 of tzikas2024: conditions, and bounds beside the exact laws they bound."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from msgspec import structs
from scipy.linalg import block_diag
from scipy.special import gammaln

from concord.laws import paths
from concord.laws.gaussian import Gaussian
from concord.laws.law import start_of, update_of
from concord.laws.wasserstein import w2
from concord.networks.graph import as_dense
from concord.networks.network import Network
from concord.problem import Quadratic
from concord.samplers.admm import ADMM
from concord_studies.contracts import Label, SampledLaw
from concord_studies.metrics import Measurement, Row, final_rows, series, unmet_need, yields
from concord_studies.metrics._references import require_gaussian
from concord_studies.spectrum import spectrum_of


class Theorem(NamedTuple):
    """The constants of Theorem 3, of a graph and of quadratic f_i.

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


@yields(
    (
        *("theorem3.*", "theorem3_bound", "theorem3_distance", "theorem3_penalty"),
        *("lemma2_distance", "lemma2_distance_bound", "lemma2_state", "lemma2_state_bound"),
        "posterior_covariance_max",
    ),
    network="perfect",  # it speaks of networks on which nothing is lost
    exact=("*",),
    conditions=("theorem3.holds",),
    labels={
        "theorem3.tau_G": Label("condition number of the graph", "tau_G"),
        "theorem3.limit_at_2": Label(head="limit of tau_f at m_f = 2"),
        "theorem3.limit": Label(head="limit of tau_f"),
        "theorem3.holds": Label(head="condition"),
        "theorem3_distance": Label(head="exact distance"),
        "theorem3_bound": Label(head="bound"),
        "theorem3_penalty": Label(head="rho of the proof"),
        "lemma2_distance": Label("exact distance", "exact distance"),
        "lemma2_distance_bound": Label("bound (16)", "bound (16)"),
        "lemma2_state": Label("exact W_G", "exact W_G"),
        "lemma2_state_bound": Label("bound (17) on W_G", "bound (17) on W_G"),
        "posterior_covariance_max": Label(
            "largest entry of the posterior's covariance", "largest covariance entry"
        ),
    },
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield Theorem 3's constants, its bound where it has one, and what it bounds.

    theorem3.limit is the tau_f below which the condition holds at this run's m_f,
    theorem3.limit_at_2 the one at m_f = 2, the paper's example; nan where no tau_f will do.
    theorem3.holds is 1 where the sufficient condition holds, else 0.

    Of D-ADMMS with simultaneous updates on a connected network: the theorem says that there is a
    rho; theorem3_penalty is the one that its proof chooses, not the run's. theorem3_distance is the
    exact W(law of X^(k), mu* x ... x mu*) of all agents together under that penalty; theorem3_bound
    is infinite where the condition fails. posterior_covariance_max: the largest absolute entry of
    the posterior's covariance. lemma2_*: what Lemma 2 bounds under the run's own penalty, and its
    bounds, on graphs whose agents have as many neighbors each.
    """
    sampler, problem = m.sampler, m.problem
    if not (isinstance(problem, Quadratic) and isinstance(problem, SampledLaw)):
        raise unmet_need("theorem3", "linear regression")
    theorem = compute_theorem(problem, m.network)
    constants = {
        "tau_G": theorem.tau_graph,
        "limit_at_2": theorem3(2.0, 2.0, *_eigenvalues(m.network)).limit,
        "m_f": theorem.strong,
        "M_f": theorem.smooth,
        "tau_f": theorem.tau_f,
        "limit": theorem.limit,
        "a": theorem.rate,
        "holds": float(theorem.rate < 1),
    }
    yield from final_rows(m, {f"theorem3.{name}": value for name, value in constants.items()})
    if (
        type(sampler) is not ADMM  # a reading of it is no ADMM to the theorem
        or not sampler.noise
        or m.network.order != "simultaneous"
        or not np.isfinite(theorem.penalty)
        or m.initial.moments(problem.dim) is None
    ):
        return
    chosen, size = structs.replace(sampler, penalty=theorem.penalty), problem.agents * problem.dim
    update = update_of(chosen, problem, m.network)
    start = start_of(m, update)
    law = paths.build_path(update, start, 1, size).law(m.trace.draw.tolist())
    one, every = problem.sampled, np.eye(problem.agents)
    all_agents = Gaussian(np.tile(one.mean, problem.agents), np.kron(every, one.cov))
    laplacian = as_dense(m.network.graph.laplacian)
    begin = start[0][:size], start[1][:size, :size]
    curves = {
        "theorem3_distance": w2(law.mean[:, 0], law.cov[:, 0], all_agents),
        "theorem3_bound": bound_distance(theorem, problem, one, laplacian, begin, m.trace.draw),
    }
    yield from series(m.trace.draw, "network", curves, chance=False)
    largest = np.abs(require_gaussian(problem, "theorem3").cov).max()
    numbers = {"theorem3_penalty": theorem.penalty, "posterior_covariance_max": largest}
    yield from final_rows(m, numbers)
    if np.ptp(m.network.graph.degrees) == 0:
        after = m.trace.draw[m.trace.draw > 0]
        numbers = bound_recursion(m, sampler, theorem, all_agents, after)
        yield from series(after, "network", numbers, chance=False)


def compute_theorem(problem: Quadratic, network: Network) -> Theorem:
    """Return the constants of the theorem for a problem on a network."""
    curvature = np.linalg.eigvalsh(problem.gram)
    return theorem3(float(curvature.min()), float(curvature.max()), *_eigenvalues(network))


def _eigenvalues(network: Network) -> tuple[float, float]:
    """Return the largest signless Laplacian eigenvalue and the algebraic connectivity."""
    spectrum = spectrum_of(network.graph)
    return spectrum["signless_max"], spectrum["algebraic_connectivity"]


def theorem3(strong: float, smooth: float, signless: float, connectivity: float) -> Theorem:
    """Return the theorem's constants, from curvatures of the f_i and eigenvalues of the graph.

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
    return Theorem(tau_graph, strong, smooth, tau_f, float(limit), float(rate), float(penalty))


def bound_distance(
    theorem: Theorem,
    problem: Quadratic,
    target: Gaussian,
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
    target: mu*, of one agent.
    laplacian: D - A, shape (N, N).
    start: mean (N dim,) and covariance (N dim, N dim) of X^(0).
    iterations: k, shape (K,).
    Returns shape (K,); infinite at k = 0, of which it says nothing, and throughout if a >= 1.
    """
    k, size = iterations, problem.agents * problem.dim
    a, m, rho = theorem.rate, theorem.strong, theorem.penalty
    if not a < 1:
        return np.full(k.shape, np.inf)
    degrees = laplacian.diagonal()
    delta, root = (2 * m + 1) / (2 * m * a) - 1, np.sqrt(a)
    y, r = noise_factors(m, delta, rho, laplacian)
    square = problem.dim * float(np.sum(degrees**2))  # E|Dw|^2
    no_duals = np.zeros((size, size))
    begin = np.append(start[0], no_duals[0])[None], block_diag(start[1], no_duals)[None]
    first = state_distance(*begin, problem, target.mean, laplacian, rho)
    constant = (y / root + np.sqrt(abs(r))) * np.sqrt(square) / (np.sqrt(m) * (1 - root))
    constant += last_terms(m, degrees, target)
    with np.errstate(over="ignore"):
        decreasing = root ** (k - 1.0) * first / np.sqrt(m) + constant
    return np.where(k > 0, decreasing, np.inf)


def bound_recursion(
    m: Measurement, sampler: ADMM, theorem: Theorem, target: Gaussian, iterations: np.ndarray
) -> dict[str, np.ndarray]:
    """Return what Lemma 2 bounds at each iteration k > 0, and its bounds from iteration k - 1.

    lemma2_distance: W(law of X^(k), mu* x ... x mu*), at most lemma2_distance_bound by (16).
    lemma2_state: W_G(law of U^(k), U*), at most lemma2_state_bound by (17), with kappa = 2, as any
    above 1 will do. All are of the sampler's own penalty, on a graph whose degrees are equal.

    target: the law mu* x ... x mu* of all agents.
    """
    problem, strong, rho = m.problem, theorem.strong, sampler.penalty
    assert isinstance(problem, Quadratic)  # which the theorem's constants need
    size, dim = problem.agents * problem.dim, problem.dim
    every = np.union1d(iterations - 1, iterations)
    update = update_of(sampler, problem, m.network)
    law = paths.build_path(update, start_of(m, update), 1, 2 * size).law(every.tolist())
    mean, cov, laplacian = law.mean[:, 0], law.cov[:, 0], as_dense(m.network.graph.laplacian)
    state = state_distance(mean, cov, problem, target.mean[:dim], laplacian, rho)
    before, now = (np.searchsorted(every, iterations - back) for back in (1, 0))
    # sigma^2 of the incidence matrices is twice the Laplacians' eigenvalues.
    plus, minus = (2 * value for value in _eigenvalues(m.network))
    kappa = 2.0
    second = strong / (rho / 4 * plus + kappa * theorem.smooth**2 / (rho * minus))
    delta = min((kappa - 1) * minus / (kappa * plus), second)
    y, r = noise_factors(strong, delta, rho, laplacian)
    degrees = laplacian.diagonal()
    square = dim * float(np.sum(degrees**2))  # E|Dw|^2
    length = degrees[0] * np.sqrt(2) * np.exp(gammaln((size + 1) / 2) - gammaln(size / 2))  # E|Dw|
    root = np.sqrt((2 * strong + 1) / (2 * strong * (1 + delta)))
    half = y * length / (2 * root)
    one = Gaussian(target.mean[:dim], target.cov[:dim, :dim])
    bound = state[before] / np.sqrt(strong) + last_terms(strong, degrees, one)
    return {
        "lemma2_distance": w2(mean[now, :size], cov[now, :size, :size], target),
        "lemma2_distance_bound": bound,
        "lemma2_state": state[now],
        "lemma2_state_bound": root * state[before] + half + np.sqrt(abs(r * square - half**2)),
    }


def noise_factors(
    strong: float, delta: float, rho: float, laplacian: np.ndarray
) -> tuple[float, float]:
    """Return y over |Dw|, (18), and r over |Dw|^2, (19), with b, c, d and e of (21)."""
    # sigma^2 of the oriented incidence matrix is twice the Laplacian's eigenvalues.
    spectrum = 2 * np.linalg.eigvalsh(laplacian)
    minus, minus_max = spectrum[1], spectrum[-1]
    b = 1 / (2 * (1 + delta))
    c = 2 * np.sqrt(2) * delta / ((1 + delta) * minus)
    d = rho * minus_max / 2
    e = 2 * delta / ((1 + delta) * rho * minus)
    kick = 1 / (np.sqrt(2) * strong) + np.sqrt(2)  # w bar over |Dw|
    y = 2 * b / np.sqrt(strong) * kick + c * np.sqrt(minus_max * rho) + c * d / np.sqrt(strong)
    r = np.sqrt(2) * b / strong * kick + b * kick**2 + b / (2 * strong**2)
    return y, r + np.sqrt(2) * c * d / strong - e


def last_terms(strong: float, degrees: np.ndarray, target: Gaussian) -> float:
    """Return the last two terms of (16): the noise's, and that of all agents' distance to mu*.

    They are sqrt(E|Dw|^2)/(sqrt(2) m), and the distance of the laws of x* - D_ii w_i/(sqrt(2) m).
    """
    dim = len(target.mean)
    widths = degrees[:, None, None] ** 2 / (2 * strong**2) * np.eye(dim)
    apart = w2(np.broadcast_to(target.mean, (len(degrees), dim)), widths, target)
    square = dim * np.sum(degrees**2)
    return float(np.sqrt(square) / (np.sqrt(2) * strong) + np.sqrt(np.sum(apart**2)))


def state_distance(
    mean: np.ndarray,
    cov: np.ndarray,
    problem: Quadratic,
    optimum: np.ndarray,
    laplacian: np.ndarray,
    rho: float,
) -> np.ndarray:
    """Return W_G(law of U, U*), (K,), of laws of ADMM's state (x, u) with u = p / rho.

    U = (Z, beta) has Z = M_+^T X / 2, (12), and beta, the shortest solution of M_- beta = p; U* is
    that of the optimum, whose p* is -grad f(X*), (13)-(15).

    mean, cov: (K, 2 N dim) and (K, 2 N dim, 2 N dim). laplacian: D - A, (N, N).
    """
    signless = 2 * np.diag(laplacian.diagonal()) - laplacian
    squares = block_diag(signless / 2, np.linalg.pinv(2 * laplacian, hermitian=True))
    weights = rho * np.kron(squares, np.eye(problem.dim))
    gradient = (problem.gram @ optimum - problem.shift).ravel()
    apart = mean - np.append(np.tile(optimum, problem.agents), -gradient / rho)
    traces = np.einsum("ij,kij->k", weights, cov)
    return np.sqrt(((apart @ weights) * apart).sum(axis=1) + traces)
