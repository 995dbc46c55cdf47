r"""DG-LMC: Langevin steps of every agent within a Gibbs sampler, whose other block a server draws.

Every agent has a copy z_i of its own, tied to the common theta by a tolerance rho_i:

.. math::
    z_i &\leftarrow z_i - \gamma_k \Bigl( \nabla f_i(z_i) + \frac{z_i - \theta}{\rho_i} \Bigr)
        + \sqrt{2 \gamma_k}\, w_i, \qquad w_i \sim N(0, I), \qquad \text{n times} \\
    \theta &\sim N \Bigl( \frac{\sum_i z_i / \rho_i}{\sum_i 1 / \rho_i},
        \frac{1}{\sum_i 1 / \rho_i} I \Bigr)

which samples :math:`\exp(-\sum_i (f_i(z_i) + \lVert z_i - \theta \rVert^2 / 2 \rho_i))` but for the
error of the Langevin steps. Of theta this is the product of the agents' laws, each convolved with
N(0, rho_i I): where f_i has the precision P_i, theta's law has :math:`(P_i^{-1} + \rho_i I)^{-1}`
(derived here). That bias stays when the steps get small.

With ``coupling`` the ties are :math:`\lVert A_i (z_i - \theta) \rVert^2 / 2 \rho_i`, and the steps
are taken in the coordinates :math:`A_i z_i`: with :math:`G_i = (A_i^\top A_i)^{-1}` for I,

.. math::
    z_i &\leftarrow z_i - \gamma_k \Bigl( G_i \nabla f_i(z_i) + \frac{z_i - \theta}{\rho_i} \Bigr)
        + \sqrt{2 \gamma_k}\, A_i^{-1} w_i \\
    \theta &\sim N \Bigl( Q^{-1} \sum_i \frac{G_i^{-1} z_i}{\rho_i}, Q^{-1} \Bigr), \qquad
        Q = \sum_i G_i^{-1} / \rho_i

and theta's law has :math:`(P_i^{-1} + \rho_i G_i)^{-1}`.

With ``particles: K`` theta is only proposed so (pseudo-marginal DG-LMC): :math:`\theta'` is
accepted, or else theta stays while z has moved, with the odds

.. math::
    e^{\sum_i f_i(\theta) - f_i(\theta')} \frac{q(\theta', \theta)}{q(\theta, \theta')}, \qquad
    q(s, t) = \frac1K \sum_{k=1}^K \exp \Bigl( -\sum_i
        \frac{\lVert A_i (t - z_i^{(k)}(s)) \rVert^2}{2 \rho_i} \Bigr)

where each :math:`z_i^{(k)}(s)` is one more Langevin step of z_i, tied to s. x_i is what agent i
last heard of theta, so after the first step all x_i are equal; arrays have shape (chains, agents,
dim).

Source: Plassier, Vono, Durmus and Moulines, "DG-LMC: a turn-key and scalable synchronous
distributed MCMC algorithm via Langevin Monte Carlo within Gibbs" (2021, arXiv:2106.06300), from its
authors' released code; the print was not at hand. There steps and their number may differ by agent.
Price: n gradients of every agent, and an average of all by the server, per step; with particles 2K
gradients and two potentials more, and as many messages again for the odds.
Needs: a server, or a single agent.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from concord.errors import ConcordError
from concord.networks.network import Network
from concord.options import Count, Positive, Some
from concord.sampler import Sampler
from concord.samplers.checks import check_server
from concord.sampling.schedules import Schedule

Matrix = tuple[tuple[float, ...], ...]


class State(NamedTuple):
    """Every agent's last value x of theta, and its own copy z, both (chains, agents, dim).

    tolerance: rho_i, (agents, 1). covariance: Q^{-1}, (dim, dim). noise: its square root.
    spread, metric, precision: A_i^{-1}, G_i and G_i^{-1}, all (agents, dim, dim). All but x and z
    are the same in all steps.
    """

    x: np.ndarray
    z: np.ndarray
    tolerance: np.ndarray
    covariance: np.ndarray
    noise: np.ndarray
    spread: np.ndarray
    metric: np.ndarray
    precision: np.ndarray


class DGLMC(Sampler):
    """DG-LMC with step size gamma: n Langevin steps of every copy z_i, then a draw of theta."""

    name: ClassVar[str] = "DG-LMC"
    takes_batches: ClassVar[bool] = False
    biased: ClassVar[str] = "the product of the agents' laws, each wider by its tolerance"
    units: ClassVar[Mapping[str, int]] = {"step_size": 2, "tolerance": 2}

    step_size: Annotated[Schedule, "step size gamma_k of the agents"]
    tolerance: Annotated[Positive | tuple[Positive, ...], "rho of all agents, or of each"]
    local_steps: Annotated[Count, "steps n of every agent between two draws of theta"] = 1
    coupling: Annotated[
        Some[Some[Some[float]]] | None,
        "matrices A_i of the ties, rows of one for all agents or of one for each; none: I",
    ] = None
    particles: Annotated[
        Count | None, "K of the odds by which theta is accepted; none: it always is"
    ] = None

    def check(self, problem: Any, network: Network) -> None:
        """Refuse a network without a server, and tolerances or matrices of another shape.

        With particles the problem must have potentials.
        """
        check_server(network, "dg_lmc")
        if isinstance(self.tolerance, tuple) and len(self.tolerance) != network.agents:
            raise ConcordError(
                f"tolerance: there are {len(self.tolerance)} for {network.agents} agents; give one "
                "for all, or one of each"
            )
        if problem is not None:
            self._roots(network.agents, problem.dim)
        if self.particles and problem is not None and not hasattr(problem, "potential"):
            raise ConcordError(
                f"particles: {type(problem).__name__} states no potentials, by which theta would "
                "be accepted; remove particles"
            )

    def _roots(self, agents: int, dim: int) -> np.ndarray:
        """Return the coupling matrices A_i of all agents, (agents, dim, dim).

        Raises a ConcordError if they have another shape or are not invertible.
        """
        given = (np.eye(dim).tolist(),) if self.coupling is None else self.coupling
        sizes = {(len(rows), *map(len, rows)) for rows in given}
        roots = np.array(given) if sizes == {(dim,) * (dim + 1)} else np.zeros((1, dim, dim))
        if len(given) not in (1, agents) or not np.linalg.det(roots).all():
            raise ConcordError(
                f"coupling: give one invertible matrix of {dim} rows of {dim} numbers, or one for "
                f"each of {agents} agents"
            )
        return np.broadcast_to(roots, (agents, dim, dim))

    def init(
        self, x0: np.ndarray, problem: Any, network: Network, rng: np.random.Generator
    ) -> State:
        """Return the state at x0, (chains, agents, dim), with copies z = x0."""
        root = self._roots(network.agents, problem.dim)
        tolerance = np.broadcast_to(np.asarray(self.tolerance, dtype=float), network.agents)
        precision = root.swapaxes(1, 2) @ root
        total = (precision / tolerance[:, None, None]).sum(axis=0)
        covariance = np.linalg.inv(total)
        # The noise of theta is Q^{-1} R w with R the Cholesky root of Q: w alone is drawn.
        noise = covariance @ np.linalg.cholesky(total)
        if self.particles:
            x0 = np.repeat(x0[:, :1], network.agents, axis=1)  # one theta, which may stay
        spread, metric = np.linalg.inv(root), np.linalg.inv(precision)
        return State(x0, x0, tolerance[:, None], covariance, noise, spread, metric, precision)

    def step(
        self, state: State, k: int, problem: Any, network: Network, rng: np.random.Generator
    ) -> State:
        """Take n Langevin steps of the copies z, draw theta given them, and accept or reject it.

        z_i <- z_i - gamma (G_i grad f_i(z_i) + (z_i - x_i) / rho_i) + sqrt(2 gamma) A_i^{-1} w_i, n
        times; theta ~ N(Q^{-1} sum_i G_i^{-1} z_i / rho_i, Q^{-1}). Without particles theta is
        always accepted.
        """
        gamma, (x, z) = self.step_size(k), state[:2]
        for _ in range(self.local_steps):
            w = rng.standard_normal(z.shape, dtype=z.dtype.type)
            z = self._descend(z, x, gamma, state, problem)
            z = z + np.sqrt(2 * gamma) * self._times(state.spread, w)
        theta = np.repeat(self._draw_theta(z, state, network, rng), network.agents, axis=1)
        if self.particles:
            network.average(z)  # as many messages again for the odds
            odds = (problem.potential(x) - problem.potential(theta)).sum(axis=1)
            odds = odds + self._log_q(theta, x, z, gamma, state, problem, rng)
            odds = odds - self._log_q(x, theta, z, gamma, state, problem, rng)
            accepted = np.log(rng.random(len(x))) < odds
            theta = np.where(accepted[:, None, None], theta, x)
            network.active = np.repeat(accepted[:, None], network.agents, axis=1)
        return state._replace(x=theta, z=z)

    def _times(self, matrices: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the products M_i v_i, (..., agents, dim); v where there is no coupling: M is I."""
        return v if self.coupling is None else np.einsum("ade,...ae->...ad", matrices, v)

    def _descend(
        self, z: np.ndarray, x: np.ndarray, gamma: float, state: State, problem: Any
    ) -> np.ndarray:
        """Return the copies after a Langevin step from z without its noise, tied to theta = x.

        z, x: (chains, agents, dim). gamma: the step size.
        """
        drift = self._times(state.metric, problem.gradient(z)) + (z - x) / state.tolerance
        return z - gamma * drift

    def _draw_theta(
        self, z: np.ndarray, state: State, network: Network, rng: np.random.Generator
    ) -> np.ndarray:
        """Draw theta given the copies z, as the server does, (chains, 1, dim)."""
        w = rng.standard_normal(z[:, :1].shape, dtype=z.dtype.type)
        average = network.average(self._times(state.precision, z) / state.tolerance)
        return network.agents * average @ state.covariance + w @ state.noise.T

    def _log_q(
        self,
        s: np.ndarray,
        t: np.ndarray,
        z: np.ndarray,
        gamma: float,
        state: State,
        problem: Any,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Estimate log(K q(s, t)) of each chain by K particles, (chains,).

        s, t: values of theta, (chains, agents, dim). z: the copies, each moved by one Langevin step
        tied to s. Each particle is charged a gradient, as in the released code, though all are the
        same.
        """
        particles = self.particles or 0
        center = self._descend(z, s, gamma, state, problem)
        problem.pay(particles - 1)
        w = rng.standard_normal((particles, *z.shape), dtype=z.dtype.type)
        apart = t - center - np.sqrt(2 * gamma) * self._times(state.spread, w)
        squares = apart * self._times(state.precision, apart) / (2 * state.tolerance)
        log_q: np.ndarray = np.logaddexp.reduce(-squares.sum(axis=(2, 3)))
        return log_q
