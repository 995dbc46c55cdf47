"""What agents have sent, and how often they have moved, counted where it happens."""

from __future__ import annotations

import numpy as np

from concord.networks.graph import Graph, Numbers


class Meter:
    """Counts of vectors, bytes and moves since the start, by agents.

    graph: the graph over which vectors are sent.
    copies, once: the vectors that an agent sends in a round to all neighbors, one for each of them
    and one for all, (agents,).
    activations: how often each agent has moved, (chains, agents); None where all always move.
    step_bytes: the bytes of vectors, one for all neighbors, since the clock has read them.
    """

    def __init__(self, graph: Graph) -> None:
        if graph.server_messages is not None:
            self.copies = self.once = np.asarray(graph.server_messages)
        else:
            self.copies, self.once = graph.degrees, np.minimum(graph.degrees, 1)
        # Vectors that all agents sent to all neighbors, and the bytes of one agent's; and others.
        self._rounds: Numbers = 0
        self._round_bytes: Numbers = 0.0
        self._unicasts: np.ndarray = np.zeros(graph.agents, dtype=np.int64)
        self._broadcasts = self._unicasts
        self._bytes: np.ndarray = np.zeros(graph.agents)
        self.activations: np.ndarray | None = None
        self.step_bytes: Numbers = 0.0

    @property
    def unicasts(self) -> np.ndarray:
        """The number of vectors each agent has sent, one for each neighbor that receives them.

        Since the start. Shape (agents,) or (chains, agents).
        """
        return self._unicasts + self._rounds * self.copies

    @property
    def broadcasts(self) -> np.ndarray:
        """The number of vectors each agent has sent, one for all neighbors that receive them.

        Since the start. Shape (agents,) or (chains, agents).
        """
        return self._broadcasts + self._rounds * self.once

    @property
    def unicast_bytes(self) -> np.ndarray:
        """The bytes each agent has sent, of a vector for each neighbor that receives it.

        Since the start. Shape (agents,), or (chains, agents) where chains differ.
        """
        return self._bytes + self._round_bytes * self.copies

    def add_rounds(self, vectors: Numbers, size: float) -> None:
        """Count rounds in which every agent sends to all neighbors.

        vectors: the number of vectors that each agent sends. size: the bytes of these vectors
        together.
        """
        self._rounds += vectors
        self._round_bytes += size

    def add_sent(self, unicasts: Numbers, broadcasts: Numbers, size: Numbers) -> None:
        """Count vectors that agents have sent.

        unicasts, broadcasts: numbers of vectors, (agents,) or (chains, agents), one for each
        neighbor and one for all neighbors. size: bytes of a vector, likewise.
        """
        self._unicasts = self._unicasts + unicasts
        self._broadcasts = self._broadcasts + broadcasts
        self._bytes = self._bytes + unicasts * size
        self.step_bytes = self.step_bytes + broadcasts * size

    def add_moves(self, active: np.ndarray) -> None:
        """Count the moves of an iteration; active: which agents move, a mask (chains, agents)."""
        self.activations = active + (0 if self.activations is None else self.activations)
