"""Agents that are processes of their own, whose vectors travel as datagrams over the loopback.

Latency, bandwidth and loss are inserted where a vector arrives: it is held back until it is due, or
dropped. What was sent to a process that has ended is lost, and nothing notices.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from concord.errors import ConcordError
from concord.networks.conditions import Bernoulli, Link
from concord.networks.topology import Topology
from concord.networks.transports import Part

HEAD = struct.Struct("<Hd")  # which of an agent's vectors it is, and when the step of it began
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

    network: with what happens on it: link, loss and barrier. sockets: of all agents. size: bytes of
    a vector of one chain. rng: of what is lost, each chain's vector by itself.
    heard: when all was there that the last step waited for. waited: seconds for which steps have.
    unicasts: vectors that were sent since ``begin`` was first called.
    """

    def __init__(
        self,
        network: Topology,
        agent: int,
        sockets: Sequence[socket.socket],
        size: int,
        rng: np.random.Generator,
    ) -> None:
        self.agents = self.ranks = network.agents
        self.rank, self.own, self.sent = agent, slice(agent, agent + 1), 0
        self._socket, self._rng, self._size = sockets[agent], rng, size
        self._addresses = [each.getsockname() for each in sockets]
        self._neighbors = set(network.neighbors[agent].tolist())
        loss, self._link = network.conditions.loss, network.conditions.link or Link()
        self._rate = loss.rate if isinstance(loss, Bernoulli) else 0.0
        self._waits, self._begun, self.lanes = network.conditions.barrier, 0.0, 0
        self.heard = self.waited = 0.0
        self._parent = os.getppid()
        self.unicasts = 0
        self._arrived: dict[tuple[int, int], deque[tuple[float, bytes]]] = defaultdict(deque)

    def begin(self) -> None:
        """Begin a step: what is sent in it leaves now. Before the first all arrives at once."""
        self._begun = self.heard = time.monotonic()

    def of_all(self, value: object) -> tuple[object, ...]:
        """Return the value: no other process is asked."""
        return (value,)

    def exchange(self, held: np.ndarray, axis: int, agents: np.ndarray) -> Callable[[], None]:
        """Return ``exchange()``, which sends the own row of ``held`` and takes those of neighbors.

        With a barrier it waits for one of each; without one it takes what is due.
        """
        rows, lane = np.moveaxis(held, axis, 0), self.lanes
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
        self.lanes += 1

        def exchange() -> None:
            datagram = HEAD.pack(lane, self._begun) + own.tobytes()
            for other in others:
                self._socket.sendto(datagram, self._addresses[other])
            self.unicasts += len(others) if self._begun else 0
            due = self._wait(lane, others) if self._waits or not self._begun else time.monotonic()
            self._listen(0.0)
            for other, row in others.items():
                arrived = self._arrived[other, lane]
                while arrived and arrived[0][0] <= due:
                    vector = np.frombuffer(arrived.popleft()[1], row.dtype, offset=HEAD.size)
                    lost = self._rng.random(len(row)) < self._rate * bool(self._begun)
                    np.copyto(row, vector.reshape(row.shape), where=~lost[:, None])
                    if self._waits or not self._begun:
                        break

        return exchange

    def _wait(self, lane: int, others: Iterable[int]) -> float:
        """Wait for a vector of each of the others, and return when the last of them was due."""
        while not all(self._arrived[other, lane] for other in others):
            self._listen(1.0)
            if os.getppid() != self._parent:
                raise BrokenPipeError
        due = max((self._arrived[other, lane][0][0] for other in others), default=0.0)
        time.sleep(max(due - time.monotonic(), 0.0))
        if self._begun:
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
                lane, begun = HEAD.unpack_from(datagram)
                due = begun and begun + self._link.seconds(self.lanes * self._size)
                self._arrived[self._addresses.index(address), lane].append((due, datagram))
