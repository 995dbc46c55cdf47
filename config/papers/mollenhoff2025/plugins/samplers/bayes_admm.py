r"""Federated ADMM on Gaussian laws: clients and a server agree on a law, not on a point.

A law N(m, S^{-1}) has the natural parameters :math:`\lambda = (S m, S)`. With
:math:`\ell_i(x) = \tfrac12 x^\top H_i x - b_i^\top x` the loss of agent i, :math:`\lambda_0` the
prior, :math:`\bar\lambda` the server's law and :math:`\eta_i = (v_i, V_i)` the dual variables, a
round is

.. math::
    S_i &= \bar S + (P(H_i) - V_i) / \rho, \qquad
        (H_i - V_i + \rho \bar S)\, m_i = b_i - v_i + \rho \bar S \bar m \\
    \eta_i &\leftarrow \eta_i + \gamma \rho\, (t(\lambda_i) - t(\bar\lambda)) \\
    \bar\lambda &\leftarrow (1 - \alpha) \frac1N \sum_i \lambda_i
        + \alpha \Bigl( \lambda_0 + \sum_i \eta_i \Bigr), \qquad \alpha = \frac{1}{1 + N \rho}

and the draw of agent i is :math:`x_i = m_i + S_i^{-1/2} w_i`, :math:`w_i \sim N(0, I)`. The first
line minimizes :math:`E_q[\ell_i(x) + v_i^\top x - \tfrac12 x^\top V_i x] + \rho KL(q \Vert
\bar q)` over a family of normal laws (``family``): all, with P(H) = H; with diagonal precisions,
P(H) = diag(H); with multiples of I, P(H) = tr(H) I / d. ``point`` has P(H) = 0 and no noise: S is
the prior's for ever, and this is the usual federated ADMM. ``dual``: t is the identity, or maps to
the expectation parameters :math:`(m, -\tfrac12 (S^{-1} + m m^\top))`, which is Bregman ADMM; the
released code leaves the factor -1/2 out (``second_moments``).

For the full family and gamma = 1, :math:`\eta_i = (b_i, H_i)` after one round. From the prior and
with rho = 1/N the server then has the posterior; else its distance from it shrinks by 1 - alpha in
every later round (derived here).

Source: mollenhoff2025's released code, for quadratic losses.
Price: no gradients, an exact solution counts as one; up and down m and the free entries of S, for
Bregman ADMM twice.
Needs: a server, or a single agent; quadratic potentials whose prior is N(0, . I).
"""

from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np

from concord.errors import ConcordError
from concord.needs import Needs
from concord.networks.network import Network
from concord.options import Count, Positive
from concord.problem import Quadratic
from concord.sampler import Sampler


class State(NamedTuple):
    """Draws x, (chains, agents, dim), and what they are drawn from, the same of all chains.

    mean, precision: m_i and S_i, (agents, dim) and (agents, dim, dim). center, tightness: of the
    server, (dim,) and (dim, dim). v, V: dual variables, (agents, dim) and (agents, dim, dim).
    """

    x: np.ndarray
    mean: np.ndarray
    precision: np.ndarray
    center: np.ndarray
    tightness: np.ndarray
    v: np.ndarray
    V: np.ndarray


