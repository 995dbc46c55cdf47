r"""SGD: stochastic gradient descent, which is C-ULA without noise.

.. math::
    w^{(k+1)} = w^{(k)} - \alpha_k \tilde\nabla U(w^{(k)})

Source: parayil2020, section 5.3, where C-ULA and D-ULA are compared with it. Arrays have shape
(chains, 1, dim).

Price: a gradient (or mini-batch) of all the data per step; no messages.
Needs: a single agent.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from concord.contracts import Info, Problem, Step
from concord.networks.channel import connect
from concord.networks.topology import Topology
from concord.options import Options
from concord.samplers._common import check_centralized, to_all_neighbors
from concord.sampling.gradients import BatchOrder, BatchSize, estimator
from concord.sampling.schedules import Schedule


class Params(Options):
    """Options of SGD."""

    step_size: Annotated[Schedule, "step size alpha_k"]
    batch_size: BatchSize = None
    batch_order: BatchOrder = "with_replacement"


class State(NamedTuple):
    """Positions x, (chains, 1, dim)."""

    x: np.ndarray


def check(problem: Problem | None, topology: Topology, params: Params) -> None:
    """Refuse a network: there is one agent, which holds all the data."""
    check_centralized(topology, "SGD")


def init(
    problem: Problem, topology: Topology, params: Params, x0: np.ndarray, rng: np.random.Generator
) -> tuple[State, Step]:
    """Return the state at x0 and the step."""
    gradient = estimator(problem, params.batch_size, x0.shape[0], params.batch_order)
    channel = connect(topology, x0)
    info = to_all_neighbors(channel)
    grad = np.empty_like(x0)

    def step(state: State, k: int, rng: np.random.Generator) -> tuple[State, Info]:
        x = state.x
        gradient(x, rng, grad)
        np.multiply(grad, params.step_size(k), out=grad)
        x -= grad
        return State(x), info

    return State(x0.copy()), channel.through(step)
