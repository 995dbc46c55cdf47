r"""DIGing-SGLD: every agent tracks the average of all gradients, and follows it.

.. math::
    x_i^{(k+1)} &= \sum_j W_{ij} x_j^{(k)} - \eta_k y_i^{(k)} + \sqrt{2 \eta_k}\, w_i^{(k+1)},
        \qquad w_i \sim N(0, I) \\
    y_i^{(k+1)} &= \sum_j W_{ij} y_j^{(k)} + \tilde\nabla f_i(x_i^{(k+1)})
                  - \tilde\nabla f_i(x_i^{(k)}), \qquad y_i^{(0)} = \tilde\nabla f_i(x_i^{(0)})

W is doubly stochastic, and may change from iteration to iteration; x, y, gradients and noise have
shape (chains, agents, dim). The state holds :math:`v = y - \tilde\nabla f(x)`, which starts at zero
and moves before the next gradient is taken: :math:`v_i^{(k+1)} = \sum_j W_{ij} y_j^{(k)} -
\tilde\nabla f_i(x_i^{(k)})`. A step conserves :math:`\sum_i v_i = 0`, by which the network average
makes a Langevin step on f, but for where the gradients are taken. If vectors get lost in one
direction alone, that sum is a random walk, which nothing calls back.

Source: Bajwa, Gürbüzbalaban, Kutbay, Zhu, Zulqarnain, "DIGing-SGLD: Decentralized and Scalable
Langevin Sampling over Time-Varying Networks", 2025, arXiv 2511.12836, in our form: its abstract was
read, its equations were not; without noise it is DIGing (Nedić, Olshevsky, Shi 2017).
Price: two vectors to every neighbor and a gradient (or mini-batch) of every agent per step. What
happens on the network happens to both of an agent's vectors.
Needs: a connected network, or no edges at all; with privacy any ``on_loss`` but ``reuse_last``,
which begins with the first tracked gradients, as they are.
"""

from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from concord.errors import ConcordError
from concord.needs import Needs
from concord.networks.network import Network
from concord.networks.weights import Weights
from concord.problem import CountedProblem, Problem
from concord.sampler import Sampler, langevin_noise, track_average
from concord.sampling.schedules import Schedule

TRACKED = 1  # the channel of the tracked gradients


class State(NamedTuple):
    """Positions x, and v = y - grad f(x) of tracked gradients y, both (chains, agents, dim)."""

    x: np.ndarray
    v: np.ndarray


class DIGingSGLD(Sampler[State]):
    """DIGing-SGLD with step size eta and mixing weights W."""

    name: ClassVar[str] = "DIGing-SGLD"
    needs: ClassVar[Needs] = Needs("mixing")

    step_size: Annotated[Schedule, "step size eta_k"]
    weights: Weights = "metropolis"

    def check(self, problem: Problem | None, network: Network) -> None:
        """Also refuse networks with privacy on which neighbors know the first gradients."""
        super().check(problem, network)
        if network.conditions.privacy and network.conditions.on_loss == "reuse_last":
            raise ConcordError(
                "network.on_loss: with reuse_last neighbors know the gradients that DIGing-SGLD "
                "begins with, which privacy does not hide; use keep_own_weight, or remove privacy"
            )

    def init(
        self, x0: np.ndarray, problem: CountedProblem, network: Network, rng: Generator
    ) -> State:
        """Return the state at x0, (chains, agents, dim), with v = 0.

        Opens a second channel for the tracked gradients; neighbors know the full ones at x0.
        """
        network.open_channel(problem.full_gradient(x0))
        return State(x0, np.zeros_like(x0))

    def step(
        self, state: State, k: int, problem: CountedProblem, network: Network, rng: Generator
    ) -> State:
        """Move x along the tracked gradients y = v + grad f(x), and mix y.

        x' = W x - eta y + sqrt(2 eta) w and v' = W y - grad f(x), so that y' = v' + grad f(x').
        """
        (x, v), eta = state, self.step_size(k)
        gradient = problem.gradient(x)
        move = -eta * (v + gradient) + langevin_noise(rng, eta, x)
        _, v = track_average(network, self.weights, gradient, v, TRACKED)
        return State(network.mix(self.weights, x, plus=move), v)
