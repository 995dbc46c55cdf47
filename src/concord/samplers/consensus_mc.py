r"""Consensus Monte Carlo: every agent samples by itself, and the draws are averaged in the end.

.. math::
    x_i^{(k+1)} &= x_i^{(k)} - \eta_k \nabla f_i(x_i^{(k)}) + \sqrt{2 \eta_k}\, w_i^{(k+1)},
        \qquad w_i \sim N(0, I) \\
    \theta^{(k)} &= \Bigl( \sum_i \Lambda_i \Bigr)^{-1} \sum_i \Lambda_i x_i^{(k)}, \qquad
        \Lambda_i^{-1} = \text{sample covariance of } x_i^{(1)}, \dots, x_i^{(k)}

Of agent i this is Langevin for exp(-f_i), the likelihood of its data times the prior to the power
1/N. Where the f_i are quadratic and the draws exact (without ``step_size``), theta is exact but for
the error of the covariances, of order 1/k; elsewhere the average of draws is an approximation.
``combine: gaussian`` draws theta from the product of the Gaussians with the agents' sample moments
m_i and Lambda_i^{-1}, :math:`N((\sum_i \Lambda_i)^{-1} \sum_i \Lambda_i m_i, (\sum_i
\Lambda_i)^{-1})`.

Theta, the same for all agents, is what a network that stops at iteration k would answer, and the
plain average before there are more draws than dimensions; the x_i are not recorded. Arrays have
shape (chains, agents, dim).

Source: Scott, Blocker, Bonassi, Chipman, George and McCulloch, "Bayes and big data: the consensus
Monte Carlo algorithm" (2016); the product of Gaussians is the parametric estimator of Neiswanger,
Wang and Xing, "Asymptotically exact, embarrassingly parallel MCMC" (2013, arXiv:1311.4780). Both
were not at hand; that covariances are those of the draws so far is our form.
Price: a gradient of every agent per step (an exact draw counts as one), and a vector of every
agent: draws are sent once, in the end, the Lambda_i with them and not counted.
Needs: a server, or a single agent; potentials that are densities by themselves.
"""

from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.random import Generator

from concord import conditionals
from concord.needs import LANGEVIN, Needs, check_positive_definite, require
from concord.networks.network import Network
from concord.options import Index
from concord.problem import CountedProblem, Problem, Quadratic
from concord.sampler import FullGradientSampler, langevin_noise
from concord.sampling.schedules import Schedule


class State(NamedTuple):
    """Draws x, their running mean, (chains, agents, dim), and what theta is computed from.

    squares, draws: sums of squared deviations from the mean, (chains, agents, dim, dim), and number
    of the draws in the moments, (1,). z: noise of theta with ``combine: gaussian``, (chains, dim).
    covariance, root: that of exact draws, and its square root, (agents, dim, dim). What is not
    needed is empty.
    """

    x: np.ndarray
    mean: np.ndarray
    squares: np.ndarray
    draws: np.ndarray
    z: np.ndarray
    covariance: np.ndarray
    root: np.ndarray


class ConsensusMC(FullGradientSampler[State]):
    """Consensus Monte Carlo with step size eta; without one agents draw exp(-f_i) exactly."""

    name: ClassVar[str] = "Consensus Monte Carlo"
    needs: ClassVar[Needs] = Needs(
        "server",
        local="has one position for all agents, in which none holds coordinates of its own",
    )

    step_size: Annotated[
        Schedule | None,
        "step size eta_k of the agents; none: they draw exp(-f_i) exactly, if it is Gaussian",
    ] = None
    combine: Annotated[
        Literal["draws", "gaussian"],
        "average the agents' draws by their inverse covariances, or draw from the product of "
        "Gaussians with their moments",
    ] = "draws"
    warm_up: Annotated[Index, "iterations that do not enter the moments"] = 0

    def check(self, problem: Problem | None, network: Network) -> None:
        """Also refuse agents whose exp(-f_i) is no density, or that cannot draw from it."""
        super().check(problem, network)
        if self.step_size is None:
            require(problem, "gram", LANGEVIN)
        if problem is not None and isinstance(problem, Quadratic):
            check_positive_definite(problem.gram)

    def init(
        self, x0: np.ndarray, problem: CountedProblem, network: Network, rng: Generator
    ) -> State:
        """Return the state at x0, (chains, agents, dim), with moments of no draws yet."""
        chains, agents, dim = x0.shape
        z = np.zeros((chains, dim) if self.combine == "gaussian" else 0)
        squares = np.zeros((chains, agents, dim, dim))
        laws = np.empty(0), np.empty(0)
        if self.step_size is None:
            laws = conditionals.invert_precisions(problem.gram)
        return State(x0, np.zeros_like(x0), squares, np.zeros(1), z, *laws)

    def step(
        self, state: State, k: int, problem: CountedProblem, network: Network, rng: Generator
    ) -> State:
        """Draw x_i of every agent, and add it to the agent's moments after the warm-up."""
        x, mean, squares, draws, z, covariance, root = state
        if self.step_size is None:
            problem.pay(1)
            center = conditionals.multiply_each(covariance, problem.shift[None])
            x = center + conditionals.multiply_each(root, rng.standard_normal(x.shape))
        else:
            eta = self.step_size(k)
            x = x - eta * problem.gradient(x) + langevin_noise(rng, eta, x)
        network.count_sent(np.arange(network.agents), 1 if network.agents > 1 else 0)
        if k >= self.warm_up:
            mean, squares, draws = conditionals.add_draws(x, mean, squares, draws)
        if self.combine == "gaussian":
            z = rng.standard_normal(z.shape)
        return State(x, mean, squares, draws, z, covariance, root)

    def read_out(self, state: State) -> np.ndarray:
        """Return theta for every agent, (chains, agents, dim); nan in chains that have diverged."""
        x, mean, squares, draws, z = state[:5]
        theta = x.mean(axis=1)
        if draws[0] > x.shape[2]:
            centers, noise = (x, None) if self.combine == "draws" else (mean, z)
            theta = conditionals.combine_gaussians(centers, squares / (draws[0] - 1), noise)
        return np.broadcast_to(theta[:, None], x.shape)