class BayesADMM(Sampler):
    """Federated ADMM over a family of normal laws, with penalty rho and damping gamma."""

    name: ClassVar[str] = "BayesADMM"
    needs: ClassVar[Needs] = Needs("server", arrival="needs every agent's law")
    takes_batches: ClassVar[bool] = False
    biased: ClassVar[str] = (
        "the nearest law of a smaller family, and other laws in the first rounds"
    )

    family: Annotated[
        Literal["full", "diagonal", "isotropic", "point"],
        "precisions of the laws: any, diagonal, multiples of I, or none (federated ADMM)",
    ] = "full"
    penalty: Annotated[Positive | None, "penalty rho; none: 1/N"] = None
    damping: Annotated[Positive, "factor gamma of the dual step"] = 1.0
    start: Annotated[Positive | None, "precision at which all start; none: the prior's"] = None
    dual: Annotated[
        Literal["natural", "expectation", "second_moments"],
        "coordinates t of the dual step: natural, or those of Bregman ADMM, also as released",
    ] = "natural"
    solver_steps: Annotated[
        Count | None, "steps of the code's iterative solver, of size 1/(1 + t/10); none: exact"
    ] = None

    def check(self, problem: Any, network: Network) -> None:
        """Refuse problems that are no regressions with a prior, and mixtures of variants, too."""
        super().check(problem, network)
        if problem is not None and not (
            isinstance(problem, Quadratic) and hasattr(problem, "prior_precision")
        ):
            raise ConcordError(
                f"sampler bayes_admm needs quadratic potentials with a prior, and "
                f"{type(problem).__name__} has none; choose linear regression"
            )
        if self.family != "full" and (self.dual, self.solver_steps) != ("natural", None):
            raise ConcordError(
                f"family: {self.family} has natural duals and exact solutions; use family: full"
            )

    def init(
        self, x0: np.ndarray, problem: Any, network: Network, rng: np.random.Generator
    ) -> State:
        """Return the state in which all laws are N(0, I / start), and nothing is dual yet."""
        agents, dim = problem.shift.shape
        start = self.start or agents * float(problem.prior_precision)
        tightness = start * np.eye(dim)
        means, square = np.zeros((agents, dim)), np.zeros((agents, dim, dim))
        return State(x0, means, square + tightness, np.zeros(dim), tightness, means.copy(), square)

    def step(
        self, state: State, k: int, problem: Any, network: Network, rng: np.random.Generator
    ) -> State:
        """Solve the agents' problems, take the dual and the server's step, and draw."""
        _, _, _, center, tightness, v, V = state
        agents, dim = v.shape
        rho = self.penalty or 1 / agents
        alpha = 1 / (1 + agents * rho)
        prior = agents * float(problem.prior_precision) * np.eye(dim)
        H = problem.gram - prior / agents
        mean, precision = self._solve(H, problem.shift, rho, state)
        problem.pay(1)
        pull = _multiply(precision, mean)
        laws = np.concatenate([pull, precision.reshape(agents, -1)], axis=1)
        coordinates = laws, np.concatenate([tightness @ center, tightness.ravel()])
        if self.dual != "natural":
            factor = -0.5 if self.dual == "expectation" else 1.0
            coordinates = (
                _expectation_parameters(mean, precision, factor),
                _expectation_parameters(center, tightness, factor),
            )
        change = self.damping * rho * (coordinates[0] - coordinates[1])
        if self.family == "point":
            change[:, dim:] = 0.0
        duals = np.concatenate([v, V.reshape(agents, -1)], axis=1) + change
        average = network.average(laws[None], size=self.vector_size(dim, 8))[0, 0]
        if self.dual != "natural":  # as many numbers again, for the sum of the dual steps
            network.average(coordinates[0][None], size=self.vector_size(dim, 8))
        first = np.concatenate([np.zeros(dim), prior.ravel()])
        server = (1 - alpha) * average + alpha * (first + duals.sum(axis=0))
        tightness = server[dim:].reshape(dim, dim)
        return State(
            self._draw(mean, precision, state.x, rng),
            mean,
            precision,
            np.linalg.solve(tightness, server[:dim]),
            tightness,
            duals[:, :dim],
            duals[:, dim:].reshape(agents, dim, dim),
        )

    def _solve(
        self, H: np.ndarray, b: np.ndarray, rho: float, state: State
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the means and precisions of the agents' laws, for losses x^T H x / 2 - b^T x."""
        center, tightness, v, V = state[3:]
        if self.solver_steps is None:
            mean_curvature = np.trace(H, axis1=1, axis2=2) / H.shape[1]
            projected = {
                "full": H,
                "diagonal": H * np.eye(H.shape[1]),
                "isotropic": mean_curvature[:, None, None] * np.eye(H.shape[1]),
                "point": np.zeros_like(H),
            }[self.family]
            linear = b - v + rho * tightness @ center
            mean = np.linalg.solve(H - V + rho * tightness, linear[..., None])[..., 0]
            return mean, tightness + (projected - V) / rho
        mean, precision = np.tile(center, (len(b), 1)), np.tile(tightness, (len(b), 1, 1))
        for t in range(self.solver_steps):
            size = 1 / (1 + t / 10)
            precision = (1 - size * rho) * precision + size * (H - V + rho * tightness)
            slope = _multiply(H - V, mean) - b + v + rho * (mean - center) @ tightness
            mean = mean - size * np.linalg.solve(precision, slope[..., None])[..., 0]
        return mean, precision

    def _draw(
        self, mean: np.ndarray, precision: np.ndarray, x: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Return draws of N(m_i, S_i^{-1}), of the shape of x, (chains, agents, dim)."""
        if self.family == "point":
            return np.broadcast_to(mean, x.shape).copy()
        try:
            roots = np.linalg.cholesky(precision).swapaxes(1, 2)
        except np.linalg.LinAlgError:  # a law that is none, as of Bregman ADMM with long steps
            return np.full_like(x, np.nan)
        w = rng.standard_normal(x.shape)
        noise = np.linalg.solve(roots, w.transpose(1, 2, 0))
        draws: np.ndarray = mean + noise.transpose(2, 0, 1)
        return draws

    def vector_size(self, dim: int, itemsize: int) -> float:
        """Return the bytes of a mean and the free entries of a precision."""
        entries = {"full": dim * (dim + 1) // 2, "diagonal": dim, "isotropic": 1, "point": 0}
        return float(itemsize * (dim + entries[self.family]))


def _multiply(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Return the products of matrices (agents, dim, dim) with vectors (agents, dim)."""
    return np.einsum("ade,ae->ad", matrices, vectors)


def _expectation_parameters(mean: np.ndarray, precision: np.ndarray, factor: float) -> np.ndarray:
    """Return m and a factor times S^{-1} + m m^T in one vector, (..., dim + dim^2)."""
    second = np.linalg.inv(precision) + mean[..., :, None] * mean[..., None, :]
    return np.concatenate([mean, factor * second.reshape(*mean.shape[:-1], -1)], axis=-1)
