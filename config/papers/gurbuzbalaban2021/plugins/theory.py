"""Theorems 2 and 10 and Lemma 12 of gurbuzbalaban2021, every constant computed from the problem."""

from dataclasses import dataclass

import numpy as np

from concord_studies.metrics._theorems import Condition, geometric_sum


@dataclass(frozen=True, eq=False)
class Bound:
    """A theorem's bound of the agents' average W2 to the posterior, evaluated.

    constants: every constant of the bound by name.
    conditions: the theorem's conditions, those of its lemmas among them.
    bound: the bound at each requested iteration; inf at all of them if a condition fails, since
    nothing is then claimed.
    rederived: the same bound with the transient of Lemma 7, or 15, as its proof's recursion gives
    it (the paper's notes list the slip under errata).
    limit: the bound as k grows.
    """

    constants: dict[str, float]
    conditions: list[Condition]
    bound: np.ndarray
    rederived: np.ndarray
    limit: float

    @property
    def holds(self) -> bool:
        """Whether every condition holds."""
        return all(condition.holds for condition in self.conditions)


class Setting:
    """What both theorems speak of: quadratic f_i, the spectrum of W, and the start.

    grad f_i(x) = gram_i x - shift_i, shapes (N, d, d) and (N, d); eigenvalues of W, in any order,
    (N,); x_i^(0) ~ N(mean, sd^2 I), independent, the mean a number, (d,) or (N, d).
    """

    def __init__(
        self,
        gram: np.ndarray,
        shift: np.ndarray,
        mixing_eigenvalues: np.ndarray,
        initial_mean: float | np.ndarray,
        initial_sd: float,
    ) -> None:
        self.agents, self.dim = shift.shape
        curvature = np.linalg.eigvalsh(gram)
        self.mu, self.smooth = float(curvature.min()), float(curvature.max())
        spectrum = np.sort(np.asarray(mixing_eigenvalues, dtype=float))[::-1]
        self.lambda_2 = float(spectrum[1]) if self.agents > 1 else 0.0
        self.lambda_n = float(spectrum[-1])
        self.gap = max(abs(self.lambda_2), abs(self.lambda_n)) if self.agents > 1 else 0.0
        self.gram, self.shift, self.sd = gram, shift, initial_sd
        self.mean = np.broadcast_to(np.asarray(initial_mean, dtype=float), (self.agents, self.dim))
        # E|x_0|^2
        self.start = float(np.sum(self.mean**2)) + self.agents * self.dim * initial_sd**2

    def conditions(self) -> list[Condition]:
        """Return those of problem and network."""
        return [
            Condition("strong convexity", self.mu, self.mu > 0),
            # gamma_bar of a disconnected graph is 1 but for rounding.
            Condition("connected graph", self.gap, self.gap < 1 - 1e-12),
        ]

    def minimizer(self) -> np.ndarray:
        """Return x_*."""
        return np.linalg.solve(self.gram.sum(axis=0), self.shift.sum(axis=0))

    def average(self, minimizer: np.ndarray) -> float:
        """Return E|xbar_0 - x_*|^2."""
        spread = float(np.sum((self.mean.mean(axis=0) - minimizer) ** 2))
        return spread + self.dim * self.sd**2 / self.agents

    def evaluated(
        self, k: np.ndarray, limit: float, decay: float, rate: float, apart: float, per_step: float
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Return a bound at k as printed and as rederived, and its limit, from that and the start.

        ``decay`` and ``rate`` are those of the average's distances to diffusion and posterior,
        ``apart`` the factor of the agents' distance to it, and ``per_step`` that of E|E_k|^2 in
        the recursion of Lemma 7, or 15.
        """
        agents, dim, gap = self.agents, self.dim, self.gap
        average = self.average(self.minimizer())
        shared = (
            limit
            + decay**k * (np.sqrt(average) + np.sqrt(2 * dim / (self.mu * agents)))
            + apart * gap ** (k / 2) * np.sqrt(self.start / agents)
        )
        transient = np.sqrt(geometric_sum(gap, rate, k) * self.start / agents) * 2 * self.smooth
        ends = shared + transient * np.sqrt(gap), shared + transient * np.sqrt(per_step)
        return *ends, float(limit)


def _nothing(constants: dict[str, float], conditions: list[Condition], k: np.ndarray) -> Bound:
    bound = np.full(k.shape, np.inf)
    return Bound(constants, conditions, bound, bound.copy(), float("inf"))


def theorem2(
    setting: Setting, step_size: float, iterations: np.ndarray, sigma: float = 0.0
) -> Bound:
    """Return the bound of Theorem 2 for DE-SGLD on quadratic f_i (gurbuzbalaban2021).

    With r = 1 - eta mu (1 - eta L/2), the bound of (1/N) sum_i W2(law of x_i^(k), posterior) is
    the sum of the discretized diffusion's distance (Lemma 8), the average's distance to that
    diffusion (Lemma 7) and the agents' distance to their average (Lemma 5)::

        (1 - mu eta)^k (sqrt(E|xbar_0 - x_*|^2) + sqrt(2 d/(mu N))) + 1.65 (L/mu) sqrt(eta d/N)
        + sqrt(eta (eta/(mu (1 - eta L/2)) + (1 + eta L)^2/(mu (1 - eta L/2))^2))
          sqrt(4 L^2 D^2 eta/(N (1 - g)^2) + 4 L^2 sigma^2 eta/(1 - g^2) + 8 L^2 d/(1 - g^2))
        + sqrt(eta) sigma/sqrt(mu (1 - eta L/2) N)
        + sqrt((g^k - r^k)/(g - r)) 2 L sqrt(g/N) sqrt(E|x_0|^2)
        + 2 g^(k/2) sqrt(E|x_0|^2/N) + 2 D eta/(sqrt(N) (1 - g)) + 2 sigma eta/sqrt(1 - g^2)
        + 2 sqrt(2 d eta)/sqrt(1 - g^2)

    where g = gamma_bar, the second largest modulus of W's eigenvalues (3.9), and D, C_1 and Cbar_1
    are (3.13)-(3.15). The power of r is Lemma 7's; Theorem 2 itself prints r. ``step_size`` is eta,
    ``iterations`` the k to evaluate at, ``sigma`` the bound of the gradient error, E|xi_i|^2 <=
    sigma^2 (3.2), 0 for full gradients.
    """
    gram, shift, initial_sd = setting.gram, setting.shift, setting.sd
    agents, dim, mu, smooth = setting.agents, setting.dim, setting.mu, setting.smooth
    lambda_n, gap, start = setting.lambda_n, setting.gap, setting.start
    eta, k = step_size, np.asarray(iterations, dtype=float)
    contraction = mu * eta * (1 + lambda_n - eta * smooth)
    decay = eta * mu * (1 - eta * smooth / 2)
    conditions = [
        *setting.conditions(),
        Condition("step size", eta, eta < _ratio(1, mu + smooth)),
        Condition("contraction", contraction, 0 < contraction < 1),
        Condition("decay", decay, decay <= 1),
    ]
    constants = {
        "N": float(agents),
        "d": float(dim),
        "eta": eta,
        "mu": mu,
        "L": smooth,
        "sigma": sigma,
        "lambda_2": setting.lambda_2,
        "lambda_N": lambda_n,
        "gamma_bar": gap,
        "E|x0|^2": start,
        "rate": 1 - mu * eta,
    }
    if not all(condition.holds for condition in conditions):
        return _nothing(constants, conditions, k)

    minimizer = setting.minimizer()
    gradient = float(np.sum((gram @ minimizer - shift) ** 2))
    # f_i(0) - f_i^* of a quadratic; constants of f_i drop out.
    heights = 0.5 * np.sum(shift * np.linalg.solve(gram, shift[..., None])[..., 0], axis=-1)
    c1_bar = float(np.sqrt(2 * smooth * heights.sum()))
    c1 = c1_bar * (1 + 2 * (smooth + mu) / mu)
    spread = float(np.sum((setting.mean - minimizer) ** 2)) + agents * dim * initial_sd**2
    average = setting.average(minimizer)
    d_square = (
        8 * smooth**2 * spread
        + 12 * smooth**2 * c1**2 * eta**2 * agents / (1 - gap) ** 2
        + 4
        * smooth**2
        * (eta * sigma**2 * agents + 2 * dim * agents)
        / (mu * (1 + lambda_n - eta * smooth))
        + 2 * gradient
    )
    d_root = float(np.sqrt(d_square))
    rate = 1 - decay
    drift = mu * (1 - eta * smooth / 2)
    # Lemma 7's factor of E|E_k|^2 in the recursion, for the rederived transient.
    per_step = eta * (eta + (1 + eta * smooth) ** 2 / drift)
    constants |= {
        "C1_bar": c1_bar,
        "C1": c1,
        "D": d_root,
        "|grad F(x*)|": float(np.sqrt(gradient)),
        "E|x0 - x*|^2": spread,
        "E|xbar0 - x_*|^2": average,
        "r": rate,
        "lemma7_factor": per_step,
    }

    limit = (
        1.65 * smooth / mu * np.sqrt(eta * dim / agents)
        + np.sqrt(eta * (eta / drift + (1 + eta * smooth) ** 2 / drift**2))
        * np.sqrt(
            4 * smooth**2 * d_square * eta / (agents * (1 - gap) ** 2)
            + 4 * smooth**2 * sigma**2 * eta / (1 - gap**2)
            + 8 * smooth**2 * dim / (1 - gap**2)
        )
        + np.sqrt(eta) * sigma / np.sqrt(drift * agents)
        + 2 * d_root * eta / (np.sqrt(agents) * (1 - gap))
        + 2 * sigma * eta / np.sqrt(1 - gap**2)
        + 2 * np.sqrt(2 * dim * eta) / np.sqrt(1 - gap**2)
    )
    told = setting.evaluated(k, limit, 1 - mu * eta, rate, 2.0, per_step)
    return Bound(constants, conditions, *told)


def lemma12(eta: float, gamma: float, mu: float, smooth: float, lambda_n: float) -> list[Condition]:
    """Return the conditions under which DE-SGHMC's second moments stay bounded.

    Lemma 12 of gurbuzbalaban2021: (4.9), eta^2 <= (1 + lambda_N)/(2 (L + mu)); beta = 1 - gamma eta
    in [0, 1); and (4.10), beta <= (1 + lambda_N - 4 eta^2 mu)/4 and beta <= eta^3 sqrt(c_1 mu^3
    (1 + lambda_N)/64) with c_1 of (4.11), which itself depends on beta. They are sufficient, not
    necessary. eta and gamma are step size and friction, mu and L (``smooth``) strong convexity and
    smoothness of the f_i, lambda_N is the smallest eigenvalue of W.
    """
    square = eta**2
    beta = 1 - gamma * eta
    largest = _ratio(1 + lambda_n, 2 * (smooth + mu))
    first = (1 + lambda_n - 4 * square * mu) / 4
    ratio = _ratio(square * mu, 1 - lambda_n + square * smooth)
    c1 = 0.5 * _ratio(square * mu, (1 + beta) + (1 - beta) * ratio)
    inside = c1 * mu**3 * (1 + lambda_n) / 64
    second = eta**3 * np.sqrt(inside) if inside >= 0 else float("nan")
    return [
        Condition("(4.9)", square, 0 < square <= largest, largest),
        Condition("beta", beta, 0 <= beta < 1),
        Condition("(4.10), first bound", beta, beta <= first, first),
        Condition(
            "(4.10), second bound",
            beta,
            bool(beta <= second),
            float(second) if inside >= 0 else None,
        ),
    ]


def theorem10(
    setting: Setting,
    step_size: float,
    friction: float,
    moment: float,
    iterations: np.ndarray,
    sigma: float = 0.0,
) -> Bound:
    """Return the bound of Theorem 10 for DE-SGHMC on quadratic f_i (gurbuzbalaban2021).

    With a = eta^2, beta = 1 - gamma eta, h = mu (1 - a L/2), r = 1 - a h and g = gamma_bar, the
    bound of (1/N) sum_i W2(law of x_i^(k), posterior) is the sum of the distances of Lemmas 8, 15,
    16 and 13::

        (1 - mu a)^k (sqrt(E|xbar_0 - x_*|^2) + sqrt(2 d/(mu N))) + 1.65 (L/mu) sqrt(a d/N)
        + sqrt(2) sqrt(a/h + (1 + a L)^2/h^2)
          (sqrt(beta^2 c_5/(a N) + 2 L^2 c_5 a/(N (1 - g)^2))
           + sqrt((sqrt(1 - beta) - 1)^2/a d/N))
        + eta sigma/sqrt(h N) + sqrt((g^k - r^k)/(g - r)) 2 L sqrt(g/N) sqrt(E|x_0|^2)
        + sqrt(2) g^(k/2) sqrt(E|x_0|^2/N) + sqrt(2 c_5) eta/(sqrt(N) (1 - g))

    The last term is that of the proof, by Lemma 13; the theorem's has sqrt(2) c_5 in the print.
    ``step_size`` and ``friction`` are eta and gamma, ``moment`` is c_5, of which Lemma 12 says only
    that it bounds E|x^(k)|^2 and E|v^(k)|^2 for every k. The bound grows with c_5: if it holds for
    the smallest, it does for any. ``iterations`` and ``sigma`` are as for ``theorem2``.
    """
    agents, dim, mu, smooth = setting.agents, setting.dim, setting.mu, setting.smooth
    lambda_n, gap = setting.lambda_n, setting.gap
    eta, k = step_size, np.asarray(iterations, dtype=float)
    square, beta = eta**2, 1 - friction * eta
    drift = mu * (1 - square * smooth / 2)
    conditions = [
        *setting.conditions(),
        *lemma12(eta, friction, mu, smooth, lambda_n),
        Condition("Lemma 15, step size", square, square < _ratio(2, smooth)),
        Condition("Lemma 15, decay", square * drift, square * drift <= 1),
        Condition("step size", square, square <= _ratio(2 * agents, mu + smooth)),
    ]
    constants = {
        "mu": mu,
        "L": smooth,
        "1 - gamma eta": beta,
        "gamma_bar": gap,
        "c_5": moment,
        "rate": 1 - mu * square,
    }
    if not all(condition.holds for condition in conditions):
        return _nothing(constants, conditions, k)

    rate = 1 - square * drift
    steady = (
        1.65 * smooth / mu * np.sqrt(square * dim / agents)
        + np.sqrt(2 * (square / drift + (1 + square * smooth) ** 2 / drift**2))
        * (
            np.sqrt(
                beta**2 * moment / (square * agents)
                + 2 * smooth**2 * moment * square / (agents * (1 - gap) ** 2)
            )
            + abs(np.sqrt(1 - beta) - 1) / eta * np.sqrt(dim / agents)
        )
        + eta * sigma / np.sqrt(drift * agents)
        + np.sqrt(2 * moment) * eta / (np.sqrt(agents) * (1 - gap))
    )
    # The factor of 2 E|E_k|^2 in the recursion (B.48), for the rederived transient.
    per_step = square * (square + (1 + square * smooth) ** 2 / drift)
    told = setting.evaluated(k, steady, 1 - mu * square, rate, float(np.sqrt(2)), per_step)
    return Bound(constants, conditions, *told)


def _ratio(above: float, below: float) -> float:
    """Return a ratio, infinite where it has nothing below."""
    return above / below if below != 0 else float("inf")
