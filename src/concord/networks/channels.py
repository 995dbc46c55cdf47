"""Channels, which carry vectors over a network on which some are lost, late or changed."""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np

from concord.networks.byzantine import replace_heard, tell_lies
from concord.networks.clock import Clock
from concord.networks.conditions import Conditions
from concord.networks.effects import LossDraws, Static, Traffic
from concord.networks.graph import DENSE_AGENTS, Graph, Matrix, Numbers


class Channel:
    """A channel, which carries one vector of every agent to its neighbors, with losses and delays.

    latest: the vector that each receiver uses, (arcs, chains, dim).

    first: the vectors that neighbors know at the start, (chains, agents, dim).

    rng: the stream of compression, privacy and noise.
    """

    def __init__(
        self, graph: Graph, conditions: Conditions, first: np.ndarray, rng: np.random.Generator
    ) -> None:
        self._graph, self._conditions = graph, conditions
        vectors = first.transpose(1, 0, 2)
        self.latest = self._arriving = vectors[graph.senders]
        self._past: dict[int, np.ndarray] = {}  # what was sent, by iteration
        if conditions.privacy or conditions.compression or conditions.noise:
            # Streams of their own, so that masks do not depend on what is sent.
            self._rounding, self._hiding, self._noises = rng.spawn(3)
        if conditions.byzantine is not None:
            self._lying = rng.spawn(1)[0]
        self._left_out = np.zeros_like(vectors)  # by compression, of which agents keep account

    def send(self, x: np.ndarray, traffic: Traffic, k: int) -> np.ndarray:
        """Send x over all arcs, and return the vectors that receivers use, (arcs, chains, dim).

        x: (chains, agents, dim). traffic: what is up and arrives in iteration k.
        """
        graph, options = self._graph, self._conditions
        vectors = np.ascontiguousarray(x.transpose(1, 0, 2))
        fallback: Numbers = 0.0
        if options.on_loss == "reuse_last":
            fallback = self._arriving
        elif options.on_loss != "sender_keeps":
            fallback = vectors[graph.receivers]
        self._past[k] = self._encode(vectors, traffic)
        self._past.pop(k - traffic.age - 1, None)
        arriving = self._past.get(k - traffic.age, vectors)[graph.senders]
        if options.noise:
            noise = self._noises.standard_normal(arriving.shape, dtype=x.dtype.type)
            arriving = arriving + options.noise * noise
        self._arriving = np.where(traffic.arrived[..., None], arriving, fallback)
        self.latest = (
            self._arriving
            if options.barrier
            else np.where(traffic.sends[graph.receivers][..., None], self._arriving, self.latest)
        )  # agents at their own pace take the last when they begin
        return self.latest

    def _encode(self, vectors: np.ndarray, traffic: Traffic) -> np.ndarray:
        """Return the hidden, compressed or false vectors that agents send for their vectors.

        vectors, and the result: (agents, chains, dim).
        """
        options = self._conditions
        if options.privacy is not None:
            vectors = options.privacy.hide(vectors, self._hiding)
        if options.compression is not None:
            whole = vectors + self._left_out if options.error_feedback else vectors
            vectors = options.compression.compress(whole, self._rounding)
            if options.error_feedback:
                sends = traffic.sends[..., None]
                self._left_out = np.where(sends, whole - vectors, self._left_out)
        if options.byzantine is not None:
            vectors = tell_lies(options.byzantine, vectors, self._lying)
        return vectors


