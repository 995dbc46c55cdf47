"""Agents that are processes of their own, whose vectors travel as datagrams over the loopback.

Latency, bandwidth and loss are inserted where a vector arrives: it is held back until it is due, or
dropped. What was sent to a process that has ended is lost, and nothing notices.
"""

import os
import select
import socket
import struct
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence

import numpy as np
from numpy.random import Generator

from concord.errors import ConcordError
from concord.networks.conditions import Bernoulli, Link
from concord.networks.topology import Topology
from concord.networks.transports import Part

HEAD = struct.Struct("<Hd")  # which vector of a step it is, and when that began
MOST = 60_000  # bytes of a vector of all chains, which a datagram holds
ROOM = 1 << 22  # bytes of datagrams that wait for a process


def sockets(agents: int) -> list[socket.socket]:
    """Return a socket for each agent, at which it hears the others."""
    found = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(agents)]
    for one in found:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, ROOM)
        one.setblocking(False)
        one.bind(("127.0.0.1", 0))
    return found


class Loopback(Part):
    """The part of an agent that is a process.

    network: with what happens on it: link, loss and barrier. sockets: of all agents. rng: of what
    is lost, each chain's vector by itself.
    heard: when all was there that the last step waited for. waited: seconds for which steps have.
    unicasts, broadcasts: vectors that were sent, to each neighbor or once for all.
    """

    def __init__(
        self, network: Topology, agent: int, sockets: Sequence[socket.socket], rng: Generator
    ) -> None:
        self.agents = self.ranks = network.agents
        self.rank, self.own, self.sent = agent, slice(agent, agent + 1), 0
        self._socket, self._rng, self._parent = sockets[agent], rng, os.getppid()
        self._addresses = [each.getsockname() for each in sockets]
        self._neighbors = set(network.neighbors[agent].tolist())
        loss, self._link = network.conditions.loss, network.conditions.link or Link()
        self._rate = loss.rate if isinstance(loss, Bernoulli) else 0.0
        self._waits = network.conditions.barrier
        self._begun = self.heard = self.waited = 0.0
        self._turn = self.unicasts = self.broadcasts = 0
        self._arrived: dict[tuple[int, int], deque[tuple[float, bytes]]] = defaultdict(deque)
        self._known: dict[tuple[int, int], np.ndarray] = {}

    def begin(self) -> None:
        """Begin a step: what is sent in it leaves now."""
        self._begun, self._turn = time.monotonic(), 0
        self.heard = self._begun

    def of_all(self, value: object) -> tuple[object, ...]:
        """Return the value: no other process is asked."""
        return (value,)

    def exchange(self, held: np.ndarray, axis: int, agents: np.ndarray) -> Callable[[], None]:
        """Return ``exchange()``, which sends the own row of ``held`` and takes those of neighbors.

        With a barrier it waits for one of each, and without one for the first of each; then it
        takes what is due. Of several vectors in a step each is by itself. Before steps begin
        nothing is exchanged.
        """
        rows = np.moveaxis(held, axis, 0)
        others = {int(agent): rows[place] for place, agent in enumerate(agents)}
        own = others.pop(self.rank)
        if not others.keys() <= self._neighbors:
            raise ConcordError(
                "agents: the sampler's sums are over all agents here, not over neighbors; use "
                "fewer dimensions, or the complete graph"
            )
        if own.nbytes > MOST:
            raise ConcordError(
                f"agents: a vector of all chains takes {own.nbytes} bytes; use fewer chains or "
                f"dimensions, {MOST} bytes at most"
            )

        def exchange() -> None:
            if not self._begun:
                return
            turn, self._turn = self._turn, self._turn + 1
            datagram = HEAD.pack(turn, self._begun) + own.tobytes()
            for other in others:
                self._socket.sendto(datagram, self._addresses[other])
            self.unicasts += len(others)
            self.broadcasts += bool(others)
            first = any((other, turn) not in self._known for other in others)
            if self._waits or first:
                due = self._wait([(other, turn) for other in others])
            else:
                due = time.monotonic()
                self._listen(0.0)
            for other, row in others.items():
                arrived = self._arrived[other, turn]
                known = self._known.setdefault((other, turn), np.empty_like(row))
                while arrived and arrived[0][0] <= due:
                    vector = np.frombuffer(arrived.popleft()[1], row.dtype, offset=HEAD.size)
                    lost = self._rng.random(len(row)) < self._rate * (not first)
                    np.copyto(known, vector.reshape(row.shape), where=~lost[:, None])
                    if self._waits or first:
                        break
                np.copyto(row, known)

        return exchange

    def _wait(self, vectors: list[tuple[int, int]]) -> float:
        """Wait for one of each of these vectors, and return when the last of them was due."""
        while not all(self._arrived[vector] for vector in vectors):
            self._listen(1.0)
            if os.getppid() != self._parent:
                raise BrokenPipeError
        due = max((self._arrived[vector][0][0] for vector in vectors), default=0.0)
        time.sleep(max(due - time.monotonic(), 0.0))
        now = time.monotonic()
        self.waited, self.heard = self.waited + now - self.heard, now
        return due

    def _listen(self, seconds: float) -> None:
        """Take in what has come; wait so long for the first of it."""
        select.select([self._socket], [], [], seconds)
        while True:
            try:
                datagram, address = self._socket.recvfrom(1 << 16)
            except BlockingIOError:
                return
            if address in self._addresses:
                turn, begun = HEAD.unpack_from(datagram)
                due = begun + self._link.seconds(self.bytes)
                self._arrived[self._addresses.index(address), turn].append((due, datagram))
