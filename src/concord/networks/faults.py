r"""What happens on a network: links come and go, vectors get lost or are late, agents sleep.

A vector from agent j arrives at its neighbor i if their link is up and j awake when it is sent, it
is not lost, and i is awake when it comes, in the same iteration or after a delay. The masks of
which arrive are drawn from a stream of their own, so that all samplers meet the same faults. How
long all this takes is in ``clock``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta

from concord.errors import ConcordError
from concord.networks.clock import Clock, Compute, Link
from concord.networks.compressions import Compression
from concord.networks.privacy import Privacy
from concord.networks.topology import Topology
from concord.options import Count, Index, Kind, NonNegative, Options, Share, Some

LONGEST = 1000  # ticks that a vector takes

Draw = Callable[[int], np.ndarray]  # k -> which of some rows, (rows, chains), are fine; kept by it


class Static(Kind):
    """All links are always up."""


class Kept(Kind):
    """Every link is up with a probability, anew in every iteration."""

    probability: Annotated[Share, "probability that a link is up"]


class Matchings(Kind):
    """In every iteration a random matching is up: each agent has one link, or none.

    Every link draws a number, and is up if it is the lowest of both its agents.
    """


class Pair(Kind):
    """In every iteration one link is up, and only its two agents are awake.

    An agent, uniform over all, and one of its neighbors, uniform over these.
    """


class OnePeer(Kind):
    """Every agent sends to one of its neighbors in turn, the nearest ahead of it by number first.

    In iteration k agent j sends to its neighbor number k modulo the number of its neighbors, which
    must be the same for all agents.
    """


class InTurn(Kind):
    """Graphs take turns."""

    graphs: Annotated[
        Some[tuple[tuple[Index, Index], ...]],
        "lists of the edges [i, j] that are up, in turn; on directed graphs from i to j",
    ]


Direction = Annotated[
    Literal["one_way", "link"], "each direction of a link loses by itself, or both do together"
]


class Bernoulli(Kind):
    """Every vector is lost with the same probability, independently."""

    rate: Annotated[Share, "probability that a vector is lost"]
    direction: Direction

    @property
    def share(self) -> float:
        """The share of vectors that is lost."""
        return self.rate


class GilbertElliott(Kind):
    """Losses come in bursts: a link is good, and loses nothing, or bad; it starts as it stays."""

    rate: Annotated[Share, "probability that a vector is lost while it is bad"]
    to_bad: Annotated[Share, "probability that a good one turns bad in an iteration"]
    to_good: Annotated[Share, "probability that a bad one turns good in an iteration"]
    direction: Direction

    @property
    def bad(self) -> float:
        """The share of iterations in which it is bad: one that never turns is good."""
        return self.to_bad / (self.to_bad + self.to_good) if self.to_bad else 0.0

    @property
    def share(self) -> float:
        """The share of vectors that is lost, in the long run."""
        return self.rate * self.bad


class Fixed(Kind):
    """Every vector takes the same time."""

    iterations: Annotated[Count, "iterations from sender to receiver"]


class Uniform(Kind):
    """Every vector takes 0, 1, ... or at most so many iterations, all equally likely, by itself."""

    most: Annotated[Count, "most iterations from sender to receiver"]


class Conditions(Options):
    """What happens on a network."""

    schedule: Annotated[
        Static | Kept | Matchings | Pair | OnePeer | InTurn, "which links are up, and when"
    ] = Static()
    loss: Annotated[
        Bernoulli | GilbertElliott | None, "how vectors are lost on links that are up; none: never"
    ] = None
    delay: Annotated[
        Fixed | Uniform | None,
        "iterations that vectors take, of which the last one sent counts where several arrive at "
        "once; none: they arrive in the iteration in which they are sent",
    ] = None
    on_loss: Annotated[
        Literal["keep_own_weight", "reuse_last", "skip", "sender_keeps"],
        "what an agent takes for a vector that has not arrived, for whatever reason: its own, so "
        "that the weight stays its own; the last that has (at first the neighbor's start); or its "
        "own for all of them: it averages if it hears from every neighbor, or not at all; or "
        "nothing, and the sender, which gets to know, has the weight for its own vector",
    ] = "keep_own_weight"
    compression: Annotated[
        Compression | None, "what agents send in place of a vector; none: the vector"
    ] = None
    error_feedback: Annotated[
        bool, "an agent adds to what it compresses what compression has left out so far"
    ] = False
    awake: Annotated[
        Annotated[float, Meta(gt=0, le=1)],
        "probability that an agent is awake in an iteration; one that sleeps neither moves, sends "
        "nor hears",
    ] = 1.0
    noise: Annotated[
        NonNegative,
        "standard deviation of normal noise on each coordinate of a vector that is received",
    ] = 0.0
    privacy: Annotated[
        Privacy | None, "agents hide what they send, by the Gaussian mechanism; none: they do not"
    ] = None
    compute: Annotated[
        Compute | None, "how long gradients take on the simulated clock; none: no time"
    ] = None
    link: Annotated[Link | None, "how long vectors take on the simulated clock; none: no time"] = (
        None
    )
    barrier: Annotated[
        bool,
        "agents wait for the vectors of their neighbors in each iteration; or each goes on at its "
        "own pace, with the last that it has heard, and an iteration is a tick of the clock",
    ] = True

    @property
    def perfect(self) -> bool:
        """Whether all vectors always arrive, at once and as they are, however long that takes."""
        same = ("on_loss", "error_feedback", "compute", "link")
        return self == Conditions(**{name: getattr(self, name) for name in same})

    @property
    def clocked(self) -> bool:
        """Whether anything takes time."""
        return self.compute is not None or self.link is not None

    @property
    def late(self) -> str | None:
        """The option by which agents may hear what others had earlier; None: none does."""
        return "delay" if self.delay is not None else None if self.barrier else "barrier"

    def size(self, dim: int, itemsize: int) -> int:
        """Return the bytes of what is sent for a vector of dim numbers of itemsize bytes."""
        return self.compression.size(dim, itemsize) if self.compression else dim * itemsize

    def check(self, agents: int, where: str) -> None:
        """Refuse options that do not go together."""
        if self.error_feedback and not self.compression:
            raise ConcordError(
                f"{where}.error_feedback: nothing is left out where nothing is compressed; remove "
                "it, or add compression"
            )
        for number, agent in enumerate(self.compute.slow_agents if self.compute else ()):
            if agent >= agents:
                raise ConcordError(
                    f"{where}.compute.slow_agents[{number}]: there is no agent {agent}; name "
                    f"agents 0 to {agents - 1}"
                )
        if self.clocked and self.delay is not None:
            raise ConcordError(
                f"{where}.delay: the clock says how long vectors take; remove it, or compute and "
                "link"
            )
        if self.barrier:
            return
        if self.compute is None:
            raise ConcordError(
                f"{where}.barrier: false says that agents do not wait, but nothing how long they "
                "take for a step; add compute"
            )
        if self.on_loss != "reuse_last":
            raise ConcordError(
                f"{where}.on_loss: agents that do not wait take the last that they have heard, not "
                f"{self.on_loss}; use reuse_last"
            )
        if self.sleeps:
            key = "awake" if self.awake < 1 else "schedule"
            raise ConcordError(
                f"{where}.{key}: without a barrier the clock says when agents step; remove it"
            )

    @property
    def sleeps(self) -> bool:
        """Whether agents sleep at times."""
        return self.awake < 1 or isinstance(self.schedule, Pair)


@dataclass(frozen=True)
class Timed(Topology):
    """A topology on which every vector arrives as it is, with a clock that says when.

    conditions: what happens.
    masks, times: the streams of what arrives and of how long gradients take: generators of their
    own, in the end for one block of chains.
    channels: those that a sampler has opened on it.
    """

    conditions: Conditions = field(default_factory=Conditions)
    masks: np.random.Generator | None = None
    times: np.random.Generator | None = None
    channels: list[Any] = field(default_factory=list, compare=False)

    def clock(self, edges: Edges, chains: int, size: float, vectors: int) -> Clock | None:
        """Return the clock of so many vectors of so many bytes; None: nothing takes time."""
        if not self.conditions.clocked:
            return None
        if self.times is None:
            raise ValueError("a clock needs a generator of its times before it is used")
        compute, link = self.conditions.compute, self.conditions.link
        clock = Clock(compute, link, edges, (self.agents, chains), size, self.times, vectors)
        if not self.conditions.barrier and clock.ticks > LONGEST:
            raise ConcordError(
                f"network.link: without a barrier a vector is on its way for {clock.ticks:g} ticks "
                f"of the clock, and all that is under way is kept; at most {LONGEST} can be, so "
                "use a faster link, slower gradients or less spread"
            )
        return clock


@dataclass(frozen=True)
class Network(Timed):
    """A topology on which vectors may not arrive, or not at once, or not as they are."""

    @property
    def one_by_one(self) -> bool:
        """Whether the schedule lets an agent hear at most one neighbor in an iteration."""
        edges = Edges(self)
        if (table := turns(self, edges)) is None:
            return isinstance(self.conditions.schedule, (Matchings, Pair))
        heard = edges.of_receiver(np.add, table[..., 0].T.astype(int))
        return bool((heard <= 1).all())

    @classmethod
    def of(cls, topology: Topology, conditions: Conditions | None, where: str) -> Topology:
        """Return the network, or the topology where nothing happens on it, ``Timed`` by a clock.

        A ConcordError if nothing can happen since there are no edges, the schedule does not suit
        the graph, or conditions do not go together.
        """
        if conditions is None:
            return topology
        if topology.messages is not None and conditions != Conditions():
            raise ConcordError(
                f"{where}: {topology.name} averages over all agents at once, and what happens on "
                "the way there and back is not modelled; remove it, or use topology complete"
            )
        conditions.check(topology.agents, where)
        own = {own.name: getattr(topology, own.name) for own in fields(topology)}
        if conditions.perfect:
            return Timed(**own, conditions=conditions) if conditions.clocked else topology
        if not topology.edges:
            raise ConcordError(
                f"{where}: {topology.name} of {topology.agents} has no edges, so nothing is sent "
                "that could be lost; remove it"
            )
        if conditions.on_loss == "sender_keeps" and conditions.delay is not None:
            raise ConcordError(
                f"{where}.on_loss: sender_keeps would count what is still on its way twice; use "
                "another one, or remove delay"
            )
        _check_schedule(topology, conditions.schedule, f"{where}.schedule")
        return cls(**own, conditions=conditions)


def _check_schedule(topology: Topology, schedule: Any, where: str) -> None:
    if isinstance(schedule, (Matchings, Pair)) and topology.directed:
        raise ConcordError(
            f"{where}: in pairs agents hear each other, and the edges of {topology.name} have a "
            "direction; use another schedule, or an undirected topology"
        )
    if isinstance(schedule, OnePeer) and len(set(topology.degrees)) > 1:
        raise ConcordError(
            f"{where}: one_peer needs agents that have equally many neighbors to send to, and "
            f"those of {topology.name} have {topology.degrees.min()} to {topology.degrees.max()}; "
            "use another schedule or topology"
        )
    known = set(topology.edges)
    for turn, graph in enumerate(schedule.graphs if isinstance(schedule, InTurn) else ()):
        for number, edge in enumerate(graph):
            if (edge if topology.directed else (min(edge), max(edge))) not in known:
                raise ConcordError(
                    f"{where}.graphs[{turn}][{number}]: {list(edge)} is no edge of the topology, "
                    f"{topology.name}; add it there, or remove it here"
                )


def drawing(
    topology: Topology, masks: np.random.Generator, times: np.random.Generator | None = None
) -> Topology:
    """Return a network that draws what happens from generators; a topology as it is.

    ``times`` are those of gradients, for networks with a clock.
    """
    if not isinstance(topology, Timed):
        return topology
    return replace(topology, masks=masks, times=times, channels=[])


def check_channels(topology: Topology) -> None:
    """Refuse a sampler that has opened none: nothing would ever get lost on its way.

    A ConcordError if something can happen on the network.
    """
    if isinstance(topology, Timed) and not topology.channels:
        raise ConcordError(
            "network: the sampler opens no channel (concord.networks.channel.connect), so nothing "
            "would happen to what it sends; remove network, or open one"
        )


class Edges:
    """The ways that vectors take, ordered by receiver and then by sender.

    receivers, senders, links: of each way, (edges,): its ends, and the number of the link that
    joins them, both ways. by_sender: the ways ordered by sender and then by receiver, (edges,): in
    an undirected graph, of each way the way back.
    """

    def __init__(self, topology: Topology) -> None:
        adjacency = topology.adjacency()
        self.receivers, self.senders = adjacency.rows, adjacency.columns
        low = np.minimum(self.receivers, self.senders)
        pairs = low * topology.agents + np.maximum(self.receivers, self.senders)
        self.links = np.unique(pairs, return_inverse=True)[1]
        self.by_sender = np.lexsort((self.receivers, self.senders))
        self._sending, self._first_sent = np.unique(self.senders[self.by_sender], return_index=True)
        # Agents with ways to them, where these begin, and each way's receiver among these agents.
        self._reached, self._first, self._place = np.unique(
            self.receivers, return_index=True, return_inverse=True
        )

    def of_receiver(self, operation: np.ufunc, values: np.ndarray) -> np.ndarray:
        """Return for each way what the operation makes of the values of all ways to its receiver.

        ``values`` has shape (edges, ...).
        """
        return operation.reduceat(values, self._first, axis=0)[self._place]

    def add_sent(self, values: np.ndarray, out: np.ndarray) -> None:
        """Write for each agent the sum over the ways from it, (agents, ...)."""
        sorted_values = values[self.by_sender]
        out[self._sending] = np.add.reduceat(
            sorted_values, self._first_sent, axis=0, dtype=out.dtype
        )

    def last(self, values: np.ndarray, out: np.ndarray) -> None:
        """Write for each agent the most of the ways to it, (agents, ...); where none is, -inf."""
        out.fill(-np.inf)
        if self._reached.size:
            out[self._reached] = np.maximum.reduceat(values, self._first, axis=0)


class Weather:
    """What arrives in the chains of a block, iteration by iteration.

    edges: the ways that vectors take.
    up, arrived: which links are up and over which ways a vector arrives, (edges, chains).
    age: how many iterations ago that was sent, (edges, chains); None: in this one.
    iteration: which iteration it is.
    reach: how many iterations a vector takes at most.
    awake: which agents are awake, (agents, chains): they move. Without a barrier, those whose
    gradients are ready.
    varies: whether some may not be.
    sends: which agents send, (agents, chains): those that are awake; without a barrier those that
    begin again, since they have moved in the iteration before.
    """

    def __init__(self, network: Network, chains: int, clock: Clock | None = None) -> None:
        if network.masks is None:
            raise ValueError("a network needs a generator of its masks before it is used")
        self.edges, self._conditions = Edges(network), network.conditions
        size, links = len(self.edges.links), 1 + int(self.edges.links.max())
        rng, options = network.masks, network.conditions
        self._up = _schedule(network, self.edges, chains, rng)
        self._paired = _pairs(network, self.edges, chains, rng)
        self._delivered: Draw | None = None
        if options.loss is not None:
            together = options.loss.direction == "link"
            self._delivered = _loss(options.loss, links if together else size, chains, rng)
            self._of_links: Any = self.edges.links if together else slice(None)
        delay, self._clock = options.delay, None if options.barrier else clock
        if self._clock is not None and self._clock.ticks:
            delay = Fixed(self._clock.ticks)
        self._post = _Post(delay, (size, chains), rng) if delay else None
        self.age = self._post.age if self._post else None
        self.iteration, self.reach = 0, self._post.most if self._post else 0
        self._awake = _with_probability(options.awake, network.agents, chains, rng)
        self.up = np.ones((size, chains), dtype=bool)
        self.arrived, self.awake = self.up.copy(), np.ones((network.agents, chains), dtype=bool)
        self.varies = options.sleeps or self._clock is not None
        self.sends = self.awake if self._clock is None else self.awake.copy()
        self._pair, self._idle = self.awake.copy(), np.empty_like(self.up)

    def draw(self, k: int) -> None:
        """Draw what arrives in iteration k."""
        edges, self.iteration = self.edges, k
        if self._up is not None:
            self.up[:] = self._up(k)
        if self._paired is not None:
            self._paired(self.up, self._pair)
        np.copyto(self.arrived, self.up)
        if self._delivered is not None:
            self.arrived &= self._delivered(k)[self._of_links]
        if self._clock is not None:
            np.copyto(self.sends, self.awake)
            self._clock.pass_tick(self.awake)
        elif self._conditions.awake < 1:
            self.awake[:] = self._awake(k)
        if self._paired is not None:
            np.logical_and(
                self.awake if self._conditions.awake < 1 else True, self._pair, self.awake
            )
        if self.varies:
            self.arrived &= self.of(self.sends, edges.senders)
        if self._post is not None:
            self._post.deliver(k, self.arrived)
        if self._conditions.sleeps:
            self.arrived &= self.of(self.awake, edges.receivers)
        if self._conditions.on_loss == "skip":
            self.arrived[:] = edges.of_receiver(np.logical_and, self.arrived)

    def of(self, agents: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Return what holds of the agents at one end of the ways, (edges, chains); kept by it."""
        return np.take(agents, ends, axis=0, out=self._idle, mode="clip")


