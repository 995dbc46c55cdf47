r"""FSGLD: a server's Langevin steps along one agent's gradient, corrected by surrogates; and DSGLD.

Every step an agent s of the N is drawn, and moves theta n times by

.. math::
    \theta \leftarrow \theta - \gamma_k \Bigl( N \nabla f_s(\theta)
        + \sum_i \Lambda_i (\theta - m_i) - N \Lambda_s (\theta - m_s) \Bigr)
        + \sqrt{2 \gamma_k}\, w, \qquad w \sim N(0, I)

where N(m_i, Lambda_i^{-1}) is a surrogate of agent i's exp(-f_i), which all agents know. Over s the
drift is that of the posterior, whatever the surrogates (with n = 1); the better they are, the less
it varies: with those of quadratic potentials not at all. ``surrogates: laplace``, FSGLD, takes the
mode of f_i and its Hessian there; ``surrogates: none``, DSGLD, has Lambda_i = 0. Theta is the same
for all agents, and starts where agent 0 does; arrays have shape (chains, agents, dim). Gradients of
f_s may be of mini-batches.

Source: el Mekkaoui, Mesquita, Blomstedt and Kaski, "Federated stochastic gradient Langevin
dynamics" (UAI 2021), equation (5) with equal f_s and steps h = 2 gamma; DSGLD is Ahn, Shahbaba and
Welling, "Distributed stochastic gradient MCMC" (2014). Laplace's approximations are those of the
supplement, F.2; its other surrogates are fitted to draws of each agent, which nothing here does.
Price: n gradients (or mini-batches) of one agent, to whom theta is sent and who sends it back, per
step. What surrogates cost to find, once, is not counted.
Needs: a server, or a single agent; for surrogates ``minimize`` and Hessians of the potentials.
"""

from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.random import Generator

from concord.needs import Needs, check_positive_definite, require
from concord.networks.network import Network
from concord.options import Count
from concord.problem import CountedProblem, Problem
from concord.random import draw_choice
from concord.sampler import Sampler, langevin_noise
from concord.sampling.schedules import Schedule


class State(NamedTuple):
    """Theta, repeated for each agent as x, (chains, agents, dim), and the surrogates' drift.

    surrogate_matrix, surrogate_shift: A, (agents, dim, dim), and b, (agents, dim), of the
    surrogates' part of the drift, A_s theta - b_s where agent s is drawn; empty without surrogates.
    """

    x: np.ndarray
    surrogate_matrix: np.ndarray
    surrogate_shift: np.ndarray


class FSGLD(Sampler[State]):
    """FSGLD with step size gamma; without surrogates DSGLD."""

    name: ClassVar[str] = "FSGLD"
    needs: ClassVar[Needs] = Needs(
        "server",
        local="has one position for all agents, in which none holds coordinates of its own",
    )

    step_size: Annotated[Schedule, "step size gamma_k"]
    surrogates: Annotated[
        Literal["none", "laplace"],
        "normal approximations of exp(-f_i): none (DSGLD), or at the modes (FSGLD)",
    ] = "none"
    local_steps: Annotated[Count, "steps n that an agent takes before theta goes back"] = 1

    def check(self, problem: Problem | None, network: Network) -> None:
        """Also refuse surrogates of potentials whose modes and Hessians do not give them."""
        super().check(problem, network)
        if self.surrogates == "laplace":
            for method in ("minimize", "hessian_product"):
                require(problem, method, "use surrogates: none")
            if problem is not None:
                check_positive_definite(laplace_surrogates(problem)[0])

    def init(self, x0: np.ndarray, problem: Problem, network: Network, rng: Generator) -> State:
        """Return the state at x0, (chains, agents, dim), with the surrogates' drift precomputed."""
        if self.surrogates == "none":
            return State(x0, np.empty(0), np.empty(0))
        precisions, shifts = laplace_surrogates(problem)
        matrix = precisions.sum(axis=0) - network.agents * precisions
        return State(x0, matrix, shifts.sum(axis=0) - network.agents * shifts)

    def step(
        self, state: State, k: int, problem: CountedProblem, network: Network, rng: Generator
    ) -> State:
        """Draw agent s of each chain, move theta n times along its gradient, and send it to all."""
        gamma, agents, theta = self.step_size(k), network.agents, state.x[:, :1]
        drawn = draw_choice(rng, [1 / agents] * agents, len(theta))[:, None]
        network.count_sent(drawn, 2 if agents > 1 else 0)
        for _ in range(self.local_steps):
            drift = agents * problem.gradient_of(drawn, theta)
            if self.surrogates == "laplace":
                surrogate = theta @ state.surrogate_matrix[drawn[:, 0]]
                drift = drift + surrogate - state.surrogate_shift[drawn]
            theta = theta - gamma * drift + langevin_noise(rng, gamma, theta)
        return state._replace(x=np.repeat(theta, agents, axis=1))


def laplace_surrogates(problem: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return precisions and shifts of Laplace's approximations of exp(-f_i).

    They are Lambda_i, (agents, dim, dim), the Hessian of f_i at its mode m_i, and Lambda_i m_i,
    (agents, dim).
    """
    agents, dim = problem.agents, problem.dim
    zero = np.zeros((1, agents, dim))
    modes = problem.minimize(zero, np.zeros(agents), zero)[0]
    units = np.broadcast_to(np.eye(dim)[:, None], (dim, agents, dim))
    columns = problem.hessian_product(np.repeat(modes, dim, axis=0), units)
    precisions = columns.transpose(1, 2, 0)
    return precisions, np.einsum("aij,aj->ai", precisions, modes[0])
