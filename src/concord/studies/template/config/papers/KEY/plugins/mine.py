r"""DE-SGLD that averages last: every agent moves, then mixes what all have reached.

.. math::
    x_i^{(k+1)} = \sum_j W_{ij} \bigl(x_j^{(k)} - \eta_k \nabla f_j(x_j^{(k)})
                  + \sqrt{2 \eta_k}\, w_j^{(k+1)}\bigr), \qquad w_j \sim N(0, I)

Source: "adapt then combine" of decentralized optimization. x has shape (chains, agents, dim).

Price: a vector to every neighbor and a full gradient of every agent per step.
Needs: gradients, and a connected network.
"""

from typing import Annotated, NamedTuple

import numpy as np

from concord.contracts import Info
from concord.errors import ConcordError
from concord.laws.exact import Affine, Update, block_diagonal, compose, linear
from concord.networks.channel import connect
from concord.options import Options
from concord.sampling.schedules import Schedule


class Params(Options):
    """Options, with which a study may set them."""

    step_size: Annotated[Schedule, "step size eta_k"]


class State(NamedTuple):
    """What the next step needs: positions x, (chains, agents, dim)."""

    x: np.ndarray


def check(problem, topology, params):
    """Refuse a network in parts."""
    if not topology.connected:
        raise ConcordError(f"topology {topology.name!r} is not connected; add edges")


def init(problem, topology, params, x0, rng):
    """Return the state at x0 and the step; what a step needs is allocated here, once."""
    gradient = problem.gradient(len(x0))
    channel = connect(topology, x0)  # what agents send goes through it, and may get lost there
    mix = channel.mixer(topology.metropolis(), "simultaneous")
    info = Info(channel.unicasts, channel.broadcasts, channel.active)
    grad, moved, spare, nothing = (np.zeros_like(x0) for _ in range(4))

    def step(state, k, rng):
        nonlocal spare
        eta = params.step_size(k)
        gradient(state.x, grad)
        rng.standard_normal(out=moved)
        np.multiply(moved, np.sqrt(2 * eta), out=moved)
        np.multiply(grad, eta, out=grad)
        np.subtract(moved, grad, out=moved)
        np.add(moved, state.x, out=moved)
        x, spare = spare, state.x
        mix(moved, nothing, x)
        return State(x), info

    return State(x0.copy()), channel.through(step)


def affine(problem, topology, params):
    """Return the exact law's update on quadratic problems: move, then mix."""
    size = problem.agents * problem.dim
    identity, gram = np.eye(size), block_diagonal(problem.gram)
    weights = np.kron(topology.metropolis().dense(), np.eye(problem.dim))

    def at(k):
        eta = params.step_size(k)
        offset = eta * problem.shift.ravel()
        return compose(Affine(identity - eta * gram, offset, 2 * eta * identity), linear(weights))

    return Update(at)
