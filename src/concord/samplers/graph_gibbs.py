r"""Graph Gibbs: every agent draws from its law given its neighbors, color by color.

The agents' copies are tied to those of their neighbors by a tolerance rho,

.. math::
    \pi(x_1, \dots, x_N) \propto \exp \Bigl( -\sum_i f_i(x_i)
        - \frac{1}{2 \rho} \sum_{\{i, j\} \in E} \lVert x_i - x_j \rVert^2 \Bigr),

and each is drawn given the others. Where :math:`f_i(x) = x^\top H_i x / 2 - b_i^\top x`, with
deg_i neighbors,

.. math::
    x_i \mid x_{-i} \sim N \Bigl( S_i \bigl( b_i + \tfrac{1}{\rho} \sum_{j \in N_i} x_j \bigr),
        S_i \Bigr), \qquad S_i = \bigl( H_i + \tfrac{\deg_i}{\rho} I \bigr)^{-1};

with a ``step_size`` gamma, and on problems that are not quadratic, a Langevin step in its place,

.. math::
    x_i \leftarrow x_i - \gamma_k \Bigl( \nabla f_i(x_i)
        + \tfrac{1}{\rho} \sum_{j \in N_i} (x_i - x_j) \Bigr) + \sqrt{2 \gamma_k}\, w_i.

Agents of one color are no neighbors and move at once, colors take turns. Draws have pi as their law
in the limit, whose precision is blockdiag(H_i) + L/rho with L the Laplacian; as rho falls all x_i
become one, with the posterior's law, but the smaller rho, the smaller are the moves. Arrays have
shape (chains, agents, dim).

Source: the graph-coupled target as in "Client-only distributed Markov chain Monte Carlo sampling
over a network" (Transactions on Machine Learning Research, 2025) and Yuan et al. (2023,
arXiv:2306.13801); neither was at hand, colors and equations are our form.
Price: a draw from a Gaussian (counts as one gradient) or a gradient of every agent, and a vector to
every neighbor, per step.
Needs: a connected network, or no edges at all, on which everything arrives.
"""

from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from concord.conditionals import invert_precisions, multiply_each
from concord.needs import LANGEVIN, Needs, require
from concord.networks.network import Network
from concord.options import Positive
from concord.problem import CountedProblem, Problem
from concord.sampler import FullGradientSampler, langevin_noise
from concord.sampling.schedules import Schedule


class State(NamedTuple):
    """Positions x, (chains, agents, dim), and constants of all steps, empty with a step size.

    covariance, root: S_i and its square root, (agents, dim, dim).
    """

    x: np.ndarray
    covariance: np.ndarray
    root: np.ndarray


class GraphGibbs(FullGradientSampler[State]):
    """Graph Gibbs with tolerance rho; with step size gamma Langevin steps replace exact draws."""

    name: ClassVar[str] = "Graph Gibbs"
    needs: ClassVar[Needs] = Needs(
        "connected",
        peers=True,
        arrival="draws an agent given all that its neighbors have",
        local="ties each coordinate to the neighbors'",
    )
    biased: ClassVar[str] = (
        "agents tied by a tolerance, which is the posterior's only where that is 0"
    )
    units: ClassVar[dict[str, int]] = {"step_size": 2, "tolerance": 2}

    tolerance: Annotated[Positive, "rho of every edge"]
    step_size: Annotated[
        Schedule | None,
        "step size gamma_k of a Langevin step; none: a draw, which quadratic problems have",
    ] = None

    def check(self, problem: Problem | None, network: Network) -> None:
        """Also refuse agents without a law to draw from, which quadratic potentials have."""
        super().check(problem, network)
        if self.step_size is None and problem is not None:
            require(problem, "gram", LANGEVIN)
            invert_precisions(self._precisions(problem, network))

    def _precisions(self, problem: Any, network: Network) -> np.ndarray:
        """Return the precisions H_i + (deg_i / rho) I given the neighbors, (agents, dim, dim)."""
        ties = network.degrees / self.tolerance
        return problem.gram + ties[:, None, None] * np.eye(problem.dim)

    def init(self, x0: np.ndarray, problem: Problem, network: Network, rng: Generator) -> State:
        """Return the state at x0, (chains, agents, dim), with covariances."""
        if self.step_size is not None:
            return State(x0, np.empty(0), np.empty(0))
        return State(x0, *invert_precisions(self._precisions(problem, network)))

    def step(
        self, state: State, k: int, problem: CountedProblem, network: Network, rng: Generator
    ) -> State:
        """Draw all agents, color by color, each given its neighbors' latest positions."""
        (x, covariance, root), ties = state, 1 / self.tolerance
        # Noise and gradients are those of all colors: an agent is where it was until its turn.
        if self.step_size is None:
            problem.pay(1)
            noise = multiply_each(root, rng.standard_normal(x.shape))
        else:
            gamma = self.step_size(k)
            move = -gamma * problem.gradient(x) + langevin_noise(rng, gamma, x)
        for color in network.graph.colors:
            if self.step_size is None:
                pull = ties * network.mix_known(network.graph.adjacency, x) + problem.shift
                new = multiply_each(covariance, pull) + noise
            else:
                new = x - gamma * ties * network.mix_known(network.graph.laplacian, x) + move
            x = np.where(color[:, None], new, x)
            network.announce(color)
        return state._replace(x=x)
