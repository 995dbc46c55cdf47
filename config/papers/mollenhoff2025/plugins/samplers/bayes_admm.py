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
from concord.sampler import FullGradientSampler


class State(NamedTuple):
    """Draws x, (chains, agents, dim), and what they are drawn from, the same of all chains.

    mean, precision: m_i and S_i, (agents, dim) and (agents, dim, dim). center, tightness: of the
    server, (dim,) and (dim, dim). dual: v_i and V_i in one vector each, (agents, dim + dim^2).
    """

    x: np.ndarray
    mean: np.ndarray
    precision: np.ndarray
    center: np.ndarray
    tightness: np.ndarray
    dual: np.ndarray


class BayesADMM(FullGradientSampler[State]):
    """Federated ADMM over a family of normal laws, with penalty rho and damping gamma."""

    name: ClassVar[str] = "BayesADMM"
    needs: ClassVar[Needs] = Needs(
        "server",
        arrival="needs every agent's law",
        local="sends laws of all coordinates",
    )
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
        dual = _join(means, square)
        return State(x0, means, square + tightness, np.zeros(dim), tightness, dual)

    def step(
        self, state: State, k: int, problem: Any, network: Network, rng: np.random.Generator
    ) -> State:
        """Solve the agents' problems, take the dual and the server's step, and draw."""
        agents, dim = state.mean.shape
        rho = self.penalty or 1 / agents
        alpha = 1 / (1 + agents * rho)
        prior = agents * float(problem.prior_precision) * np.eye(dim)
        mean, precision = self._solve(problem.gram - prior / agents, problem.shift, rho, state)
        problem.pay(1)
        coordinates = self._coordinates(mean, precision)
        change = coordinates - self._coordinates(state.center, state.tightness)
        if self.family == "point":
            change[:, dim:] = 0.0
        dual = state.dual + self.damping * rho * change
        natural, size = _natural(mean, precision), self._law_bytes(dim)
        average = network.average(natural[None], size=size)[0, 0]
        if self.dual != "natural":  # as many numbers again, for the sum of the dual steps
            network.average(coordinates[None], size=size)
        first = _join(np.zeros(dim), prior)
        server = (1 - alpha) * average + alpha * (first + dual.sum(axis=0))
        tightness = server[dim:].reshape(dim, dim)
        center = np.linalg.solve(tightness, server[:dim])
        draws = self._draw(mean, precision, state.x, rng)
        return State(draws, mean, precision, center, tightness, dual)

    def _coordinates(self, mean: np.ndarray, precision: np.ndarray) -> np.ndarray:
        """Return the coordinates t of laws in the dual step, (..., dim + dim^2)."""
        if self.dual == "natural":
            return _natural(mean, precision)
        second = np.linalg.inv(precision) + mean[..., :, None] * mean[..., None, :]
        return _join(mean, second * (-0.5 if self.dual == "expectation" else 1.0))

    def _solve(
        self, H: np.ndarray, b: np.ndarray, rho: float, state: State
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the means and precisions of the agents' laws, for losses x^T H x / 2 - b^T x."""
        center, tightness, identity = state.center, state.tightness, np.eye(b.shape[1])
        v, V = state.dual[:, : b.shape[1]], state.dual[:, b.shape[1] :].reshape(H.shape)
        if self.solver_steps is None:
            mean_curvature = np.trace(H, axis1=1, axis2=2) / len(identity)
            projected = {
                "full": H,
                "diagonal": H * identity,
                "isotropic": mean_curvature[:, None, None] * identity,
                "point": np.zeros_like(H),
            }[self.family]
            linear = b - v + rho * tightness @ center
            mean = np.linalg.solve(H - V + rho * tightness, linear[..., None])[..., 0]
            return mean, tightness + (projected - V) / rho
        mean, precision = np.tile(center, (len(b), 1)), np.tile(tightness, (len(b), 1, 1))
        curvature = H - V
        target = curvature + rho * tightness
        for t in range(self.solver_steps):
            size = 1 / (1 + t / 10)
            precision = (1 - size * rho) * precision + size * target
            slope = _multiply(curvature, mean) - b + v + rho * (mean - center) @ tightness
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

    def _law_bytes(self, dim: int) -> float:
        """Return the bytes of a mean and the free entries of a precision."""
        entries = {"full": dim * (dim + 1) // 2, "diagonal": dim, "isotropic": 1, "point": 0}
        return float(8 * (dim + entries[self.family]))


def _multiply(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Return the products of matrices (..., dim, dim) with vectors (..., dim)."""
    return np.einsum("...de,...e->...d", matrices, vectors)


def _join(vectors: np.ndarray, matrices: np.ndarray) -> np.ndarray:
    """Return vectors (..., dim) and matrices (..., dim, dim) as (..., dim + dim^2)."""
    return np.concatenate([vectors, matrices.reshape(*vectors.shape[:-1], -1)], axis=-1)


def _natural(mean: np.ndarray, precision: np.ndarray) -> np.ndarray:
    """Return the natural parameters (S m, S) of laws in one vector, (..., dim + dim^2)."""
    return _join(_multiply(precision, mean), precision)
