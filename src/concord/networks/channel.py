"""The channel: a sampler sends vectors through it, and gets back those that arrived.

``connect`` opens the channel of a network for arrays of one shape. Samplers use nothing else of
the network in a step.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np

from concord.errors import ConcordError
from concord.libraries import sparse
from concord.networks import mixing
from concord.networks.clock import Clock
from concord.networks.compressions import Compression
from concord.networks.conditions import Static
from concord.networks.edges import Edges
from concord.networks.matrix import FEW, AgentMatrix, copy_vectors
from concord.networks.topology import Topology
from concord.networks.weather import Weather

Pair = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
Step = Callable[[Any, int, np.random.Generator], tuple[Any, Any]]


def connect(
    topology: Topology, x0: np.ndarray, vectors: int = 1, size: float | None = None
) -> Channel:
    """Return the channel for arrays like x0, (chains, agents, dim), which neighbors know.

    ``vectors``: of each agent that are sent in an iteration, the others over ``lane``. ``size``:
    bytes of what is sent for one, by samplers that compress by themselves.
    """
    kind = Channel if topology.conditions.perfect else Faulty
    return kind(topology, x0, vectors, size)


@dataclass(frozen=True)
class Passage:
    """A step that goes through a channel on which something happens."""

    channel: Channel
    step: Step

    def __call__(self, state: Any, k: int, rng: np.random.Generator) -> tuple[Any, Any]:
        """Take step k, with what arrives in it and how long it takes."""
        return self.channel.take(self.step, state, k, rng)


def check_passage(topology: Topology, step: Step) -> None:
    """Refuse a step that goes through no channel: nothing would ever get lost on its way.

    A ConcordError if something can happen on the network.
    """
    if topology.conditions.eventful and not isinstance(step, Passage):
        raise ConcordError(
            "network: the sampler's step goes through no channel (concord.networks.channel), so "
            "nothing would happen to what it sends; remove network, or return channel.through(step)"
        )


class Channel:
    """A channel on which everything arrives at once.

    unicasts, broadcasts: vectors that each agent sends in an iteration, (agents,), of a sampler in
    which every agent sends its vectors to all its neighbors: counted for each of them, or once.
    active: which agents are awake, (chains, agents); None: all.
    clock: the network's; None: it has none.
    """

    active: np.ndarray | None = None
    clock: Clock | None = None
    _up: np.ndarray | None = None  # links in the iteration; None: all, always

    def __init__(
        self, topology: Topology, x0: np.ndarray, vectors: int, size: float | None
    ) -> None:
        self.topology, (self.chains, _, self.dim), self._vectors = topology, x0.shape, vectors
        self._conditions, sent = topology.conditions, topology.degrees
        if topology.messages is not None:
            self.unicasts = self.broadcasts = vectors * np.array(topology.messages)
        else:
            self.unicasts, self.broadcasts = vectors * sent, vectors * np.minimum(sent, 1)
        for fixed in (self.unicasts, self.broadcasts):
            fixed.flags.writeable = False
        size = size or self._conditions.size(self.dim, x0.itemsize)
        if self._conditions.clocked:
            self.clock = Clock(topology, Edges(topology), self.chains, size, vectors)

    def lane(self, first: np.ndarray) -> Self:
        """Return a lane for a second vector of every agent, of which neighbors know the first.

        What arrives on the channel arrives on its lanes: both vectors of an agent, or neither.
        """
        return self

    def mixer(
        self, weights: AgentMatrix, order: mixing.Order = "simultaneous", sends: bool = True
    ) -> mixing.Mixer:
        """Return ``mix(x, plus, out)``: the weighted sums of what agents have, and have heard.

        Every agent sends its x, unless it ``sends`` nothing: then the sums are over x of its own
        and what it has heard last. ``mixing`` says what ``plus`` and ``order`` may be; where
        vectors may not arrive all agents move at once.
        """
        return mixing.mixer(weights, self.chains, self.dim, order)

    def pair(self) -> Pair:
        """Return ``differ(agents, x, out)`` for two agents of each chain that send each other x.

        ``agents`` (chains, 2) are neighbors, x (chains, 2, dim) what they send; out is what each
        sends minus what it hears.
        """
        return lambda agents, x, out: np.subtract(x, x[:, ::-1], out=out)

    def through(self, step: Step) -> Step:
        """Return the step as it goes on this channel, iteration by iteration."""
        return Passage(self, step) if self._conditions.eventful else step

    def take(self, step: Step, state: Any, k: int, rng: np.random.Generator) -> tuple[Any, Any]:
        """Take step k, and tell what the clock shows after it."""
        state, info = step(state, k, rng)
        if self.clock is None:
            return state, info
        moves: Any = True if info.active is None else self._by_agent(info.active).astype(bool)
        gradients = 1 if info.gradients is None else self._by_agent(info.gradients)
        if self._conditions.barrier:
            share = state[0].shape[-1] / self.dim  # of vectors whose bytes are known
            sent = share * self._by_agent(info.broadcasts)
            self.clock.wait(sent, moves, gradients, self._up)
        else:
            self.clock.begin(k, moves, gradients)
        return state, info._replace(clock=self.clock)

    @staticmethod
    def _by_agent(rows: np.ndarray) -> Any:
        """Return what is of agents, (..., agents), by agent, (agents, ...)."""
        return np.atleast_2d(rows).T


class Faulty(Channel):
    """A channel on which vectors get lost, late or compressed, between agents that may sleep.

    ``held`` has the agents' own vectors, then what each receiver takes for what each way should
    have brought, (agents + edges, chains, dim). Without a barrier vectors arrive in ``mail``, which
    agents take when they begin with a step.
    """

    def __init__(self, network: Topology, x0: np.ndarray, vectors: int, size: float | None) -> None:
        super().__init__(network, x0, vectors, size)
        self._weather = Weather(network, self.chains, self.clock)
        self._edges = edges = self._weather.edges
        self._open(x0)
        scheduled = self._conditions.schedule != Static()
        self._varies = self._weather.varies or scheduled
        if self._varies:
            self.unicasts = np.zeros((self.chains, network.agents), dtype=np.int64)
            self.broadcasts = np.zeros_like(self.unicasts)
            self._over = np.zeros_like(self.unicasts.T)  # ways from each agent that are up
            edges.add_sent(self._weather.up, self._over)
        if scheduled:
            self._up = self._weather.up
        if self._weather.varies:
            self.active = self._weather.awake.T
        self._asleep = np.empty_like(self._weather.awake)
        self._kept: list[np.ndarray] = []  # of the state, where agents sleep

    def _open(self, x0: np.ndarray) -> None:
        """Allocate what is held of vectors like x0, which neighbors know."""
        agents, ways = self.topology.agents, len(self._edges.links)
        self._held = np.empty((agents + ways, self.chains, self.dim), x0.dtype)
        self._own, self._inbox = self._held[:agents], self._held[agents:]
        self._sent = np.empty_like(self._inbox)
        self._encode = self._encoder(x0.dtype)
        slots = self._weather.reach + 1 if self._weather.reach else 0
        self._past = np.empty((slots, *self._own.shape), x0.dtype)  # what was sent, by iteration
        self._enter(x0)
        self._own.take(self._edges.senders, 0, self._inbox, "clip")
        self._mail = self._inbox if self._conditions.barrier else self._inbox.copy()

    def _enter(self, x: np.ndarray) -> None:
        """Take the agents' vectors."""
        copy_vectors(x.transpose(1, 0, 2), self._own)

    def lane(self, first: np.ndarray) -> Self:
        """Return a lane with what it holds of its own, under the same weather."""
        other = copy(self)
        other._open(first)
        return other

    def mixer(
        self, weights: AgentMatrix, order: mixing.Order = "simultaneous", sends: bool = True
    ) -> mixing.Mixer:
        """Return the mixer of what arrives; everybody at once."""
        gather = self._gather(weights)

        def weigh(x: np.ndarray, out: np.ndarray) -> np.ndarray:
            self._enter(x)
            if sends:
                self._send()
            return gather(out)

        return mixing.at_once(weigh)

    def pair(self) -> Pair:
        """Return ``differ``: nothing heard is no difference."""
        chain = np.arange(self.chains)[:, None]

        def differ(pair: np.ndarray, x: np.ndarray, out: np.ndarray) -> np.ndarray:
            np.subtract(x, x[:, ::-1], out=out)
            way = self._edges.ways(pair, pair[:, ::-1])
            return np.multiply(out, self._weather.arrived[way, chain][..., None], out=out)

        return differ

    def take(self, step: Step, state: Any, k: int, rng: np.random.Generator) -> tuple[Any, Any]:
        """Draw what arrives, and take step k; who sleeps is where it was."""
        self._weather.draw(k)
        if self._varies:
            self._count_sent()
        if self.active is None:
            return super().take(step, state, k, rng)
        if not self._kept:
            self._kept = [np.empty_like(part) for part in state]
        for before, part in zip(self._kept, state, strict=True):
            np.copyto(before, part)
        state, info = super().take(step, state, k, rng)
        np.logical_not(self._weather.awake, out=self._asleep)
        sleeping = self._asleep.T
        for before, part in zip(self._kept, state, strict=True):
            if part.ndim == 2:
                np.copyto(part, before, where=sleeping)
            elif part.size:
                copy_vectors(before, part, sleeping)
        return state, info

    def _send(self) -> None:
        """Let every agent send its own; what does not arrive is replaced as the policy says."""
        if self._conditions.on_loss == "sender_keeps":
            self._inbox.fill(0)
        elif self._conditions.on_loss != "reuse_last" and not self._weather.calm:
            self._own.take(self._edges.receivers, 0, self._inbox, "clip")
        if self._noise is not None:
            self._noises.standard_normal(out=self._noise, dtype=self._noise.dtype)
            np.multiply(self._noise, self._conditions.noise, out=self._noise)
        code, weather = self._encode(), self._weather
        if weather.reach:
            slots = len(self._past)
            np.copyto(self._past[weather.iteration % slots], code)
            code = self._past[(weather.iteration + 1) % slots]
        self._take(code)
        if self._mail is not self._inbox:
            begin = weather.of(weather.sends, self._edges.receivers)
            copy_vectors(self._mail, self._inbox, begin)

    def _take(self, sent: np.ndarray) -> None:
        """Put what agents sent, (agents, chains, dim), where it arrives."""
        heard = self._mail if self._weather.calm else self._sent
        sent.take(self._edges.senders, 0, heard, "clip")
        if self._noise is not None:
            np.add(heard, self._noise, out=heard)
        if heard is not self._mail:
            copy_vectors(heard, self._mail, self._weather.arrived)

    def _encoder(self, dtype: Any) -> Callable[[], np.ndarray]:
        """Return ``encode()``: what agents send for their own vectors, (agents, chains, dim)."""
        options, own = self._conditions, self._own
        self._noise = np.empty_like(self._inbox) if options.noise else None
        if not (options.compression or options.privacy or options.noise):
            return lambda: own
        # Streams of their own, so that masks do not depend on what is sent.
        rounding, hiding, self._noises = self._weather.rng.spawn(3)
        shown = own
        encoders: list[Callable[[], object]] = []
        if options.privacy is not None:
            hide, shown = options.privacy.hider(own.shape, dtype), np.empty_like(own)
            encoders.append(partial(hide, own, hiding, shown))
        if options.compression is not None:
            code = np.empty_like(own)
            encoders.append(self._compressor(options.compression, shown, rounding, code))
            shown = code

        def encode() -> np.ndarray:
            for encoder in encoders:
                encoder()
            return shown

        return encode

    def _compressor(
        self, compression: Compression, x: np.ndarray, rng: np.random.Generator, code: np.ndarray
    ) -> Callable[[], object]:
        """Return what writes ``code`` for x, and remembers what that leaves out if it should."""
        compress = compression.compressor(x.shape, x.dtype)
        if not self._conditions.error_feedback:
            return partial(compress, x, rng, code)
        left, whole, sends = np.zeros_like(x), np.empty_like(x), self._weather.sends

        def with_feedback() -> None:
            np.add(x, left, out=whole)
            compress(whole, rng, code)
            np.subtract(whole, code, out=whole)
            copy_vectors(whole, left, sends)

        return with_feedback

    def _gather(self, matrix: AgentMatrix) -> Callable[[np.ndarray], np.ndarray]:
        """Return ``gather(out)``, the matrix times what agents have and what they took."""
        agents, flat = len(self._own), self._held.reshape(len(self._held), -1)
        off = matrix.rows != matrix.columns
        receivers, weight = matrix.rows[off], matrix.values[off]
        ways, own = self._edges.ways(receivers, matrix.columns[off]), np.arange(agents)
        rows, columns = np.append(own, receivers), np.append(own, agents + ways)
        values = np.append(matrix.diagonal, weight)
        if agents <= FEW:
            weights = np.zeros((agents, len(self._held)))
            weights[rows, columns] = values
        else:
            weights = sparse().csr_array((values, (rows, columns)), shape=(agents, len(self._held)))

        def gather(out: np.ndarray) -> np.ndarray:
            totals = (weights @ flat).reshape(self._own.shape)
            copy_vectors(totals.transpose(1, 0, 2), out)
            return out

        if self._conditions.on_loss != "sender_keeps":
            return gather
        of_way = np.zeros((len(self._edges.links), 1))
        of_way[ways, 0] = weight
        lost = np.empty((len(of_way), self.chains))
        kept = np.zeros((agents, self.chains))
        back = np.empty_like(self._own)

        def gather_and_keep(out: np.ndarray) -> np.ndarray:
            np.subtract(1.0, self._weather.arrived, out=lost)
            np.multiply(lost, of_way, out=lost)
            self._edges.add_sent(lost, kept)
            np.multiply(self._own, kept[..., None], out=back)
            return np.add(gather(out), back.transpose(1, 0, 2), out=out)

        return gather_and_keep

    def _count_sent(self) -> None:
        """Count what agents send over ways that are up."""
        unicasts, broadcasts = self.unicasts, self.broadcasts
        if self._up is not None:
            self._edges.add_sent(self._up, self._over)
        np.multiply(self._over.T, self._weather.sends.T, out=unicasts)
        np.minimum(unicasts, 1, out=broadcasts)
        if self._vectors > 1:
            unicasts *= self._vectors
            broadcasts *= self._vectors
