"""The channel: a sampler sends vectors through it, and gets back those that arrived.

``connect`` opens the channel of a network for arrays of one shape. Samplers use nothing else of
the network in a step.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any, Self

import numpy as np

from concord.errors import ConcordError
from concord.libraries import sparse
from concord.networks import mixing
from concord.networks.clock import Clock
from concord.networks.compressions import Compression
from concord.networks.conditions import Static
from concord.networks.edges import Edges
from concord.networks.matrix import FEW, AgentMatrix, Apply, copy_vectors
from concord.networks.shares import lasting, rows_of
from concord.networks.topology import Topology
from concord.networks.transports import Part
from concord.networks.weather import Weather
from concord.resume import keep

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

    own: which of the network's agents are here, whose rows arrays have; those of others, where
    there are any, come from other processes (``transports``).
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
        self._conditions, self._part, self._start = topology.conditions, topology.part, x0
        self.own = topology.own
        self._holds: dict[tuple[bytes, ...], Hold] = {}
        sent = topology.degrees[self.own]
        if topology.messages is not None:
            self.unicasts = self.broadcasts = vectors * np.array(topology.messages)[self.own]
        elif sent.strides == (0,):  # all alike, and held once
            self.unicasts, self.broadcasts = (
                np.broadcast_to(vectors * each, len(sent)) for each in (sent[0], min(sent[0], 1))
            )
        else:
            self.unicasts, self.broadcasts = vectors * sent, vectors * np.minimum(sent, 1)
        for fixed in (self.unicasts, self.broadcasts):
            fixed.flags.writeable = False
        size = size or self._conditions.size(self.dim, x0.itemsize)
        if self._part is not None:
            self._part.bytes = vectors * size
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
        if self._part is None:
            return mixing.mixer(weights, self.chains, self.dim, order)
        if order != "simultaneous":
            raise ConcordError(
                f"agents that move {order} cannot be divided over ranks, because they wait for "
                "each other one by one; use simultaneous, or one process"
            )
        return mixing.at_once(*self._divided(weights, sends))

    def _divided(
        self, weights: AgentMatrix, sends: bool
    ) -> tuple[Apply, Callable[..., bool] | None]:
        """Return the product, and the one with a kick, where others' vectors are to come first."""
        if weights.in_order(self.dim):
            agents, mine = weights.part(self.own)
            assert self._part is not None
            known = self.topology.adjacency().part(self.own)[0]
            if not sends and not all(self._part.of_all(np.array_equal(agents, known))):
                raise ConcordError(
                    "these options cannot be divided over ranks, because agents use vectors that "
                    "nobody sends them, a slip of released code; use others, or one process"
                )
            hold, weigh = self._hold(agents), mine.operator(self.chains, self.dim)
            moved = mine.kicked(self.dim)

            def kicked(x: np.ndarray, *rest: Any) -> bool:
                *_, fused, _, _ = rest  # then the kernel takes row i of x for agent i's own
                return moved is not None and not fused and moved(hold(x, sends), *rest)

            return lambda x, out: weigh(hold(x, sends), out), kicked
        hold, whole = self._hold(np.arange(weights.agents)), weights.operator(self.chains, self.dim)
        every = np.empty((self.chains, weights.agents, self.dim), self._start.dtype)

        def weighed(x: np.ndarray, out: np.ndarray) -> np.ndarray:
            np.copyto(out, whole(hold(x, sends), every)[:, self.own])
            return out

        return weighed, None

    def _hold(self, agents: np.ndarray) -> Hold:
        """Return what holds vectors of these agents, once for all weights."""
        assert self._part is not None  # or nothing is held
        key = self._part.of_all(sha256(agents.tobytes()).digest())
        if key not in self._holds:
            self._holds[key] = Hold(self._part, self._start, 1, agents)
        return self._holds[key]

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
        moves: Any = True if info.active is None else self._of_all(info.active).astype(bool)
        gradients = 1 if info.gradients is None else self._of_all(info.gradients)
        if self._conditions.barrier:
            share = state[0].shape[-1] / self.dim  # of vectors whose bytes are known
            sent = share * self._of_all(info.broadcasts)
            self.clock.wait(sent, moves, gradients, self._up)
        else:
            self.clock.begin(k, moves, gradients)
        return state, info._replace(clock=self.clock)

    def _of_all(self, rows: np.ndarray) -> Any:
        """Return what is of the agents here, (..., own agents), of all agents, (agents, ...)."""
        if self._part is not None:
            rows = np.concatenate(self._part.of_all(rows), axis=-1)
        return np.atleast_2d(rows).T


