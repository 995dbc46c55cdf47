r"""DG-LMC: Langevin steps of every agent within a Gibbs sampler, whose other block a server draws.

Every agent has a copy z_i of its own, tied to the common theta by a tolerance rho and a matrix A.
With :math:`G = (A^\top A)^{-1}`,

.. math::
    z_i &\leftarrow z_i - \gamma_k \Bigl( G \nabla f_i(z_i) + \frac{z_i - \theta}{\rho} \Bigr)
        + \sqrt{2 \gamma_k}\, A^{-1} w_i, \qquad w_i \sim N(0, I), \qquad \text{n times} \\
    \theta &\sim N \Bigl( \frac1N \sum_i z_i, \frac{\rho}{N} G \Bigr)

which samples :math:`\exp(-\sum_i (f_i(z_i) + \lVert A (z_i - \theta) \rVert^2 / 2 \rho))` but for
the error of the Langevin steps, taken in the coordinates :math:`A z_i`. Of theta this is the
product of the agents' laws, each convolved with N(0, rho G): where f_i has the precision P_i,
theta's law has :math:`(P_i^{-1} + \rho G)^{-1}` (derived here). That bias stays when the steps get
small.

With ``particles: K`` theta is only proposed so (pseudo-marginal DG-LMC): :math:`\theta'` is
accepted, or else theta stays while z has moved, with the odds

.. math::
    e^{\sum_i f_i(\theta) - f_i(\theta')} \frac{q(\theta', \theta)}{q(\theta, \theta')}, \qquad
    q(s, t) = \frac1K \sum_{k=1}^K \exp \Bigl( -\sum_i
        \frac{\lVert A (t - z_i^{(k)}(s)) \rVert^2}{2 \rho} \Bigr)

where each :math:`z_i^{(k)}(s)` is one more Langevin step of z_i, tied to s. x_i is what agent i
last heard of theta, so after the first step all x_i are equal; arrays have shape (chains, agents,
dim).

Source: Plassier, Vono, Durmus and Moulines, "DG-LMC: a turn-key and scalable synchronous
distributed MCMC algorithm via Langevin Monte Carlo within Gibbs" (2021, arXiv:2106.06300), from its
authors' released code; the print was not at hand. There steps, ties and tolerances may differ by
agent.
Price: n gradients of every agent, and an average of all by the server, per step; with particles 2K
gradients and two potentials more, and as many messages again for the odds.
Needs: a server, or a single agent.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from concord.errors import ConcordError
from concord.needs import Needs, require
from concord.networks.network import Network
from concord.options import Count, Positive, Some
from concord.sampler import Sampler
from concord.sampling.schedules import Schedule

Rows = tuple[tuple[float, ...], ...]


class State(NamedTuple):
    """Every agent's last value x of theta, and its own copy z, both (chains, agents, dim)."""

    x: np.ndarray
    z: np.ndarray


