r"""DG-LMC: Langevin steps of every agent within a Gibbs sampler, whose other block a server draws.

Every agent has a copy z_i of its own, tied to the common theta by a tolerance rho and a matrix A.
With :math:`G = (A^\top A)^{-1}`,

.. math::
    z_i &\leftarrow z_i - \gamma_k \Bigl( G \nabla f_i(z_i) + \frac{z_i - \theta}{\rho} \Bigr)
        + \sqrt{2 \gamma_k}\, A^{-1} w_i, \qquad w_i \sim N(0, I), \qquad \text{n times} \\
    \theta &\sim N \Bigl( \frac1N \sum_i z_i, \frac{\rho}{N} G \Bigr)

which samples :math:`\exp(-\sum_i (f_i(z_i) + \lVert A (z_i - \theta) \rVert^2 / 2 \rho))` but for
the error of the Langevin steps. Of theta this is the product of the agents' laws, each convolved
with N(0, rho G) (derived here): a bias that stays when the steps get small.

With ``particles: K`` theta is only proposed so (pseudo-marginal DG-LMC), and it stays while z has
moved unless :math:`\theta'` is accepted, with the odds

.. math::
    e^{\sum_i f_i(\theta) - f_i(\theta')} \frac{q(\theta', \theta)}{q(\theta, \theta')}, \quad
    q(s, t) = \frac1K \sum_{k=1}^K \exp \Bigl( -\sum_i
        \frac{\lVert A (t - z_i^{(k)}(s)) \rVert^2}{2 \rho} \Bigr)

where each :math:`z_i^{(k)}(s)` is a further Langevin step of z_i, tied to s.

Source: Plassier, Vono, Durmus and Moulines, "DG-LMC: a turn-key and scalable synchronous
distributed MCMC algorithm via Langevin Monte Carlo within Gibbs" (2021, arXiv:2106.06300), from its
authors' code, where steps, ties and tolerances may differ by agent; the print was not at hand.
Price: n gradients of every agent, and an average of all by the server, per step; with particles 2K
gradients and two potentials more, and as many messages again for the odds.
Needs: a server, or a single agent.
"""

from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from concord.conditionals import coupling_matrices
from concord.needs import Needs, require
from concord.networks.network import Network
from concord.options import Count, Positive, Some
from concord.problem import CountedProblem, Problem
from concord.sampler import FullGradientSampler, langevin_noise
from concord.sampling.schedules import Schedule


class State(NamedTuple):
    """Every agent's last value x of theta, and its own copy z, both (chains, agents, dim)."""

    x: np.ndarray
    z: np.ndarray


class DGLMC(FullGradientSampler[State]):
    """DG-LMC with step size gamma: n Langevin steps of every copy z_i, then a draw of theta."""

    name: ClassVar[str] = "DG-LMC"
    needs: ClassVar[Needs] = Needs(
        "server",
        local="has one position for all agents, in which none holds coordinates of its own",
    )
    biased: ClassVar[str] = "the product of the agents' laws, each wider by its tolerance"
    units: ClassVar[dict[str, int]] = {"step_size": 2, "tolerance": 2}

    step_size: Annotated[Schedule, "step size gamma_k of the agents"]
    tolerance: Annotated[Positive, "rho of the ties"]
    local_steps: Annotated[Count, "steps n of every agent between two draws of theta"] = 1
    coupling: Annotated[Some[Some[float]] | None, "rows of the ties' matrix A; none: I"] = None
    particles: Annotated[
        Count | None, "K of the odds by which theta is accepted; none: it always is"
    ] = None

    def check(self, problem: Problem | None, network: Network) -> None:
        """Also refuse a coupling that is no invertible matrix, and particles without potentials."""
        super().check(problem, network)
        if problem is not None:
            coupling_matrices(self.coupling, problem.dim)
        if self.particles:
            require(problem, "potential", "remove particles")

    def init(self, x0: np.ndarray, problem: Problem, network: Network, rng: Generator) -> State:
        """Return the state at x0, (chains, agents, dim), with copies z = x0."""
        if self.particles:
            x0 = np.repeat(x0[:, :1], network.agents, axis=1)  # one theta, which may stay
        return State(x0, x0)

    def step(
        self, state: State, k: int, problem: CountedProblem, network: Network, rng: Generator
    ) -> State:
        """Take n Langevin steps of the copies z, draw theta given them, and accept or reject it."""
        (x, z), gamma, agents = state, self.step_size(k), network.agents
        _, inverse, _ = coupling_matrices(self.coupling, problem.dim)
        for _ in range(self.local_steps):
            kick = np.dot(langevin_noise(rng, gamma, z), inverse)
            z = self._descend(z, x, gamma, problem) + kick
        w = rng.standard_normal(z[:, :1].shape, dtype=z.dtype.type)
        theta = network.average(z) + np.sqrt(self.tolerance / agents) * np.dot(w, inverse)
        theta = np.repeat(theta, agents, axis=1)
        if self.particles:
            network.average(z)  # as many messages again for the odds
            odds = self._log_odds(x, theta, z, gamma, problem, rng)
            accepted = np.log(rng.random(len(x))) < odds
            theta = np.where(accepted[:, None, None], theta, x)
            network.active = np.repeat(accepted[:, None], agents, axis=1)
        return State(theta, z)

    def _descend(
        self, z: np.ndarray, theta: np.ndarray, gamma: float, problem: CountedProblem
    ) -> np.ndarray:
        """Return z - gamma (G grad f(z) + (z - theta) / rho), (chains, agents, dim), like z."""
        G = coupling_matrices(self.coupling, problem.dim)[2]
        return z - gamma * (np.dot(problem.gradient(z), G) + (z - theta) / self.tolerance)

    def _log_odds(
        self,
        x: np.ndarray,
        theta: np.ndarray,
        z: np.ndarray,
        gamma: float,
        problem: CountedProblem,
        rng: Generator,
    ) -> np.ndarray:
        """Return the logarithm of the odds by which theta is accepted in place of x, (chains,).

        z: the copies, from which particles step with size gamma.
        """
        A, K = coupling_matrices(self.coupling, problem.dim)[0], self.particles or 0
        odds = (problem.potential(x) - problem.potential(theta)).sum(axis=1)
        problem.pay(2 * (K - 1))  # one of each particle, as in the released code; all are the same
        for sign, s, t in ((1, theta, x), (-1, x, theta)):
            w = np.sqrt(2 * gamma) * rng.standard_normal((K, *z.shape), dtype=z.dtype.type)
            apart = (np.dot(t - self._descend(z, s, gamma, problem), A) - w).reshape(K, len(z), -1)
            exponent = np.vecdot(apart, apart) / (2 * self.tolerance)
            odds = odds + sign * np.logaddexp.reduce(-exponent)
        return odds