class Hold:
    """Vectors of agents here and of others, whose are exchanged, ordered by agent.

    part: of this process. x: of its agents, along an axis. agents: whose are held.
    """

    def __init__(self, part: Part, x: np.ndarray, axis: int, agents: np.ndarray) -> None:
        shape = list(x.shape)
        shape[axis] = len(agents)
        self.held = np.empty(shape, x.dtype)
        first = int(np.searchsorted(agents, part.own.start))
        own = slice(first, first + x.shape[axis])
        self.own = self.held[(*(slice(None),) * axis, own)]
        self._exchange = part.exchange(self.held, axis, agents)
        known = part.sent
        self(x)
        part.sent = known  # neighbors know how agents start
        keep(self.held)

    def __call__(self, x: np.ndarray, sends: bool = True) -> np.ndarray:
        """Return all vectors, with these of the agents here; others' are what they sent last."""
        np.copyto(self.own, x)
        if sends:
            self._exchange()
        return self.held


class Faulty(Channel):
    """A channel on which vectors get lost, late or compressed, between agents that may sleep.

    ``held`` has the agents' own vectors, then what each receiver takes for what each way should
    have brought, (agents + edges, chains, dim): those here, or on small networks all, since their
    sums depend on it. Without a barrier vectors arrive in ``mail``, which
    agents take when they begin with a step.
    """

    def __init__(self, network: Topology, x0: np.ndarray, vectors: int, size: float | None) -> None:
        super().__init__(network, x0, vectors, size)
        self._weather = Weather(network, self.chains, self.clock)
        self._edges = edges = self._weather.edges
        small = network.agents <= FEW
        self._mine = slice(0, network.agents) if small else self.own  # whose vectors are made here
        first = self._mine.start
        self._rows = slice(self.own.start - first, self.own.stop - first)  # of those, agents here
        before = int(np.searchsorted(edges.agents, first))
        self._known = slice(before, before + self._mine.stop - first)  # those, among all known
        self._here = slice(before + self._rows.start, before + self._rows.stop)  # agents here
        ends = np.searchsorted(edges.receivers, (first, self._mine.stop))
        self._ways = slice(*ends.tolist())  # to them
        self._arrived = self._weather.arrived[self._ways]
        self._receivers = edges.receivers[self._ways] - first
        self._open(x0)
        scheduled = self._conditions.schedule != Static()
        self._varies = self._weather.varies or scheduled
        if self._varies:
            self._unicasts = np.zeros((self.chains, len(edges.agents)), dtype=np.int64)
            self._broadcasts = np.zeros_like(self._unicasts)
            self._over = np.zeros_like(self._unicasts.T)  # ways from each agent that are up
            edges.add_sent(self._weather.up, self._over)
            self.unicasts, self.broadcasts = (
                counts[:, self._here] for counts in (self._unicasts, self._broadcasts)
            )
        if scheduled:
            self._up = self._weather.up
        if self._weather.varies:
            self.active = self._weather.awake.T[:, self._here]
        self._asleep = np.empty_like(self._weather.awake)
        self._kept: list[np.ndarray] = []  # of the state, where agents sleep

    def _open(self, x0: np.ndarray) -> None:
        """Allocate what is held of vectors like x0, which neighbors know."""
        agents, senders = self._mine.stop - self._mine.start, self._edges.senders[self._ways]
        self._held = np.empty((agents + len(senders), self.chains, self.dim), x0.dtype)
        self._own, self._inbox = self._held[:agents], self._held[agents:]
        self._sent = np.empty_like(self._inbox)
        self._due = np.empty_like(self._arrived)
        told = np.union1d(senders, np.arange(self._mine.start, self._mine.stop))
        self._senders = np.searchsorted(told, senders)
        self._told = None  # what is told between processes
        if self._part is not None:
            self._told = Hold(self._part, x0.transpose(1, 0, 2), 0, told)
        self._encode = self._encoder(x0.dtype)
        slots = self._weather.reach + 1 if self._weather.reach else 0
        sent = self._own if self._told is None else self._told.held
        self._past = np.empty((slots, *sent.shape), x0.dtype)  # what was sent, by iteration
        self._enter(x0)
        sent.take(self._senders, 0, self._inbox, "clip")
        self._mail = self._inbox if self._conditions.barrier else self._inbox.copy()
        keep(self._held, self._past, self._mail)

    def _enter(self, x: np.ndarray) -> None:
        """Take the vectors of the agents here, and of all others on small networks."""
        vectors = x.transpose(1, 0, 2)
        if self._told is not None and self._mine != self.own:
            vectors = self._told(vectors)
        copy_vectors(vectors, self._own)

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
        sleeping = self._asleep.T[:, self._here]
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
            self._own.take(self._receivers, 0, self._inbox, "clip")
        if self._noise is not None:
            self._noises.standard_normal(out=self._noise, dtype=self._noise.dtype)
            np.multiply(self._noise, self._conditions.noise, out=self._noise)
        code, weather, due = self._encode(), self._weather, self._due
        if self._told is not None and self._mine == self.own:
            code = self._told(code)
        if weather.age is None:
            self._take(code, self._arrived)
        else:
            np.copyto(self._past[weather.iteration % len(self._past)], code)
            for age in weather.ages:
                sent = self._past[(weather.iteration - age) % len(self._past)]
                np.equal(weather.age[self._ways], age, out=due)
                self._take(sent, np.logical_and(due, self._arrived, out=due))
        if self._mail is not self._inbox:
            begin = weather.of(weather.sends, weather.receivers)[self._ways]
            copy_vectors(self._mail, self._inbox, begin)

    def _take(self, sent: np.ndarray, arrived: np.ndarray) -> None:
        """Put what agents sent, (agents, chains, dim), where it arrives, (edges, chains)."""
        heard = self._mail if self._weather.calm else self._sent
        sent.take(self._senders, 0, heard, "clip")
        if self._noise is not None:
            np.add(heard, self._noise, out=heard)
        if heard is not self._mail:
            copy_vectors(heard, self._mail, arrived)

    def _encoder(self, dtype: Any) -> Callable[[], np.ndarray]:
        """Return ``encode()``: what agents send for their own vectors, (agents, chains, dim)."""
        options, own = self._conditions, self._own
        self._noise = np.empty_like(self._inbox) if options.noise else None
        if not (options.compression or options.privacy or options.noise):
            return lambda: own
        # Streams of their own, so that masks do not depend on what is sent.
        *streams, noises = list[Any](self._weather.rng.spawn(3))
        keep(*map(lasting, (*streams, noises)))
        edges, divided = self._edges, self._part is not None
        rounding, hiding = (rows_of(rng, edges.agents, self._known, divided) for rng in streams)
        self._noises = rows_of(noises, edges.receivers, self._ways, divided)
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
        left, whole, sends = np.zeros_like(x), np.empty_like(x), self._weather.sends[self._known]

        keep(left)

        def with_feedback() -> None:
            np.add(x, left, out=whole)
            compress(whole, rng, code)
            np.subtract(whole, code, out=whole)
            copy_vectors(whole, left, sends)

        return with_feedback

    def _gather(self, matrix: AgentMatrix) -> Callable[[np.ndarray], np.ndarray]:
        """Return ``gather(out)``, the matrix times what agents have and what they took."""
        agents, flat = len(self._own), self._held.reshape(len(self._held), -1)
        receivers, senders, weight = matrix.entries(self._edges.agents)
        off, diagonal = receivers != senders, np.zeros(len(self._edges.agents))
        diagonal[self._edges.places(receivers[~off])] = weight[~off]
        receivers, weight = receivers[off], weight[off]
        ways, own = self._edges.ways(receivers, senders[off]), np.arange(agents)
        here = slice(*np.searchsorted(ways, (self._ways.start, self._ways.stop)).tolist())
        rows = np.concatenate([own, receivers[here] - self._mine.start])
        columns = np.concatenate([own, agents + ways[here] - self._ways.start])
        values = np.concatenate([diagonal[self._known], weight[here]])
        if self.topology.agents <= FEW:
            weights = np.zeros((agents, len(self._held)))
            weights[rows, columns] = values
        else:
            weights = sparse().csr_array((values, (rows, columns)), shape=(agents, len(self._held)))

        def gather(out: np.ndarray) -> np.ndarray:
            totals = (weights @ flat).reshape(self._own.shape)
            copy_vectors(totals[self._rows].transpose(1, 0, 2), out)
            return out

        if self._conditions.on_loss != "sender_keeps":
            return gather
        of_way = np.zeros((len(self._edges.links), 1))
        of_way[ways, 0] = weight
        lost = np.empty((len(of_way), self.chains))
        kept = np.zeros((len(diagonal), self.chains))
        own_vectors = self._own[self._rows]
        back = np.empty_like(own_vectors)

        def gather_and_keep(out: np.ndarray) -> np.ndarray:
            np.subtract(1.0, self._weather.arrived, out=lost)
            np.multiply(lost, of_way, out=lost)
            self._edges.add_sent(lost, kept)
            np.multiply(own_vectors, kept[self._here, :, None], out=back)
            return np.add(gather(out), back.transpose(1, 0, 2), out=out)

        return gather_and_keep

    def _count_sent(self) -> None:
        """Count what agents send over ways that are up."""
        unicasts, broadcasts = self._unicasts, self._broadcasts
        if self._up is not None:
            self._edges.add_sent(self._up, self._over)
        np.multiply(self._over.T, self._weather.sends.T, out=unicasts)
        np.minimum(unicasts, 1, out=broadcasts)
        if self._vectors > 1:
            unicasts *= self._vectors
            broadcasts *= self._vectors
