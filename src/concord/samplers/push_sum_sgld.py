r"""Push-sum SGLD: stochastic gradient Langevin dynamics on directed networks.

.. math::
    x_i^{(k+1)} &= \sum_j A_{ij} x_j^{(k)} - \eta_k \tilde\nabla f_i(z_i^{(k)})
                  + \sqrt{2 \eta_k}\, w_i^{(k+1)}, \qquad w_i \sim N(0, I) \\
    y_i^{(k+1)} &= \sum_j A_{ij} y_j^{(k)}, \qquad y_i^{(0)} = 1, \qquad
    z_i^{(k+1)} = x_i^{(k+1)} / y_i^{(k+1)}

A is column stochastic: an agent divides its x and y among those that hear it and itself, and needs
to know only how many these are. The sums of x and y over the agents are conserved by mixing, so y/N
tends to the weights with which A alone would average, and dividing by it takes them out. Agents'
samples are the z, which are the state's x; all of A's sums of rows being one, y stays 1 and this is
DE-SGLD. z, w and gradients have shape (chains, agents, dim), y (chains, agents).

Source: Kolesov and Kungurtsev, "Decentralized Langevin dynamics over a directed graph" (2021,
arXiv:2103.05444), whose pages were not at hand: in our form.
Price: a vector and a number to everybody that hears it, and a gradient of every agent per step.
Needs: a network on which a path leads from every agent to every other, or no edges at all; where
vectors may not arrive, senders that keep what does not.
"""

from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from concord.errors import ConcordError
from concord.needs import Needs
from concord.networks.network import Network
from concord.problem import CountedProblem, Problem
from concord.sampler import Sampler, langevin_noise
from concord.sampling.schedules import Schedule


class State(NamedTuple):
    """The agents' samples z as x, (chains, agents, dim), and weights y, (chains, agents)."""

    x: np.ndarray
    y: np.ndarray


class PushSumSGLD(Sampler[State]):
    """Push-sum SGLD with step size eta and column stochastic weights A."""

    name: ClassVar[str] = "Push-sum SGLD"
    needs: ClassVar[Needs] = Needs(
        "paths", local="divides all coordinates by weights, which only sums of shared ones need"
    )

    step_size: Annotated[Schedule, "step size eta_k"]

    def check(self, problem: Problem | None, network: Network) -> None:
        """Also refuse networks that do not conserve the sums of x and y over the agents."""
        super().check(problem, network)
        if network.is_lossless:
            return
        on_loss = network.conditions.on_loss
        if on_loss != "sender_keeps":
            raise ConcordError(
                f"network.on_loss: {on_loss} leaves weights that are not column "
                "stochastic, and push-sum's sums would not be conserved; use sender_keeps"
            )
        if network.conditions.changed_by:
            raise ConcordError(
                "network: push-sum divides by the weights it sends, which have to arrive as they "
                "are; remove compression, noise, privacy, byzantine and robust"
            )

    def init(self, x0: np.ndarray, problem: Problem, network: Network, rng: Generator) -> State:
        """Return the state at z = x0, (chains, agents, dim), and y = 1."""
        return State(x0, np.ones_like(x0[..., 0]))

    def step(
        self, state: State, k: int, problem: CountedProblem, network: Network, rng: Generator
    ) -> State:
        """Mix x = y z and y by A, take a Langevin step, and divide: z' = x' / y'.

        x' = A (y z) - eta grad f(z) + sqrt(2 eta) w and y' = A y.
        """
        z, y, eta = state.x, state.y[..., None], self.step_size(k)
        move = -eta * problem.gradient(z) + langevin_noise(rng, eta, z)
        mixed = network.mix("column_stochastic", np.concatenate([y * z, y], axis=-1))
        x, y = mixed[..., :-1] + move, mixed[..., -1:]
        return State(x / y, y[..., 0])
