"""Samplers, one module per algorithm, always in the same order.

equation and source, ``Params``, ``State``, ``check``, ``init``, ``affine``.

``init(problem, topology, params, x0, rng)`` returns the initial state and the step, a closure over
buffers that are allocated once. ``step(state, k, rng)`` returns the next state and an ``Info``. A
step consumes its state: it may overwrite the arrays it is given, at once or later, so copy what you
keep. Random numbers that are prepared for many steps at once (gossip's pairs and noise, the order
of an epoch) are the step's own; within such a block k is not looked at, and a chain cannot be
resumed from a state, a k and a generator alone.
A module that has ``affine(problem, topology, params)`` states the sampler's law on Gaussian
problems (see ``concord.laws.exact``). Modules are found by their file name.
"""

from __future__ import annotations

import numpy as np

from concord.contracts import Info
from concord.networks.topology import Topology


def to_all_neighbors(topology: Topology) -> Info:
    """Return the diagnostics of a step in which every agent sends one vector to each neighbor."""
    return Info(topology.degrees, np.minimum(topology.degrees, 1))