class _Post:
    """Vectors on their way: which were sent, and how long each takes."""

    def __init__(
        self, delay: Fixed | Uniform, shape: tuple[int, int], rng: np.random.Generator
    ) -> None:
        self._rng = rng if isinstance(delay, Uniform) else None
        self.most = delay.most if isinstance(delay, Uniform) else delay.iterations
        self._sent = np.zeros((self.most + 1, *shape), dtype=bool)
        self._takes = np.full(self._sent.shape, float(self.most))
        self.age = np.zeros(shape, dtype=np.intp)
        self._due = np.empty(shape, dtype=bool)

    def deliver(self, k: int, sent: np.ndarray) -> None:
        """Take what is sent in iteration k, and write over which ways something arrives."""
        slots, due = self.most + 1, self._due
        here = k % slots
        np.copyto(self._sent[here], sent)
        if self._rng is not None:
            self._rng.random(out=self._takes[here])
            np.floor(
                np.multiply(self._takes[here], slots, out=self._takes[here]), self._takes[here]
            )
        sent.fill(False)
        for age in range(min(k, self.most), -1, -1):  # of several the one sent last
            slot = (k - age) % slots
            np.equal(self._takes[slot], age, out=due)
            np.logical_and(due, self._sent[slot], out=due)
            np.copyto(self.age, age, where=due)
            np.logical_or(sent, due, out=sent)


