"""Samplers, one module per algorithm, always in the same order.

equation and source, ``Params``, ``State``, ``check``, ``init``, ``affine``.

``init(problem, topology, params, x0, rng)`` returns the initial state and the step, a closure over
buffers that are allocated once. ``step(state, k, rng)`` returns the next state and an ``Info``. A
step consumes its state: it may overwrite the arrays it is given, at once or later, so copy what you
keep. Random numbers that are prepared for many steps at once (gossip's pairs and noise, the order
of an epoch) are the step's own; within such a block k is not looked at, and a chain cannot be
resumed from a state, a k and a generator alone.
A module that has ``affine(problem, topology, params)`` states the sampler's law on Gaussian
problems (see ``concord.exact``). Modules are found by their file name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from concord.topology import Topology


class Info(NamedTuple):
    """Diagnostics of one step.

    unicasts, broadcasts: vectors of length dim that each agent sends, (agents,) or (chains,
    agents), counted once for every neighbor that needs one (the price where links join pairs), or
    once for all neighbors that hear the same one (the price on the air). Both are what the
    equations need; an option that is some code's slip sends no more for it.
    active: one for agents that moved, zero for others, (chains, agents); None: all moved.
    """

    unicasts: np.ndarray
    broadcasts: np.ndarray
    active: np.ndarray | None = None


def to_all_neighbors(topology: Topology) -> Info:
    """Return the diagnostics of a step in which every agent sends one vector to each neighbor."""
    return Info(topology.degrees, np.minimum(topology.degrees, 1))


Step = Callable[[Any, int, np.random.Generator], tuple[Any, Info]]
