"""Theorems 2 and 10 and Lemma 12 of gurbuzbalaban2021, every constant computed from the problem.

The bounds are for quadratic f_i. sigma of (3.2) is 0 for full gradients.
"""

from typing import NamedTuple

import numpy as np

from concord_studies.metrics._theorems import Condition, geometric_sum


class Bound(NamedTuple):
    """A theorem's bound of the agents' mean W2 to the posterior, at each requested iteration.

    constants, conditions: all that the theorem and its lemmas name.
    printed: the bound; inf if a condition fails, since nothing is then claimed.
    rederived: the same bound with the transient of Lemma 7, or 15, as its proof's recursion gives
    it (the paper's notes list the slip under errata).
    lemmas: by name what the lemmas behind it bound mean squares by, at each iteration; none if a
    condition fails.
    """

    constants: dict[str, float]
    conditions: list[Condition]
    printed: np.ndarray
    rederived: np.ndarray
    lemmas: dict[str, np.ndarray]


class Setting:
    """The constants of quadratic f_i, the spectrum of W and the start, which both theorems need.

    grad f_i(x) = gram_i x - shift_i, shapes (N, d, d) and (N, d); eigenvalues of W, in any order,
    (N,); x_i^(0) ~ N(mean, sd^2 I), independent, the mean a number, (d,) or (N, d).
    """

    def __init__(
        self,
        gram: np.ndarray,
        shift: np.ndarray,
        eigenvalues: np.ndarray,
        mean: float | np.ndarray,
        sd: float,
    ) -> None:
        self.gram, self.shift = gram, shift
        self.agents, self.dim = agents, dim = shift.shape
        curvature = np.linalg.eigvalsh(gram)
        self.mu, self.smooth = float(curvature.min()), float(curvature.max())
        spectrum = np.sort(eigenvalues)[::-1]
        self.lambda_2 = float(spectrum[1]) if agents > 1 else 0.0
        self.lambda_n = float(spectrum[-1])
        self.gap = max(abs(self.lambda_2), abs(self.lambda_n)) if agents > 1 else 0.0
        self.minimizer = np.linalg.solve(gram.sum(axis=0), shift.sum(axis=0))
        start = np.broadcast_to(mean, shift.shape)
        width = dim * sd**2
        # E|x_0|^2, E|x_0 - x_*|^2 and E|xbar_0 - x_*|^2
        self.start = float((start**2).sum()) + agents * width
        self.spread = float(((start - self.minimizer) ** 2).sum()) + agents * width
        average = start.mean(axis=0) - self.minimizer
        self.average = float((average**2).sum()) + width / agents

    def conditions(self) -> list[Condition]:
        """Return the conditions on problem and network."""
        return [
            Condition("strong convexity", self.mu, self.mu > 0),
            # gamma_bar of a disconnected graph is 1 but for rounding.
            Condition("connected graph", self.gap, self.gap < 1 - 1e-12),
        ]

    def drift(self, step: float) -> float:
        """Return mu (1 - a L/2), the average's contraction per time of a step a."""
        return self.mu * (1 - step * self.smooth / 2)

    def error_factor(self, step: float) -> float:
        """Return the factor a (a + (1 + a L)^2/drift) of E|E_k|^2 in Lemmas 7 and 15."""
        return step * (step + (1 + step * self.smooth) ** 2 / self.drift(step))

    def lemma9(self, k: np.ndarray) -> np.ndarray:
        """Return Lemma 9's bound on E|X - x_*|^2 of the posterior, at each iteration alike."""
        return np.full(k.shape, 2 * self.dim / (self.agents * self.mu))

    def evaluate_bound(
        self, k: np.ndarray, step: float, errors: float, apart: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return a bound as printed and as rederived, at iterations k.

        step: that of the average, a. errors: the terms that neither theorem shares nor k changes.
        apart: the factor of the agents' first distance to their average.
        """
        agents, dim, gap = self.agents, self.dim, self.gap
        shared = (
            (1 - self.mu * step) ** k
            * (np.sqrt(self.average) + np.sqrt(2 * dim / (self.mu * agents)))
            + 1.65 * self.smooth / self.mu * np.sqrt(step * dim / agents)
            + apart * gap ** (k / 2) * np.sqrt(self.start / agents)
            + errors
        )
        lost = geometric_sum(gap, 1 - step * self.drift(step), k) * self.start / agents
        transient = 2 * self.smooth * np.sqrt(lost)
        rederived = shared + transient * np.sqrt(self.error_factor(step))
        return shared + transient * np.sqrt(gap), rederived


def _claim_nothing(
    constants: dict[str, float], conditions: list[Condition], k: np.ndarray
) -> Bound:
    """Return the infinite bound of a theorem of which some condition fails."""
    return Bound(constants, conditions, np.full(k.shape, np.inf), np.full(k.shape, np.inf), {})


def theorem2(setting: Setting, eta: float, sigma: float, iterations: np.ndarray) -> Bound:
    """Return the bound of Theorem 2 for DE-SGLD with step size eta.

    With r = 1 - eta mu (1 - eta L/2), the bound of (1/N) sum_i W2(law of x_i^(k), posterior) is
    the sum of the discretized diffusion's distance (Lemma 8), the average's distance to that
    diffusion (Lemma 7) and the agents' distance to their average (Lemma 5)::

        (1 - mu eta)^k (sqrt(E|xbar_0 - x_*|^2) + sqrt(2 d/(mu N))) + 1.65 (L/mu) sqrt(eta d/N)
        + sqrt(eta (eta/(mu (1 - eta L/2)) + (1 + eta L)^2/(mu (1 - eta L/2))^2))
          sqrt(4 L^2 D^2 eta/(N (1 - g)^2) + 4 L^2 (sigma^2 eta + 2 d)/(1 - g^2))
        + sqrt(eta) sigma/sqrt(mu (1 - eta L/2) N)
        + sqrt((g^k - r^k)/(g - r)) 2 L sqrt(g/N) sqrt(E|x_0|^2)
        + 2 g^(k/2) sqrt(E|x_0|^2/N) + 2 D eta/(sqrt(N) (1 - g))
        + 2 (sigma eta + sqrt(2 d eta))/sqrt(1 - g^2)

    where g = gamma_bar, the second largest modulus of W's eigenvalues (3.9), and D, C_1 and Cbar_1
    are (3.13)-(3.15). The power of r is Lemma 7's; Theorem 2 itself prints r.
    """
    agents, dim, mu, smooth = setting.agents, setting.dim, setting.mu, setting.smooth
    gap, k = setting.gap, np.asarray(iterations, dtype=float)
    contraction = mu * eta * (1 + setting.lambda_n - eta * smooth)
    decay = eta * setting.drift(eta)
    conditions = [
        *setting.conditions(),
        Condition("step size", eta, eta * (mu + smooth) < 1),
        Condition("contraction", contraction, 0 < contraction < 1),
        Condition("decay", decay, decay <= 1),
    ]
    constants = {
        **{"N": float(agents), "d": float(dim), "eta": eta, "mu": mu, "L": smooth, "sigma": sigma},
        **{"lambda_2": setting.lambda_2, "lambda_N": setting.lambda_n, "gamma_bar": gap},
        **{"E|x0|^2": setting.start, "rate": 1 - mu * eta},
    }
    if not all(condition.holds for condition in conditions):
        return _claim_nothing(constants, conditions, k)
    gradient = float(((setting.gram @ setting.minimizer - setting.shift) ** 2).sum())
    # f_i(0) - f_i^* of a quadratic; constants of f_i drop out.
    lowest = np.linalg.solve(setting.gram, setting.shift[..., None])[..., 0]
    c1_bar = float(np.sqrt(smooth * (setting.shift * lowest).sum()))
    c1 = c1_bar * (1 + 2 * (smooth + mu) / mu)
    d_square = (
        8 * smooth**2 * setting.spread
        + 12 * smooth**2 * c1**2 * eta**2 * agents / (1 - gap) ** 2
        + 4 * smooth**2 * (eta * sigma**2 + 2 * dim) * agents * eta / contraction
        + 2 * gradient
    )
    constants |= {
        **{"C1_bar": c1_bar, "C1": c1, "D": float(np.sqrt(d_square))},
        **{"|grad F(x*)|": float(np.sqrt(gradient)), "E|x0 - x*|^2": setting.spread},
        **{"E|xbar0 - x_*|^2": setting.average, "r": 1 - decay},
        "lemma7_factor": setting.error_factor(eta),
    }
    errors = (
        np.sqrt(setting.error_factor(eta) / setting.drift(eta))
        * np.sqrt(
            4 * smooth**2 * d_square * eta / (agents * (1 - gap) ** 2)
            + 4 * smooth**2 * (sigma**2 * eta + 2 * dim) / (1 - gap**2)
        )
        + sigma * np.sqrt(eta / (setting.drift(eta) * agents))
        + 2 * np.sqrt(d_square / agents) * eta / (1 - gap)
        + 2 * (sigma * eta + np.sqrt(2 * dim * eta)) / np.sqrt(1 - gap**2)
    )
    apart = 4 * (
        gap**k * setting.start
        + d_square * eta**2 / (1 - gap) ** 2
        + (sigma**2 * eta + 2 * dim) * agents * eta / (1 - gap**2)
    )
    lemmas = {
        **{"lemma4": np.full(k.shape, d_square), "lemma5": apart},
        **{"lemma6": smooth**2 / agents * apart, "lemma9": setting.lemma9(k)},
    }
    return Bound(constants, conditions, *setting.evaluate_bound(k, eta, errors, 2.0), lemmas)


def lemma12(eta: float, gamma: float, mu: float, smooth: float, lambda_n: float) -> list[Condition]:
    """Return the conditions under which DE-SGHMC's second moments stay bounded.

    Lemma 12 of gurbuzbalaban2021: (4.9), eta^2 <= (1 + lambda_N)/(2 (L + mu)); beta = 1 - gamma eta
    in [0, 1); and (4.10), beta <= (1 + lambda_N - 4 eta^2 mu)/4 and beta <= eta^3 sqrt(c_1 mu^3
    (1 + lambda_N)/64) with c_1 of (4.11), which itself depends on beta; a negative beta is none of
    the lemma's, and meets neither. They are sufficient, not necessary. eta and gamma are step size
    and friction, mu and L (``smooth``) strong convexity and smoothness of the f_i, lambda_N is the
    smallest eigenvalue of W.
    """
    square, beta = eta**2, 1 - gamma * eta
    largest = (1 + lambda_n) / (2 * (smooth + mu))
    first = (1 + lambda_n - 4 * square * mu) / 4
    ratio = square * mu / (1 - lambda_n + square * smooth)
    c1 = 0.5 * square * mu / ((1 + beta) + (1 - beta) * ratio)
    # No beta meets it where c_1 is negative.
    second = eta**3 * np.sqrt(c1 * mu**3 * (1 + lambda_n) / 64) if c1 >= 0 else -np.inf
    return [
        Condition("(4.9)", square, 0 < square <= largest, largest),
        Condition("beta", beta, 0 <= beta < 1),
        Condition("(4.10), first bound", beta, 0 <= beta <= first, first),
        Condition("(4.10), second bound", beta, bool(0 <= beta <= second), float(second)),
    ]


def theorem10(
    setting: Setting,
    eta: float,
    friction: float,
    moment: float,
    sigma: float,
    iterations: np.ndarray,
) -> Bound:
    """Return the bound of Theorem 10 for DE-SGHMC with step size eta and friction gamma.

    With a = eta^2, beta = 1 - gamma eta, h = mu (1 - a L/2), r = 1 - a h and g = gamma_bar, the
    bound of (1/N) sum_i W2(law of x_i^(k), posterior) is the sum of the distances of Lemmas 8, 15,
    16 and 13::

        (1 - mu a)^k (sqrt(E|xbar_0 - x_*|^2) + sqrt(2 d/(mu N))) + 1.65 (L/mu) sqrt(a d/N)
        + sqrt(2) sqrt(a/h + (1 + a L)^2/h^2)
          (sqrt(beta^2 c_5/(a N) + 2 L^2 c_5 a/(N (1 - g)^2))
           + sqrt((sqrt(1 - beta) - 1)^2/a d/N))
        + eta sigma/sqrt(h N)
        + sqrt((g^k - r^k)/(g - r)) 2 L sqrt(g/N) sqrt(E|x_0|^2)
        + sqrt(2) g^(k/2) sqrt(E|x_0|^2/N) + sqrt(2 c_5) eta/(sqrt(N) (1 - g))

    The last term is that of the proof, by Lemma 13; the theorem's has sqrt(2) c_5 in the print.
    ``moment`` is c_5, of which Lemma 12 says only that it bounds E|x^(k)|^2 and E|v^(k)|^2 for
    every k. The bound grows with c_5: if it holds for the smallest, it does for any.
    """
    agents, mu, smooth, gap = setting.agents, setting.mu, setting.smooth, setting.gap
    square, beta, k = eta**2, 1 - friction * eta, np.asarray(iterations, dtype=float)
    decay = square * setting.drift(square)
    conditions = [
        *setting.conditions(),
        *lemma12(eta, friction, mu, smooth, setting.lambda_n),
        Condition("Lemma 15, step size", square, square * smooth < 2),
        Condition("Lemma 15, decay", decay, decay <= 1),
        Condition("step size", square, square * (mu + smooth) <= 2 * agents),
    ]
    constants = {
        **{"mu": mu, "L": smooth, "1 - gamma eta": beta, "gamma_bar": gap, "c_5": moment},
        **{"rate": 1 - mu * square, "sigma": sigma},
    }
    if not all(condition.holds for condition in conditions):
        return _claim_nothing(constants, conditions, k)
    errors = np.sqrt(2 * setting.error_factor(square) / (square * setting.drift(square))) * (
        np.sqrt(
            beta**2 * moment / (square * agents)
            + 2 * smooth**2 * moment * square / (agents * (1 - gap) ** 2)
        )
        + abs(np.sqrt(1 - beta) - 1) / eta * np.sqrt(setting.dim / agents)
    ) + np.sqrt(2 * moment / agents) * eta / (1 - gap)
    errors += eta * sigma / np.sqrt(setting.drift(square) * agents)
    apart = 2 * (gap**k * setting.start + moment * square / (1 - gap) ** 2)
    lemmas = {"lemma13": apart, "lemma14": smooth**2 / agents * apart}
    curves = setting.evaluate_bound(k, square, errors, np.sqrt(2))
    return Bound(constants, conditions, *curves, lemmas)
