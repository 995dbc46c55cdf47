r"""A sampler that no paper here has: Langevin steps along tracked gradients.

.. math::
    x' = W x - \eta y + \sqrt{2 \eta} w, \qquad y' = W y + \nabla f(x') - \nabla f(x)

from y = grad f(x^(0)). The sum of y less that of the gradients is conserved, so a spectral radius
of 1 says nothing of its stability, and y starts from the positions.
"""

from __future__ import annotations

import numpy as np

from concord.laws.exact import Affine, Start, Update, block_diagonal
from concord.options import Options
from concord.sampling.schedules import Schedule


class Params(Options):
    step_size: Schedule
    start: str = "gradient"


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