def _with_probability(share: float, rows: int, chains: int, rng: np.random.Generator) -> Draw:
    uniform, found = np.empty((rows, chains)), np.empty((rows, chains), dtype=bool)

    def draw(k: int) -> np.ndarray:
        rng.random(out=uniform)
        return np.less(uniform, share, out=found)

    return draw


def _loss(
    loss: Bernoulli | GilbertElliott, rows: int, chains: int, rng: np.random.Generator
) -> Draw:
    delivered = _with_probability(1 - loss.rate, rows, chains, rng)
    if isinstance(loss, Bernoulli):
        return delivered
    bad = _with_probability(loss.bad, rows, chains, rng)(0)
    turns = np.empty((rows, chains))
    chances = np.array([loss.to_bad, loss.to_good])

    def draw(k: int) -> np.ndarray:
        rng.random(out=turns)
        np.logical_xor(bad, turns < chances[bad.astype(np.intp)], out=bad)
        return np.logical_or(delivered(k), ~bad)

    return draw


def _schedule(network: Network, edges: Edges, chains: int, rng: np.random.Generator) -> Draw | None:
    """Return which ways are up; None: all, always."""
    schedule, links = network.conditions.schedule, 1 + int(edges.links.max())
    if isinstance(schedule, Kept):
        kept = _with_probability(schedule.probability, links, chains, rng)
        return lambda k: kept(k)[edges.links]
    if isinstance(schedule, Matchings):
        numbers = np.empty((links, chains))

        def matching(k: int) -> np.ndarray:
            rng.random(out=numbers)
            own = numbers[edges.links]
            lowest = own == edges.of_receiver(np.minimum, own)
            return lowest & lowest[edges.by_sender]

        return matching
    if (table := turns(network, edges)) is not None:
        return lambda k: table[k % len(table)]
    return None


