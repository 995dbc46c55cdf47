r"""What happens on a network: links come and go, vectors get lost or are late, agents sleep.

A vector from agent j arrives at its neighbor i if their link is up and j awake when it is sent, it
is not lost, and i is awake when it comes, in the same iteration or after a delay. The masks of
which arrive are drawn from a stream of their own, so that all samplers meet the same faults.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta

from concord.errors import ConcordError
from concord.networks.compressions import Compression
from concord.networks.topology import Topology
from concord.options import Count, Index, Kind, Options, Share, Some

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


class InTurn(Kind):
    """Graphs take turns."""

    graphs: Annotated[
        Some[tuple[tuple[Index, Index], ...]], "lists of the edges [i, j] that are up, in turn"
    ]


Direction = Annotated[
    Literal["one_way", "link"], "each direction of a link loses by itself, or both do together"
]


class Bernoulli(Kind):
    """Every vector is lost with the same probability, independently."""

    rate: Annotated[Share, "probability that a vector is lost"]
    direction: Direction


class GilbertElliott(Kind):
    """Losses come in bursts: a link is good, and loses nothing, or bad; it starts as it stays."""

    rate: Annotated[Share, "probability that a vector is lost while it is bad"]
    to_bad: Annotated[Share, "probability that a good one turns bad in an iteration"]
    to_good: Annotated[Share, "probability that a bad one turns good in an iteration"]
    direction: Direction


class Fixed(Kind):
    """Every vector takes the same time."""

    iterations: Annotated[Count, "iterations from sender to receiver"]


class Uniform(Kind):
    """Every vector takes 0, 1, ... or at most so many iterations, all equally likely, by itself."""

    most: Annotated[Count, "most iterations from sender to receiver"]


class Conditions(Options):
    """What happens on a network."""

    schedule: Annotated[Static | Kept | Matchings | InTurn, "which links are up, and when"] = (
        Static()
    )
    loss: Annotated[
        Bernoulli | GilbertElliott | None, "how vectors are lost on links that are up; none: never"
    ] = None
    delay: Annotated[
        Fixed | Uniform | None,
        "iterations that vectors take, of which the last one sent counts where several arrive at "
        "once; none: they arrive in the iteration in which they are sent",
    ] = None
    on_loss: Annotated[
        Literal["keep_own_weight", "reuse_last", "skip"],
        "what an agent takes for a vector that has not arrived, for whatever reason: its own, so "
        "that the weight stays its own; the last that has (at first the neighbor's start); or its "
        "own for all of them: it averages if it hears from every neighbor, or not at all",
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

    @property
    def perfect(self) -> bool:
        """Whether all vectors always arrive."""
        return self == Conditions(on_loss=self.on_loss, error_feedback=self.error_feedback)


@dataclass(frozen=True)
class Network(Topology):
    """A topology with what happens on it.

    Attributes
    ----------
    conditions
        What happens.
    masks
        The stream of what arrives: a generator of its own, in the end for one block of chains.
    channels
        Those that a sampler has opened on it.
    """

    conditions: Conditions = field(default_factory=Conditions)
    masks: np.random.Generator | None = None
    channels: list[Any] = field(default_factory=list, compare=False)

    @classmethod
    def of(cls, topology: Topology, conditions: Conditions | None, where: str) -> Topology:
        """Return the network, or the topology itself where nothing happens on it.

        Raises
        ------
        ConcordError
            If nothing can happen since there are no edges, or a graph of the schedule has others.
        """
        if conditions is not None and conditions.error_feedback and not conditions.compression:
            raise ConcordError(
                f"{where}.error_feedback: nothing is left out where nothing is compressed; remove "
                "it, or add compression"
            )
        if conditions is None or conditions.perfect:
            return topology
        if not topology.edges:
            raise ConcordError(
                f"{where}: {topology.name} of {topology.agents} has no edges, so nothing is sent "
                "that could be lost; remove it"
            )
        known = {edge for i, j in topology.edges for edge in ((i, j), (j, i))}
        if isinstance(conditions.schedule, InTurn):
            for turn, graph in enumerate(conditions.schedule.graphs):
                for number, edge in enumerate(graph):
                    if edge not in known:
                        raise ConcordError(
                            f"{where}.schedule.graphs[{turn}][{number}]: {list(edge)} is no edge "
                            f"of the topology, {topology.name}; add it there, or remove it here"
                        )
        own = {own.name: getattr(topology, own.name) for own in fields(topology)}
        return cls(**own, conditions=conditions)


def drawing(topology: Topology, masks: np.random.Generator) -> Topology:
    """Return a network that draws what arrives from a generator; a topology as it is."""
    if not isinstance(topology, Network):
        return topology
    return replace(topology, masks=masks, channels=[])


def check_channels(topology: Topology) -> None:
    """Refuse a sampler that has opened none: nothing would ever get lost on its way.

    Raises
    ------
    ConcordError
        If something can happen on the network.
    """
    if isinstance(topology, Network) and not topology.channels:
        raise ConcordError(
            "network: the sampler opens no channel (concord.networks.channel.connect), so nothing "
            "it sends would get lost; remove network, or open one"
        )


class Edges:
    """The ways that vectors take, ordered by receiver and then by sender.

    Attributes
    ----------
    receivers, senders, links, back
        Of each way, (edges,): its ends, the number of its link, and that of the way back.
    """

    def __init__(self, topology: Topology) -> None:
        adjacency = topology.adjacency()
        self.receivers, self.senders = adjacency.rows, adjacency.columns
        low = np.minimum(self.receivers, self.senders)
        pairs = low * topology.agents + np.maximum(self.receivers, self.senders)
        self.links = np.unique(pairs, return_inverse=True)[1]
        self.back = np.lexsort((self.receivers, self.senders))
        # Agents with ways to them, where these begin, and each way's receiver among these agents.
        self._reached, self._first, self._place = np.unique(
            self.receivers, return_index=True, return_inverse=True
        )

    def of_receiver(self, operation: np.ufunc, values: np.ndarray) -> np.ndarray:
        """Return for each way what the operation makes of the values of all ways to its receiver.

        ``values`` has shape (edges, ...).
        """
        return operation.reduceat(values, self._first, axis=0)[self._place]

    def add(self, values: np.ndarray, out: np.ndarray) -> None:
        """Write for each agent the sum over the ways to it, (agents, ...)."""
        out[self._reached] = np.add.reduceat(values, self._first, axis=0, dtype=out.dtype)


class Weather:
    """What arrives in the chains of a block, iteration by iteration.

    Attributes
    ----------
    edges
        The ways that vectors take.
    up, arrived
        Which links are up and over which ways a vector arrives, (edges, chains).
    age
        How many iterations ago that was sent, (edges, chains); None: in this one.
    iteration
        Which iteration it is.
    reach
        How many iterations a vector takes at most.
    awake
        Which agents are awake, (agents, chains).
    """

    def __init__(self, network: Network, chains: int) -> None:
        if network.masks is None:
            raise ValueError("a network needs a generator of its masks before it is used")
        self.edges, self._conditions = Edges(network), network.conditions
        size, links = len(self.edges.links), len(network.edges)
        rng, options = network.masks, network.conditions
        self._up = _schedule(network, self.edges, chains, rng)
        self._delivered: Draw | None = None
        if options.loss is not None:
            together = options.loss.direction == "link"
            self._delivered = _loss(options.loss, links if together else size, chains, rng)
            self._of_links: Any = self.edges.links if together else slice(None)
        self._post = _Post(options.delay, (size, chains), rng) if options.delay else None
        self.age = self._post.age if self._post else None
        self.iteration, self.reach = 0, self._post.most if self._post else 0
        self._awake = _with_probability(options.awake, network.agents, chains, rng)
        self.up = np.ones((size, chains), dtype=bool)
        self.arrived, self.awake = self.up.copy(), np.ones((network.agents, chains), dtype=bool)

    def draw(self, k: int) -> None:
        """Draw what arrives in iteration k."""
        edges, self.iteration = self.edges, k
        if self._up is not None:
            self.up[:] = self._up(k)
        np.copyto(self.arrived, self.up)
        if self._delivered is not None:
            self.arrived &= self._delivered(k)[self._of_links]
        if self._conditions.awake < 1:
            self.awake[:] = self._awake(k)
            self.arrived &= self.awake[edges.senders]
        if self._post is not None:
            self.arrived[:] = self._post.deliver(k, self.arrived)
        if self._conditions.awake < 1:
            self.arrived &= self.awake[edges.receivers]
        if self._conditions.on_loss == "skip":
            self.arrived[:] = edges.of_receiver(np.logical_and, self.arrived)


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

    def deliver(self, k: int, sent: np.ndarray) -> np.ndarray:
        """Take what is sent in iteration k, and return over which ways something arrives."""
        slots = self.most + 1
        here = k % slots
        np.copyto(self._sent[here], sent)
        if self._rng is not None:
            self._rng.random(out=self._takes[here])
            np.floor(
                np.multiply(self._takes[here], slots, out=self._takes[here]), self._takes[here]
            )
        arrived = np.zeros(sent.shape, dtype=bool)
        for age in range(min(k, self.most), -1, -1):  # of several the one sent last
            slot = (k - age) % slots
            due = self._sent[slot] & (self._takes[slot] == age)
            np.copyto(self.age, age, where=due)
            arrived |= due
        return arrived


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
    ever = max(loss.to_bad + loss.to_good, loss.to_bad)
    bad = _with_probability(loss.to_bad / ever if ever else 0.0, rows, chains, rng)(0)
    turns = np.empty((rows, chains))
    chances = np.array([loss.to_bad, loss.to_good])

    def draw(k: int) -> np.ndarray:
        rng.random(out=turns)
        np.logical_xor(bad, turns < chances[bad.astype(np.intp)], out=bad)
        return np.logical_or(delivered(k), ~bad)

    return draw


def _schedule(network: Network, edges: Edges, chains: int, rng: np.random.Generator) -> Draw | None:
    """Return which ways are up; None: all, always."""
    schedule, links = network.conditions.schedule, len(network.edges)
    if isinstance(schedule, Kept):
        kept = _with_probability(schedule.probability, links, chains, rng)
        return lambda k: kept(k)[edges.links]
    if isinstance(schedule, Matchings):
        numbers = np.empty((links, chains))

        def matching(k: int) -> np.ndarray:
            rng.random(out=numbers)
            own = numbers[edges.links]
            lowest = own == edges.of_receiver(np.minimum, own)
            return lowest & lowest[edges.back]

        return matching
    if isinstance(schedule, InTurn):
        number = {edge: link for link, edge in enumerate(network.edges)}
        table = np.zeros((len(schedule.graphs), links, 1), dtype=bool)
        for turn, graph in zip(table, schedule.graphs, strict=True):
            turn[[number[min(edge), max(edge)] for edge in graph]] = True
        return lambda k: table[k % len(table), edges.links]
    return None


def chances(network: Network) -> tuple[np.ndarray, np.ndarray] | None:
    r"""Return first and second moments of what is drawn in an iteration, by itself.

    With :math:`b = (a, m)`, where a_i is 1 if agent i is awake and m_e if a vector arrives over
    way e: E[b] and E[b b^T], of agents + edges entries. Each b is a product of independent draws
    (agents awake, links up, vectors not lost), so E[b_p b_q] is the product of the chances of all
    draws that p or q needs. None where draws of different iterations or links depend on each other.
    """
    options, edges = network.conditions, Edges(network)
    if not isinstance(options.schedule, (Static, Kept)) or isinstance(options.loss, GilbertElliott):
        return None
    if options.delay is not None:
        return None
    own = np.eye(network.agents)
    of_link = np.eye(len(network.edges))[edges.links]
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
    if options.on_loss == "skip":
        needed[len(own) :] = edges.of_receiver(np.maximum, needed[len(own) :])
    sizes = [part.shape[1] for part in needs]
    logs = np.log(np.maximum(np.repeat(probability, sizes), 1e-300))
    one = needed @ logs
    return np.exp(one), np.exp(one[:, None] + one - (needed * logs) @ needed.T)
