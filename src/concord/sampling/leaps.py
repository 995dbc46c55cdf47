"""Leaps: many steps in one call, where all that they do is compiled. Bytes are those of the steps.

A call of numpy takes a microsecond, and a step of a small network is some ten of them: as long as
its arithmetic.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from concord.compiled import kernel
from concord.contracts import CompiledGradient, Info, Landed, Leap, Problem, Step
from concord.networks.matrix import AgentMatrix
from concord.networks.topology import Topology
from concord.sampling.recorder import FINITE_RANGE

# Numbers up to which a network is small, and normal ones that a leap holds.
SMALL, HELD = 1 << 13, 1 << 16
# Steps from which on a leap takes less time than they do by themselves, and what it makes at most,
# so that it takes a part of a second.
WORTH, MOST = 8, 1000

How = Literal["kick", "move", "in_turn"]
Amounts = Callable[[int], tuple[float, float, float]]


@dataclass(frozen=True)
class Leaping:
    """A step of which many can be taken at once."""

    step: Step
    leap: Leap

    def __call__(self, state: Any, k: int, rng: np.random.Generator) -> tuple[Any, Info]:
        """Take step k alone."""
        return self.step(state, k, rng)


def suits(problem: Problem, topology: Topology, x0: np.ndarray) -> bool:
    """Tell whether leaps are possible: of small networks, on which nothing happens.

    And of problems whose gradients are compiled.
    """
    small = topology.conditions.perfect and x0.size <= SMALL
    return small and x0.dtype == np.float64 and isinstance(problem, CompiledGradient)


def leaping(
    step: Step,
    how: How,
    problem: Problem,
    topology: Topology,
    x0: np.ndarray,
    info: Info,
    amounts: Amounts,
    matrix: AgentMatrix | None = None,
) -> Step:
    """Return a step with leaps, where they are possible, for states of positions alone.

    how: the kernel that moves all agents in a step, with the rows of ``matrix``. info: of each
    step. amounts: of step k, the gradient's factor, that of normal numbers, and the weight of the
    sums. The step takes full gradients.
    """
    if not suits(problem, topology, x0):
        return step
    assert isinstance(problem, CompiledGradient)
    chains, _, dim = x0.shape
    gradient, loop = problem.compiled_gradient(chains), kernel("leap", how, dim)
    if gradient is None or loop is None:
        return step
    nothing = np.empty(0, np.uint32), np.empty(0, np.uint32), np.empty(0)
    rows = nothing if matrix is None else matrix.by_row
    spare, g = np.empty_like(x0), np.empty_like(x0)
    held = np.empty((max(HELD // x0.size, 1), *x0.shape))

    def leap(state: Any, k: int, most: int, rng: np.random.Generator) -> Landed:
        count = min(most, len(held))
        w = held[:count]
        rng.standard_normal(out=w)
        each = np.array([amounts(k + step) for step in range(count)]).T.copy()
        left = np.full(chains, -1)
        loop(*gradient, each, w, *rows, state.x, spare, g, left, FINITE_RANGE)
        return Landed(state, info, count, left)

    return Leaping(step, leap)
