r"""Effects: what happens on a network, one small class each.

A vector from agent j arrives at its neighbor i if their link is up and j is awake when it is sent,
it is not lost, and i is awake when it comes, in the same iteration or after a delay. Masks are
drawn from a stream of their own, so that all samplers meet the same faults; they have shape (ways,
chains) or (agents, chains). ``Network`` applies effects in the order of ``ORDER``, whatever the
order in which they are given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from concord.errors import ConcordError
from concord.networks.compressions import Compression
from concord.networks.graph import Graph
from concord.networks.privacy import Privacy
from concord.options import Count, Index, Kind, Share, Some

Direction = Annotated[
    Literal["one_way", "link"], "each direction of a link loses by itself, or both do together"
]


@dataclass
class Traffic:
    """What is up, awake and arrives in an iteration.

    up, arrived: links that are up, and ways over which a vector arrives, (ways, chains).
    awake, sends: agents that are awake, and that send, (agents, chains).
    age: how many iterations ago what arrives was sent; 0 but for delays.
    """

    up: np.ndarray
    arrived: np.ndarray
    awake: np.ndarray
    sends: np.ndarray
    age: int = 0


Draw = Callable[[int, Traffic], None]


class RandomLinks(Kind, tag="kept"):
    """Every link is up with a probability, anew in every iteration."""

    probability: Annotated[Share, "probability that a link is up"]

    def start(self, graph: Graph, chains: int, rng: np.random.Generator) -> Draw:
        """Return what draws the links of an iteration."""

        def draw(k: int, traffic: Traffic) -> None:
            up = rng.random((graph.link_count, chains)) < self.probability
            traffic.up &= up[graph.links]

        return draw


class Matchings(Kind):
    """A random matching is up: each link draws a number, and the lowest around it is up."""

    def start(self, graph: Graph, chains: int, rng: np.random.Generator) -> Draw:
        """Return what draws the links of an iteration; a ConcordError on directed graphs."""
        _refuse_directed(graph)

        def draw(k: int, traffic: Traffic) -> None:
            numbers = rng.random((graph.link_count, chains))[graph.links]
            lowest = numbers == graph.per_receiver(np.minimum, numbers)
            traffic.up &= lowest & lowest[graph.way_back]

        return draw


class RandomPair(Kind, tag="pair"):
    """One link is up, and only its two agents are awake.

    An agent, uniform over all, and one of its neighbors, uniform over these.
    """

    def start(self, graph: Graph, chains: int, rng: np.random.Generator) -> Draw:
        """Return what draws the pair of an iteration; a ConcordError on directed graphs."""
        _refuse_directed(graph)
        first = np.searchsorted(graph.receivers, np.arange(graph.agents))
        chain = np.arange(chains)

        def draw(k: int, traffic: Traffic) -> None:
            agent = rng.integers(0, graph.agents, chains)
            way = first[agent] + (rng.random(chains) * graph.degrees[agent]).astype(np.intp)
            traffic.up[:] = traffic.awake[:] = False
            traffic.up[way, chain] = traffic.up[graph.way_back[way], chain] = True
            traffic.awake[agent, chain] = traffic.awake[graph.senders[way], chain] = True

        return draw


class OnePeer(Kind):
    """Every agent sends to one of its neighbors in turn, the nearest ahead of it by number first.

    In iteration k agent j sends to its neighbor number k modulo the number of its neighbors, which
    must be the same for all agents.
    """

    def start(self, graph: Graph, chains: int, rng: np.random.Generator) -> Draw:
        """Return what sets the links of an iteration; a ConcordError where degrees differ."""
        if len(set(graph.degrees)) > 1:
            raise ConcordError(
                "network.schedule: one_peer needs agents that have equally many neighbors to send "
                f"to, and those of {graph.name} have {graph.degrees.min()} to "
                f"{graph.degrees.max()}; use another schedule or topology"
            )
        return _turns(self.tables(graph))

    def tables(self, graph: Graph) -> list[np.ndarray]:
        """Return which ways are up in turn, (ways,) each."""
        ahead = (graph.receivers - graph.senders) % graph.agents
        peers = np.lexsort((ahead, graph.senders)).reshape(graph.agents, -1)
        return [np.isin(np.arange(len(ahead)), ways) for ways in peers.T]


class GraphsInTurn(Kind, tag="in_turn"):
    """Lists of edges take turns; on directed graphs an edge is from its first agent."""

    graphs: Annotated[
        Some[tuple[tuple[Index, Index], ...]],
        "lists of the edges [i, j] that are up, in turn; on directed graphs from i to j",
    ]

    def start(self, graph: Graph, chains: int, rng: np.random.Generator) -> Draw:
        """Return what sets the links of an iteration."""
        return _turns(self.tables(graph))

    def tables(self, graph: Graph) -> list[np.ndarray]:
        """Return which ways are up in turn, (ways,) each."""
        return [np.isin(graph.pair_numbers, graph.numbers_of(edges)) for edges in self.graphs]


def _turns(tables: list[np.ndarray]) -> Draw:
    """Return what sets the links of an iteration by tables that take turns."""

    def draw(k: int, traffic: Traffic) -> None:
        traffic.up &= tables[k % len(tables)][:, None]

    return draw


class Loss(Kind, tag="bernoulli"):
    """Every vector is lost with the same probability, independently."""

    rate: Annotated[Share, "probability that a vector is lost"]
    direction: Direction

    @property
    def share(self) -> float:
        """The share of vectors that is lost."""
        return self.rate

    def start(self, graph: Graph, chains: int, rng: np.random.Generator) -> Draw:
        """Return what draws the losses of an iteration."""
        which = _which(graph, self.direction)

        def draw(k: int, traffic: Traffic) -> None:
            delivered = rng.random((which.max(initial=-1) + 1, chains)) < 1 - self.rate
            traffic.arrived &= delivered[which]

        return draw


class BurstLoss(Kind, tag="gilbert_elliott"):
    """Losses come in bursts (Gilbert and Elliott): a link is good and loses nothing, or bad.

    It starts stationary; one that never turns is good.
    """

    rate: Annotated[Share, "probability that a vector is lost while it is bad"]
    to_bad: Annotated[Share, "probability that a good one turns bad in an iteration"]
    to_good: Annotated[Share, "probability that a bad one turns good in an iteration"]
    direction: Direction

    @property
    def bad(self) -> float:
        """The share of iterations in which a link is bad."""
        return self.to_bad / (self.to_bad + self.to_good) if self.to_bad else 0.0

    @property
    def share(self) -> float:
        """The share of vectors that is lost, in the long run."""
        return self.rate * self.bad

    def start(self, graph: Graph, chains: int, rng: np.random.Generator) -> Draw:
        """Return what draws the losses of an iteration."""
        return _Bursts(self, _which(graph, self.direction), chains, rng)


class _Bursts:
    """Which links are bad: the memory of losses in bursts."""

    def __init__(
        self, loss: BurstLoss, which: np.ndarray, chains: int, rng: np.random.Generator
    ) -> None:
        self._loss, self._which, self._rng = loss, which, rng
        self._shape = which.max(initial=-1) + 1, chains
        self.bad = rng.random(self._shape) < loss.bad

    def __call__(self, k: int, traffic: Traffic) -> None:
        loss = self._loss
        turns = self._rng.random(self._shape) < np.where(self.bad, loss.to_good, loss.to_bad)
        self.bad = self.bad ^ turns
        delivered = self._rng.random(self._shape) < 1 - loss.rate
        traffic.arrived &= (delivered | ~self.bad)[self._which]


@dataclass(frozen=True)
class Sleep:
    """An agent is awake with a probability; one that sleeps neither moves, sends nor hears."""

    awake: float

    def start(self, graph: Graph, chains: int, rng: np.random.Generator) -> Draw:
        """Return what draws who is awake."""

        def draw(k: int, traffic: Traffic) -> None:
            traffic.awake &= rng.random((graph.agents, chains)) < self.awake

        return draw


class Delay(Kind, tag="fixed"):
    """Every vector takes so many iterations from sender to receiver."""

    iterations: Annotated[Count, "iterations from sender to receiver"]

    def start(self, graph: Graph, chains: int, rng: np.random.Generator) -> Draw:
        """Return what lets arrive what was sent so many iterations ago."""
        return _Postponed(self.iterations, len(graph.senders), chains)


class _Postponed:
    """Which vectors are on their way: the memory of a delay."""

    def __init__(self, iterations: int, ways: int, chains: int) -> None:
        self._sent = np.zeros((iterations + 1, ways, chains), dtype=bool)

    def __call__(self, k: int, traffic: Traffic) -> None:
        slots = len(self._sent)
        self._sent[k % slots] = traffic.arrived
        traffic.age = slots - 1
        traffic.arrived = self._sent[(k - traffic.age) % slots].copy()


@dataclass(frozen=True)
class Compress:
    """Agents send something shorter than a vector.

    compressor: makes it. feedback: agents add what it has left out so far before it is made.
    """

    compressor: Compression
    feedback: bool = False


@dataclass(frozen=True)
class Noise:
    """Normal noise on each coordinate of a vector that is received; sd: its standard deviation."""

    sd: float


Effect = Any  # one of the classes above

# Which links are up; what is lost on them; who is awake; what agents send and hear.
SCHEDULES = (RandomLinks, Matchings, RandomPair, OnePeer, GraphsInTurn)
ORDER = (*SCHEDULES, Loss, BurstLoss, Sleep, Delay, Privacy, Compress, Noise)


def _which(graph: Graph, direction: Direction) -> np.ndarray:
    """Return the number of what each way is lost with: its link, or itself."""
    return graph.links if direction == "link" else np.arange(len(graph.senders))


def _refuse_directed(graph: Graph) -> None:
    if graph.directed:
        raise ConcordError(
            f"network.schedule: in pairs agents hear each other, and the edges of {graph.name} "
            "have a direction; use another schedule, or an undirected topology"
        )