def turns(network: Network, edges: Edges) -> np.ndarray | None:
    """Return which ways are up in turn, (turns, edges, 1); None without such a schedule."""
    schedule, agents = network.conditions.schedule, network.agents
    if isinstance(schedule, OnePeer):
        ahead = np.lexsort(((edges.receivers - edges.senders) % agents, edges.senders))
        peers = ahead.reshape(agents, -1)
        table = np.zeros((peers.shape[1], len(ahead), 1), dtype=bool)
        table[np.arange(len(table)), peers] = True
        return table
    if not isinstance(schedule, InTurn):
        return None
    ways = {way: e for e, way in enumerate(zip(edges.senders, edges.receivers, strict=True))}
    table = np.zeros((len(schedule.graphs), len(ways), 1), dtype=bool)
    for turn, graph in zip(table, schedule.graphs, strict=True):
        turn[[ways[edge] for edge in graph]] = True
        if not network.directed:
            turn[[ways[edge[::-1]] for edge in graph]] = True
    return table


def _pairs(
    network: Network, edges: Edges, chains: int, rng: np.random.Generator
) -> Callable[[np.ndarray, np.ndarray], None] | None:
    """Return ``draw(up, pair)``, of a pair in each chain; None without such a schedule."""
    if not isinstance(network.conditions.schedule, Pair):
        return None
    first = np.searchsorted(edges.receivers, np.arange(network.agents))
    chain = np.arange(chains)

    def draw(up: np.ndarray, pair: np.ndarray) -> None:
        agent = rng.integers(0, network.agents, chains)
        way = first[agent] + (rng.random(chains) * network.degrees[agent]).astype(np.intp)
        up.fill(False)
        up[way, chain] = up[edges.by_sender[way], chain] = True
        pair.fill(False)
        pair[agent, chain] = pair[edges.senders[way], chain] = True

    return draw


