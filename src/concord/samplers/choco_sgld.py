r"""CHOCO-SGLD: DE-SGLD whose agents send compressed differences, which their neighbors add up.

.. math::
    \hat x_i^{(k+1)} &= \hat x_i^{(k)} + C(x_i^{(k)} - \hat x_i^{(k)}), \qquad
        \hat x_i^{(0)} = x_i^{(0)} \\
    x_i^{(k+1)} &= x_i^{(k)} + \varsigma \sum_j W_{ij} (\hat x_j^{(k+1)} - \hat x_i^{(k+1)})
        - \eta_k \tilde\nabla f_i(x_i^{(k)}) + \sqrt{2 \eta_k}\, w_i^{(k+1)},
        \qquad w_i \sim N(0, I)

Where ``network: { compression: ... }`` has agents average compressed positions, here they average
what all know of each other, and errors of the compression get small with the differences. W is
doubly stochastic, so that the network average moves as that of DE-SGLD, whatever C; without
compression and with varsigma = 1 it is DE-SGLD. A biased or coarse C needs a smaller varsigma.

Source: our form. The compressed gossip is that of Koloskova, Stich and Jaggi, "Decentralized
stochastic optimization and gossip algorithms with compressed communication" (2019,
arXiv:1902.00340), for optimization; it was not at hand. Arrays have shape (chains, agents, dim).

Price: a compressed vector to every neighbor and a gradient (or mini-batch) of every agent per step.
Needs: a connected network, or no edges at all, on which everything arrives.
"""

from typing import Annotated, NamedTuple

import numpy as np
from msgspec import Meta

from concord.contracts import Info, Problem, Step
from concord.networks.channel import connect
from concord.networks.compressions import Compression
from concord.networks.topology import Topology
from concord.networks.weights import Weights, check_weights, weights_of
from concord.options import Options
from concord.samplers._checks import check_connected, check_neighbors, check_perfect
from concord.samplers._parts import gradients, to_all_neighbors
from concord.sampling.gradients import BatchSize
from concord.sampling.kick import kick
from concord.sampling.schedules import Schedule

NAME = "CHOCO-SGLD"


class Params(Options):
    """Options of CHOCO-SGLD."""

    step_size: Annotated[Schedule, "step size eta_k"]
    compression: Annotated[Compression, "what agents send in place of a difference"]
    consensus_step: Annotated[
        Annotated[float, Meta(gt=0, le=1)], "varsigma, the share of an average that agents take"
    ] = 1.0
    batch_size: BatchSize = None
    weights: Weights = "metropolis"


class State(NamedTuple):
    """Positions x, and what neighbors know of them, (chains, agents, dim)."""

    x: np.ndarray
    known: np.ndarray


def check(problem: Problem | None, topology: Topology, params: Params) -> None:
    """Refuse a network in parts, unless it is meant, and one on which differences get lost."""
    check_connected(topology)
    check_neighbors(topology, "choco_sgld")
    check_weights(topology, params.weights)
    check_perfect(
        topology,
        "choco_sgld adds up differences, and what of one gets lost or late would stay so",
    )


def init(
    problem: Problem, topology: Topology, params: Params, x0: np.ndarray, rng: np.random.Generator
) -> tuple[State, Step]:
    """Return the state at x0, which neighbors know, and the step."""
    gradient = gradients(problem, params, x0)
    channel = connect(topology, x0, size=size(params, x0.shape[2], x0.itemsize))
    mix = channel.mixer(weights_of(topology, params.weights))
    compress = params.compression.compressor(x0.shape, x0.dtype)
    info = to_all_neighbors(channel)
    apart, code, change, grad = (np.empty_like(x0) for _ in range(4))

    def step(state: State, k: int, rng: np.random.Generator) -> tuple[State, Info]:
        x, known = state
        np.subtract(x, known, out=apart)
        compress(apart, rng, code)
        np.add(known, code, out=known)
        gradient(x, rng, grad)
        mix(known, plus=None, out=change)
        np.subtract(change, known, out=change)
        np.multiply(change, params.consensus_step, out=change)
        kick(rng, params.step_size(k), grad, out=change, x=change)
        np.add(x, change, out=x)
        return State(x, known), info

    return State(x0.copy(), x0.copy()), channel.through(step)


def size(params: Params, dim: int, itemsize: int) -> float:
    """Return the bytes of a compressed difference."""
    return params.compression.size(dim, itemsize)
