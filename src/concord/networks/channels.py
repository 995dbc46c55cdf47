"""Channels: what carries vectors over a network on which some are lost, late or changed."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, Self

import numpy as np

from concord.networks import effects as happenings
from concord.networks.byzantine import ROBUST, replace_heard
from concord.networks.clock import Clock
from concord.networks.effects import Effect, Traffic
from concord.networks.graph import DENSE_AGENTS, Graph, Matrix
from concord.networks.lanes import Lane


class Channels:
    """The channels of a network with effects, which each carry a vector of every agent.

    effects: the effects, in the order in which they are applied (``effects.ORDER``).

    on_loss, barrier: as for ``Network``.

    lanes: the open channels. traffic: links and agents in this iteration; None before the first.
    """

    def __init__(
        self, graph: Graph, effects: Sequence[Effect], on_loss: str, barrier: bool
    ) -> None:
        self.effects = sorted(effects, key=lambda effect: happenings.ORDER.index(type(effect)))
        for effect in effects:
            if hasattr(effect, "check"):
                effect.check(graph, "network.schedule")
        self._graph, self._on_loss, self._barrier = graph, on_loss, barrier
        self._robust = next((effect for effect in effects if isinstance(effect, ROBUST)), None)
        self.lanes: list[Any] = []
        self.traffic: Traffic | None = None
        self._k, self._chains = 0, 1
        self._rng: np.random.Generator | None = None
        self._clock: Clock | None = None
        self._draws: list[tuple[Effect, Any]] = []  # effects on masks, with their functions
        self._postponed: Any = None  # vectors under way, without a barrier
        self._vector_bytes = 0.0  # of an agent's vectors together
        self._splits: dict[int, tuple[Any, ...]] = {}  # by matrix, which is kept so that ids last

    def start(self, chains: int, rng: np.random.Generator | None, clock: Clock | None) -> Self:
        """Return a copy that is ready for a block of chains, with no channel open.

        rng: the stream of effects on vectors. clock: the network's clock, if it has one.
        """
        new = copy(self)
        new.lanes, new._vector_bytes, new.traffic = [], 0.0, None
        new._chains, new._rng, new._clock = chains, rng, clock
        draws = [happenings.start_effect(e, self._graph, chains, rng) for e in self.effects]
        new._draws = [pair for pair in zip(self.effects, draws, strict=True) if pair[1]]
        return new

    def open(self, first: np.ndarray) -> int:
        """Open a channel for one more vector of every agent, and return its number.

        first: the vectors that neighbors know at the start, (chains, agents, dim).
        """
        lane = self._graph, self.effects, self._on_loss, self._barrier, first, self._rng
        self.lanes.append(Lane(*lane))
        self._vector_bytes += self.vector_size(first)
        return len(self.lanes) - 1

    @property
    def sends_vary(self) -> bool:
        """Return whether agents send to fewer than all neighbors in some iterations."""
        kinds = (*happenings.SCHEDULES, happenings.Sleep)
        return not self._barrier or any(isinstance(effect, kinds) for effect in self.effects)

    def begin(self, k: int) -> None:
        """Draw the links, losses and awake agents of iteration k."""
        graph, shape = self._graph, (len(self._graph.senders), self._chains)
        awake = np.ones((graph.agents, self._chains), dtype=bool)
        traffic = Traffic(np.ones(shape, dtype=bool), np.empty(shape, dtype=bool), awake, awake)
        for effect, draw in self._draws:
            if isinstance(effect, happenings.SCHEDULES):
                draw(k, traffic)
        traffic.arrived = traffic.up.copy()
        for effect, draw in self._draws:
            if not isinstance(effect, (*happenings.SCHEDULES, happenings.Delay)):
                draw(k, traffic)
        if not self._barrier:
            assert self._clock is not None
            before = self.traffic
            traffic.sends = traffic.awake if before is None else before.awake
            traffic.awake = self._clock.advance_tick()
        else:
            traffic.sends = traffic.awake
        traffic.arrived &= traffic.sends[graph.senders]
        for effect, draw in self._draws:
            if isinstance(effect, happenings.Delay):
                draw(k, traffic)
        if not self._barrier:
            self._postpone(k, traffic)
        else:
            traffic.arrived &= traffic.awake[graph.receivers]
        if self._on_loss == "skip":
            traffic.arrived = graph.per_receiver(np.logical_and, traffic.arrived)
        self.traffic, self._k = traffic, k

    def _postpone(self, k: int, traffic: Traffic) -> None:
        """Delay the arrivals of tick k by the ticks that vectors take over a link."""
        assert self._clock is not None and self._rng is not None
        if k == 0:
            ticks = self._clock.transit_ticks(self._vector_bytes)
            self._postponed = None
            if ticks:
                delay = happenings.Delay(ticks)
                self._postponed = delay.start(self._graph, self._chains, self._rng)
        if self._postponed is not None:
            self._postponed(k, traffic)

    @property
    def awake(self) -> np.ndarray | None:
        """Return which agents are awake in this iteration, (chains, agents); None: all, always."""
        if self.traffic is None:
            return None
        kinds = (happenings.Sleep, happenings.RandomPair)
        sleeps = not self._barrier or any(isinstance(effect, kinds) for effect in self.effects)
        return self.traffic.awake.T if sleeps else None

    def count_copies(self) -> np.ndarray:
        """Return to how many neighbors each agent sends in this iteration, (chains, agents)."""
        assert self.traffic is not None
        copies: np.ndarray = self._graph.add_up_sent(self.traffic.up).T * self.traffic.sends.T
        return copies

    def arrives_between(self, agents: np.ndarray) -> np.ndarray:
        """Return whether a vector arrives from each of two agents at the other, (chains, 2).

        agents: pairs of neighbors (i, j), (chains, 2), of which i hears j, and j hears i.
        """
        assert self.traffic is not None
        graph = self._graph
        ways = np.searchsorted(graph.pair_numbers, agents * graph.agents + agents[:, ::-1])
        arrived: np.ndarray = self.traffic.arrived[ways, np.arange(len(agents))[:, None]]
        return arrived

    def vector_size(self, x: np.ndarray) -> float:
        """Return the bytes of the message for one agent's vector in x, after compression."""
        for effect in self.effects:
            if isinstance(effect, happenings.Compress):
                return effect.compressor.size(x.shape[-1], x.itemsize)
        return x.shape[-1] * x.itemsize

    def mix(self, matrix: Matrix, x: np.ndarray, lane: int) -> np.ndarray:
        """Send x over a channel, and mix each agent's own vector with those that it hears.

        matrix: the weights, (agents, agents). x: (chains, agents, dim). lane: the channel's number.
        """
        return self._weigh(matrix, x, self.lanes[lane].send(x, self.traffic, self._k))

    def mix_known(self, matrix: Matrix, x: np.ndarray, lane: int) -> np.ndarray:
        """Mix each agent's own vector in x with the last that it heard over a channel."""
        return self._weigh(matrix, x, self.lanes[lane].latest)

    def _weigh(self, matrix: Matrix, x: np.ndarray, heard: np.ndarray) -> np.ndarray:
        r"""Return :math:`\sum_j W_{ij} x_j` of an agent's own x and the vectors that it hears.

        x: (chains, agents, dim). heard: (ways, chains, dim).
        """
        graph = self._graph
        if self._robust is not None:
            heard = replace_heard(self._robust, graph, heard, x)
        of, *split = self._splits.get(id(matrix), (None,))
        if of is not matrix:  # ids of a network that was copied are those of other matrices
            if len(self._splits) > 8:  # of steps whose weights change
                self._splits.clear()
            split = [*_split_matrix(graph, matrix)]
            self._splits[id(matrix)] = matrix, *split
        diagonal, values, inbox = split
        ways, chains, dim = heard.shape
        total = (inbox @ heard.reshape(ways, chains * dim)).reshape(graph.agents, chains, dim)
        mixed = total.transpose(1, 0, 2) + diagonal[:, None] * x
        if self._on_loss == "sender_keeps" and self.traffic is not None:
            lost = np.where(self.traffic.arrived, 0.0, values[:, None])
            mixed = mixed + graph.add_up_sent(lost).T[..., None] * x
        return mixed.astype(x.dtype, copy=False)


def _split_matrix(graph: Graph, matrix: Matrix) -> tuple[np.ndarray, np.ndarray, Matrix]:
    """Return a matrix's diagonal (agents,), its entries on the ways (ways,), and the inbox matrix.

    The inbox matrix (agents, ways) sums the vectors that each agent hears, with these entries.
    """
    values = np.asarray(matrix[graph.receivers, graph.senders]).ravel()
    ways, shape = np.arange(len(values)), (graph.agents, len(values))
    if graph.agents <= DENSE_AGENTS:
        inbox: Any = np.zeros(shape, values.dtype)
        inbox[graph.receivers, ways] = values
    else:
        from scipy import sparse

        inbox = sparse.csr_array((values, (graph.receivers, ways)), shape=shape)
    return matrix.diagonal(), values, inbox
