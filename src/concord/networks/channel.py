"""What a sampler sends its vectors through: it says what it sends, and gets what has arrived.

``connect`` opens the channel of a topology for arrays of one shape. Samplers use nothing else of
the network in a step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from concord.networks import mixing
from concord.networks.matrix import AgentMatrix, AgentOperator
from concord.networks.topology import Topology

Step = TypeVar("Step", bound=Callable[..., Any])


def connect(topology: Topology, x0: np.ndarray) -> Channel:
    """Return the channel for arrays like x0, (chains, agents, dim)."""
    return Channel(topology, x0)


class Channel:
    """A channel on which everything arrives at once.

    Attributes
    ----------
    unicasts, broadcasts
        Vectors that each agent sends in an iteration, (agents,), of a sampler in which every agent
        sends one to all its neighbors: counted for each of them, or once.
    """

    def __init__(self, topology: Topology, x0: np.ndarray) -> None:
        self.topology, (self.chains, _, self.dim) = topology, x0.shape
        self.unicasts, self.broadcasts = topology.degrees, np.minimum(topology.degrees, 1)

    def mixer(self, weights: AgentMatrix, order: str) -> mixing.Mixer:
        """Return ``mixing.mixer``: every agent sends its x and averages what arrives."""
        return mixing.mixer(weights, self.chains, self.dim, order)

    def diffuser(self, order: str, neighbors: str) -> mixing.Diffuser:
        """Return ``mixing.diffuser``, or ``diffuser_in_turn``: every agent sends its x."""
        if neighbors == "in_turn":
            return mixing.diffuser_in_turn(self.topology, self.chains, self.dim)
        return mixing.diffuser(self.topology.laplacian(), self.chains, self.dim, order)

    def sweep(self, coupling: AgentMatrix, order: str) -> mixing.Sweep:
        """Return ``mixing.sweep``, over what arrived last: nothing is sent for it."""
        return mixing.sweep(coupling, self.chains, self.dim, order)

    def disagreement(self) -> AgentOperator:
        """Return ``disagree(x, out)``: every agent sends its x and adds up its differences."""
        return self.topology.laplacian().operator(self.chains, self.dim)

    def through(self, step: Step) -> Step:
        """Return the step as it goes on this channel, which may hold agents back."""
        return step