def _matched(network: Network, edges: Edges) -> np.ndarray:
    r"""Return the chances that two ways are both up in a random matching, (edges, edges).

    A link is up if its number is the lowest of its a links around and itself: with chance 1/a. Two
    that share no agent are both up if the lowest of the u around either is one of them, and the
    other the lowest of its own: :math:`(1/a + 1/b) / u`.
    """
    touches = np.zeros((1 + int(edges.links.max()), network.agents))
    touches[edges.links, edges.receivers] = 1
    near = (touches @ touches.T > 0).astype(float)
    around = near.sum(axis=1)
    union = around[:, None] + around - near @ near
    both = np.where(near > 0, 0.0, (1 / around[:, None] + 1 / around) / union)
    np.fill_diagonal(both, 1 / around)
    return both[np.ix_(edges.links, edges.links)]


def chances(network: Network) -> Callable[[int], tuple[np.ndarray, np.ndarray]] | None:
    r"""Return first and second moments of what is drawn in iteration k, by itself.

    With :math:`b = (a, m)`, where a_i is 1 if agent i is awake and m_e if a vector arrives over
    way e: E[b] and E[b b^T], of agents + edges entries. Each b is a product of independent draws
    (agents awake, links up, vectors not lost), so E[b_p b_q] is the product of the chances of all
    draws that p or q needs; a pair, or a turn, that is drawn besides is averaged over. None where
    draws of different iterations or links depend on each other.
    """
    options, edges = network.conditions, Edges(network)
    skips, matched = options.on_loss == "skip", isinstance(options.schedule, Matchings)
    if options.late or isinstance(options.loss, GilbertElliott) or (matched and skips):
        return None
    own = np.eye(network.agents)
    of_link = np.eye(1 + int(edges.links.max()))[edges.links]
    awake = np.concatenate([own, np.maximum(own[edges.receivers], own[edges.senders])])
    needs, probability = [awake], [options.awake]
    if isinstance(options.schedule, Kept):
        needs.append(np.concatenate([np.zeros((len(own), of_link.shape[1])), of_link]))
        probability.append(options.schedule.probability)
    if options.loss is not None:
        each = of_link if options.loss.direction == "link" else np.eye(len(edges.links))
        needs.append(np.concatenate([np.zeros((len(own), each.shape[1])), each]))
        probability.append(1 - options.loss.rate)
    needed = np.concatenate(needs, axis=1)
    if skips:
        needed[len(own) :] = edges.of_receiver(np.maximum, needed[len(own) :])
    sizes = [part.shape[1] for part in needs]
    logs = np.log(np.maximum(np.repeat(probability, sizes), 1e-300))
    one = needed @ logs
    first, second = np.exp(one), np.exp(one[:, None] + one - (needed * logs) @ needed.T)

    if matched:
        up, size = _matched(network, edges), len(own)
        first[size:] *= np.diag(up)
        second[:size, size:] *= np.diag(up)
        second[size:, :size] *= np.diag(up)[:, None]
        second[size:, size:] *= up

    def of_turns(shares: np.ndarray, ways: np.ndarray, agents: np.ndarray) -> tuple:
        """Average over turns, of which ways (edges, turns) and agents (agents, turns) are up."""
        if skips:
            ways = edges.of_receiver(np.minimum, ways)
        up = np.concatenate([agents, ways])
        return first * (up @ shares), second * ((up * shares) @ up.T)

    if isinstance(options.schedule, Pair):
        ends = np.array(network.edges)
        shares = (1 / network.degrees)[ends].sum(axis=1) / network.agents
        pair = np.zeros((network.agents, len(ends)))
        pair[ends.T, np.arange(len(ends))] = 1
        moments = of_turns(shares, pair[edges.receivers] * pair[edges.senders], pair)
        return lambda k: moments
    if (table := turns(network, edges)) is not None:
        once, everybody = np.ones(1), np.ones((network.agents, 1))
        each_turn = [of_turns(once, turn.astype(float), everybody) for turn in table]
        return lambda k: each_turn[k % len(each_turn)]
    return lambda k: (first, second)