class DGLMC(Sampler):
    """DG-LMC with step size gamma: n Langevin steps of every copy z_i, then a draw of theta."""

    name: ClassVar[str] = "DG-LMC"
    needs: ClassVar[Needs] = Needs("server")
    takes_batches: ClassVar[bool] = False
    biased: ClassVar[str] = "the product of the agents' laws, each wider by its tolerance"
    units: ClassVar[Mapping[str, int]] = {"step_size": 2, "tolerance": 2}

    step_size: Annotated[Schedule, "step size gamma_k of the agents"]
    tolerance: Annotated[Positive, "rho of the ties"]
    local_steps: Annotated[Count, "steps n of every agent between two draws of theta"] = 1
    coupling: Annotated[Some[Some[float]] | None, "rows of the ties' matrix A; none: I"] = None
    particles: Annotated[
        Count | None, "K of the odds by which theta is accepted; none: it always is"
    ] = None

    def check(self, problem: Any, network: Network) -> None:
        """Refuse a coupling that is no invertible matrix, too; particles need potentials."""
        super().check(problem, network)
        if problem is not None:
            coupling_matrices(self.coupling, problem.dim)
        if self.particles:
            require(problem, "potential", "remove particles")

    def init(self, x0: np.ndarray, problem: Any, network: Network, rng: Generator) -> State:
        """Return the state at x0, (chains, agents, dim), with copies z = x0."""
        if self.particles:
            x0 = np.repeat(x0[:, :1], network.agents, axis=1)  # one theta, which may stay
        return State(x0, x0)

    def step(self, state: State, k: int, problem: Any, network: Network, rng: Generator) -> State:
        """Take n Langevin steps of the copies z, draw theta given them, and accept or reject it."""
        (x, z), gamma, agents = state, self.step_size(k), network.agents
        _, inverse, _ = coupling_matrices(self.coupling, problem.dim)
        for _ in range(self.local_steps):
            w = rng.standard_normal(z.shape, dtype=z.dtype.type)
            z = self._descend(z, x, gamma, problem) + np.sqrt(2 * gamma) * _times(inverse, w)
        w = rng.standard_normal(z[:, :1].shape, dtype=z.dtype.type)
        theta = network.average(z) + np.sqrt(self.tolerance / agents) * _times(inverse, w)
        theta = np.repeat(theta, agents, axis=1)
        if self.particles:
            network.average(z)  # as many messages again for the odds
            odds = (problem.potential(x) - problem.potential(theta)).sum(axis=1)
            odds = odds + self._log_q(theta, x, z, gamma, problem, rng)
            odds = odds - self._log_q(x, theta, z, gamma, problem, rng)
            accepted = np.log(rng.random(len(x))) < odds
            theta = np.where(accepted[:, None, None], theta, x)
            network.active = np.repeat(accepted[:, None], agents, axis=1)
        return State(theta, z)

    def _descend(self, z: np.ndarray, theta: np.ndarray, gamma: float, problem: Any) -> np.ndarray:
        """Return the copies after a Langevin step from z without its noise, tied to theta."""
        G = coupling_matrices(self.coupling, problem.dim)[2]
        return z - gamma * (_times(G, problem.gradient(z)) + (z - theta) / self.tolerance)

    def _log_q(
        self, s: np.ndarray, t: np.ndarray, z: np.ndarray, gamma: float, problem: Any, rng: Any
    ) -> np.ndarray:
        """Estimate log(K q(s, t)) of each chain by K particles, (chains,).

        Each particle is charged a gradient, as in the released code, though all are the same.
        """
        particles, A = self.particles or 0, coupling_matrices(self.coupling, problem.dim)[0]
        center = self._descend(z, s, gamma, problem)
        problem.pay(particles - 1)
        w = rng.standard_normal((particles, *z.shape), dtype=z.dtype.type)
        apart = _times(A, t - center) - np.sqrt(2 * gamma) * w
        log_q: np.ndarray = np.logaddexp.reduce(-(apart**2).sum(axis=(2, 3)) / (2 * self.tolerance))
        return log_q


@lru_cache(maxsize=8)
def coupling_matrices(rows: Rows | None, dim: int) -> tuple[np.ndarray | None, ...]:
    """Return A of given rows, its inverse and G, (dim, dim) each. None for the identity.

    Raises a ConcordError if A is no invertible matrix of this size.
    """
    if rows is None:
        return None, None, None
    if {len(rows), *map(len, rows)} != {dim} or not np.linalg.det(rows):
        raise ConcordError(f"coupling: give the {dim} rows of an invertible matrix, {dim} numbers")
    inverse = np.linalg.inv(rows)
    return np.array(rows), inverse, inverse @ inverse.T


def _times(matrix: np.ndarray | None, v: np.ndarray) -> np.ndarray:
    """Return the products of a matrix, or of the identity for None, with vectors (..., dim)."""
    return v if matrix is None else v @ matrix.T
