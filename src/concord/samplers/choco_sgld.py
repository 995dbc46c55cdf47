r"""CHOCO-SGLD: DE-SGLD whose agents send compressed differences, which their neighbors add up.

.. math::
    \hat x_i^{(k+1)} &= \hat x_i^{(k)} + C(x_i^{(k)} - \hat x_i^{(k)}), \qquad
        \hat x_i^{(0)} = x_i^{(0)} \\
    x_i^{(k+1)} &= x_i^{(k)} + \varsigma \sum_j W_{ij} (\hat x_j^{(k+1)} - \hat x_i^{(k+1)})
        - \eta_k \tilde\nabla f_i(x_i^{(k)}) + \sqrt{2 \eta_k}\, w_i^{(k+1)},
        \qquad w_i \sim N(0, I)

Where agents of a network with compression average compressed positions, here they average what all
know of each other, and errors of the compression get small with the differences. W is doubly
stochastic, so that the network average moves as that of DE-SGLD, whatever C; without compression
and with varsigma = 1 it is DE-SGLD. A biased or coarse C needs a smaller varsigma. Arrays have
shape (chains, agents, dim).

Source: our form. The compressed gossip is that of Koloskova, Stich and Jaggi, "Decentralized
stochastic optimization and gossip algorithms with compressed communication" (2019,
arXiv:1902.00340), for optimization; it was not at hand.
Price: a compressed vector to every neighbor and a gradient (or mini-batch) of every agent per step.
Needs: a connected network, or no edges at all, on which everything arrives.
"""

from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from concord.needs import Needs
from concord.networks.compressions import Compression
from concord.networks.network import Network
from concord.networks.weights import Weights
from concord.options import PositiveShare
from concord.problem import CountedProblem, Problem
from concord.sampler import Sampler, langevin_noise
from concord.sampling.schedules import Schedule


class State(NamedTuple):
    """Positions x, and estimates of them that all neighbors share, both (chains, agents, dim)."""

    x: np.ndarray
    estimate: np.ndarray


class CHOCOSGLD(Sampler[State]):
    """CHOCO-SGLD with step size eta, compression C, weights W and consensus step varsigma."""

    name: ClassVar[str] = "CHOCO-SGLD"
    needs: ClassVar[Needs] = Needs(
        "mixing",
        peers=True,
        arrival="adds up differences, and what of one gets lost would stay so",
        local="compresses all coordinates together, also those that an agent keeps",
    )

    step_size: Annotated[Schedule, "step size eta_k"]
    compression: Annotated[Compression, "what agents send in place of a difference"]
    consensus_step: Annotated[PositiveShare, "varsigma, the share of an average taken"] = 1.0
    weights: Weights = "metropolis"

    def init(self, x0: np.ndarray, problem: Problem, network: Network, rng: Generator) -> State:
        """Return the state at x0, (chains, agents, dim), with estimates x0 at all neighbors."""
        return State(x0, x0)

    def step(
        self, state: State, k: int, problem: CountedProblem, network: Network, rng: Generator
    ) -> State:
        """Update the shared estimates, then move x by consensus and Langevin steps.

        With e the estimates: e' = e + C(x - e), x' = x + varsigma (W e' - e') - eta grad f(x) +
        sqrt(2 eta) w.
        """
        (x, estimate), eta = state, self.step_size(k)
        estimate = estimate + self.compression.compress(x - estimate, rng)
        gradient = problem.gradient(x)
        size = self.compression.size(x.shape[-1], x.itemsize)
        pull = network.mix(self.weights, estimate, size=size) - estimate
        noise = langevin_noise(rng, eta, x)
        return State(x + self.consensus_step * pull - eta * gradient + noise, estimate)