class Channels:
    """The channels of a network under conditions, which each carry a vector of every agent.

    channels: the open channels. traffic: links and agents in this iteration; None before the first.
    """

    def __init__(self, graph: Graph, conditions: Conditions) -> None:
        self._graph, self._conditions = graph, conditions
        self.channels: list[Any] = []
        self.traffic: Traffic | None = None
        self._copies: np.ndarray | None = None  # of this traffic, once they have been counted
        self._k, self._chains = 0, 1
        self._rng: Any = None
        self._clock: Any = None
        self._losses: LossDraws | None = None
        self._tables = conditions.schedule.tables(graph)
        self._are_awake = conditions.barrier and not conditions.sleeps  # all agents, always
        self._under_way = np.empty(0)  # masks of the vectors sent in the last iterations
        self._vector_bytes = 0.0  # of an agent's vectors together
        # By the id of the matrix, which is kept so that ids last.
        self._splits: dict[int, tuple[Matrix, np.ndarray, np.ndarray, Matrix]] = {}

    def start(self, chains: int, rng: np.random.Generator | None, clock: Clock | None) -> Self:
        """Return a copy that is ready for a block of chains, with no channel open.

        rng: the stream of effects on vectors. clock: the network's clock, if it has one.
        """
        new = copy(self)
        new.channels, new._vector_bytes, new.traffic = [], 0.0, None
        new._chains, new._rng, new._clock = chains, rng, clock
        if self._conditions.loss is not None:
            assert rng is not None
            new._losses = LossDraws(self._conditions.loss, self._graph, chains, rng)
        return new

    def open(self, first: np.ndarray) -> int:
        """Open a channel for one more vector of every agent, and return its number.

        first: the vectors that neighbors know at the start, (chains, agents, dim).
        """
        self.channels.append(Channel(self._graph, self._conditions, first, self._rng))
        self._vector_bytes += self.vector_size(first)
        return len(self.channels) - 1

    def begin(self, k: int) -> None:
        """Draw the links, losses and awake agents of iteration k."""
        graph, shape = self._graph, (len(self._graph.senders), self._chains)
        options = self._conditions
        awake = np.ones((graph.agents, self._chains), dtype=bool)
        traffic = Traffic(np.ones(shape, dtype=bool), np.empty(shape, dtype=bool), awake, awake)
        if self._tables:
            traffic.up &= self._tables[k % len(self._tables)][:, None]
        else:
            options.schedule.draw(traffic, graph, self._rng)
        traffic.arrived = traffic.up.copy()
        if self._losses is not None:
            traffic.arrived &= self._losses.draw()
        if options.awake < 1:
            awake &= self._rng.random(awake.shape) < options.awake
        if not options.barrier:
            traffic.sends = awake if self.traffic is None else self.traffic.awake
            traffic.awake = self._clock.advance_tick()
        if not self._are_awake:
            traffic.arrived &= traffic.sends[graph.senders]
        self._delay(k, traffic)
        if options.barrier and not self._are_awake:
            traffic.arrived &= traffic.awake[graph.receivers]
        if options.on_loss == "skip":
            traffic.arrived = graph.per_receiver(np.logical_and, traffic.arrived)
        self.traffic, self._copies, self._k = traffic, None, k

    def _delay(self, k: int, traffic: Traffic) -> None:
        """Replace the vectors that arrive in iteration k by vectors that were sent earlier."""
        delay = self._conditions.delay
        if delay is None and self._conditions.barrier:
            return
        if k == 0:
            late = delay.iterations if delay else self._clock.transit_ticks(self._vector_bytes)
            self._under_way = np.zeros((late + 1, *traffic.arrived.shape), dtype=bool)
        slots = len(self._under_way)
        self._under_way[k % slots] = traffic.arrived
        traffic.age = slots - 1
        traffic.arrived = self._under_way[(k + 1) % slots].copy()

    @property
    def awake(self) -> np.ndarray | None:
        """Return a mask of the agents that are awake, (chains, agents). None: all, always."""
        if self.traffic is None or self._are_awake:
            return None
        return self.traffic.awake.T

    def count_copies(self) -> np.ndarray | None:
        """Return to how many neighbors each agent sends in this iteration, (chains, agents).

        None where all agents send to all of their neighbors in every iteration.
        """
        options = self._conditions
        static = isinstance(options.schedule, Static)
        if self.traffic is None or (options.barrier and options.awake == 1 and static):
            return None
        if self._copies is None:
            self._copies = self._graph.add_up_sent(self.traffic.up).T * self.traffic.sends.T
        return self._copies

    def arrives_between(self, agents: np.ndarray) -> np.ndarray:
        """Return whether a vector arrives from each of two agents at the other, (chains, 2).

        agents: pairs of neighbors (i, j), (chains, 2), of which i hears j, and j hears i.
        """
        assert self.traffic is not None
        graph = self._graph
        arcs = np.searchsorted(graph.pair_numbers, agents * graph.agents + agents[:, ::-1])
        arrived: np.ndarray = self.traffic.arrived[arcs, np.arange(len(agents))[:, None]]
        return arrived

    def vector_size(self, x: np.ndarray) -> float:
        """Return the bytes of the message for one agent's vector in x, after compression."""
        return self._conditions.size(x.shape[-1], x.itemsize)

    def mix(self, matrix: Matrix, x: np.ndarray, channel: int) -> np.ndarray:
        """Send x over a channel, and mix each agent's own vector with those that it hears.

        matrix: the weights, (agents, agents). x: (chains, agents, dim). channel: its number.
        """
        return self._weigh(matrix, x, self.channels[channel].send(x, self.traffic, self._k))

    def mix_known(self, matrix: Matrix, x: np.ndarray, channel: int) -> np.ndarray:
        """Mix each agent's own vector in x with the latest of its neighbors over a channel."""
        return self._weigh(matrix, x, self.channels[channel].latest)

    def _weigh(self, matrix: Matrix, x: np.ndarray, received: np.ndarray) -> np.ndarray:
        r"""Return :math:`\sum_j W_{ij} x_j` of an agent's own x and the vectors that it hears.

        x: (chains, agents, dim). received: (arcs, chains, dim).
        """
        graph, options = self._graph, self._conditions
        if options.robust is not None:
            received = replace_heard(options.robust, graph, received, x)
        split = self._splits.get(id(matrix))
        if split is None or split[0] is not matrix:  # an id that was another matrix's
            if len(self._splits) > 8:  # of steps whose weights change
                self._splits.clear()
            split = self._splits[id(matrix)] = matrix, *_split_matrix(graph, matrix)
        _, diagonal, values, inbox = split
        arcs, chains, dim = received.shape
        total = (inbox @ received.reshape(arcs, chains * dim)).reshape(graph.agents, chains, dim)
        mixed = total.transpose(1, 0, 2) + diagonal[:, None] * x
        if options.on_loss == "sender_keeps" and self.traffic is not None:
            lost = np.where(self.traffic.arrived, 0.0, values[:, None])
            mixed = mixed + graph.add_up_sent(lost).T[..., None] * x
        return mixed.astype(x.dtype, copy=False)


def _split_matrix(graph: Graph, matrix: Matrix) -> tuple[np.ndarray, np.ndarray, Matrix]:
    """Return a matrix's diagonal (agents,), its entries on the arcs (arcs,), and the inbox matrix.

    The inbox matrix (agents, arcs) sums the vectors that each agent hears, with these entries.
    """
    values = np.asarray(matrix[graph.receivers, graph.senders]).ravel()
    arcs, shape = np.arange(len(values)), (graph.agents, len(values))
    if graph.agents <= DENSE_AGENTS:
        inbox = np.zeros(shape, values.dtype)
        inbox[graph.receivers, arcs] = values
    else:
        from scipy import sparse

        inbox = sparse.csr_array((values, (graph.receivers, arcs)), shape=shape)
    return matrix.diagonal(), values, inbox
