r"""A sampler that no paper here has: Langevin steps along tracked gradients.

.. math::
    x' = W x - \eta y + \sqrt{2 \eta} w, \qquad y' = W y + \nabla f(x') - \nabla f(x)

from y = grad f(x^(0)). The sum of y less that of the gradients is conserved, so a spectral radius
of 1 says nothing of its stability, and y starts from the positions.
"""

from typing import NamedTuple

import numpy as np

from concord.contracts import Info
from concord.laws.exact import Affine, Start, Update, block_diagonal
from concord.options import Options
from concord.sampling.schedules import Schedule


class Params(Options):
    step_size: Schedule
    start: str = "gradient"


class State(NamedTuple):
    x: np.ndarray
    y: np.ndarray


def init(problem, graph, params, x0, rng):
    chains, agents, _ = x0.shape
    mixing, gradient = graph.metropolis().dense(), problem.gradient(chains)
    before = gradient(x0, np.empty_like(x0)).copy()  # y starts from the positions
    y0 = before.copy() if params.start == "gradient" else np.zeros_like(x0)
    info = Info(np.full(agents, 2), np.ones(agents, int))

    def step(state, k, rng):
        nonlocal before
        eta = params.step_size(k)
        noise = rng.standard_normal(state.x.shape)
        x = mixing @ state.x - eta * state.y + np.sqrt(2 * eta) * noise
        after = gradient(x, np.empty_like(x)).copy()
        y = mixing @ state.y + after - before
        before = after
        return State(x, y), info

    return State(x0.copy(), y0), step


def affine(problem, graph, params) -> Update:
    mixing = np.kron(graph.metropolis().dense(), np.eye(problem.dim))
    gram, identity = block_diagonal(problem.gram), np.eye(problem.agents * problem.dim)

    def at(k: int) -> Affine:
        eta = params.step_size(k)
        move = np.block([mixing - identity, -eta * identity])
        change = np.vstack([identity, gram])  # of x, and of y through the gradient
        stay = np.block([[identity, 0 * identity], [0 * identity, mixing]])
        return Affine(stay + change @ move, np.zeros(len(change)), 2 * eta * change @ change.T)

    if params.start == "zero":
        return Update(at, (Start(0.0, 0.0),))
    return Update(at, (Start(-problem.shift, 0.0, gram),))
