r"""What may happen to links and vectors of a network, one small class each.

A vector from agent j arrives at its neighbor i if their link is up and j is awake when it is sent,
the vector is not lost, and i is awake when it arrives, in the same iteration or after a delay.

Masks have shape (arcs, chains) or (agents, chains), and are drawn from a stream of their own, so
that all samplers meet the same faults (``channels``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from concord.errors import ConcordError
from concord.networks.graph import Graph
from concord.options import Count, Index, Kind, Share, Some

Direction = Annotated[
    Literal["one_way", "link"], "each direction of a link loses by itself, or both do together"
]


@dataclass
class Traffic:
    """The state of all links and agents in one iteration.

    up, arrived: arcs whose link is up, and arcs over which a vector arrives, masks (arcs, chains).

    awake, sends: agents that are awake, and agents that send, masks (agents, chains).

    age: how many iterations ago the arriving vectors were sent; 0 without a delay.
    """

    up: np.ndarray
    arrived: np.ndarray
    awake: np.ndarray
    sends: np.ndarray
    age: int = 0


class Schedule(Kind):
    """A schedule of the links that are up: in turn by tables, or drawn in every iteration.

    says: how often links are up, in a legend.
    """

    says: ClassVar[str] = "up at some times"

    def check(self, graph: Graph, where: str) -> None:
        """Raise a ConcordError if the schedule does not suit a graph; ``where``: file and key."""

    def tables(self, graph: Graph) -> list[np.ndarray]:
        """Return one mask (arcs,) for each turn: the arcs that are up in it. [] if it is drawn."""
        return []

    def draw(self, traffic: Traffic, graph: Graph, rng: np.random.Generator) -> None:
        """Draw the links that are up, and mark all others as down in ``traffic.up``."""


class Static(Schedule):
    """A schedule under which all links are up in all iterations."""

    def tables(self, graph: Graph) -> list[np.ndarray]:
        """Return one mask (arcs,) for each turn: the arcs that are up in it."""
        return [np.ones(len(graph.senders), dtype=bool)]


class OnePeer(Schedule):
    """A schedule under which each agent sends to one neighbor, to each of them in turn.

    In iteration k agent j sends to its neighbor number k modulo the number of its neighbors, which
    must be the same for all agents.
    """

    says: ClassVar[str] = "up to one neighbor at a time, in turn"

    def check(self, graph: Graph, where: str) -> None:
        """Raise a ConcordError where agents have unequal numbers of neighbors."""
        if len(set(graph.degrees.tolist())) > 1:
            raise ConcordError(
                f"{where}: one_peer needs equally many neighbors, and agents of {graph.name} have "
                f"{graph.degrees.min()} to {graph.degrees.max()}; use another schedule or topology"
            )

    def tables(self, graph: Graph) -> list[np.ndarray]:
        """Return one mask (arcs,) for each turn: the arcs that are up in it."""
        ahead = (graph.receivers - graph.senders) % graph.agents
        peers = np.lexsort((ahead, graph.senders)).reshape(graph.agents, -1)
        return [np.isin(np.arange(len(ahead)), arcs) for arcs in peers.T]


class GraphsInTurn(Schedule, tag="in_turn"):
    """A schedule under which the edges of one list are up in each iteration, the lists in turn.

    On directed graphs an edge (i, j) leads from agent i to agent j.
    """

    says: ClassVar[str] = "up for some links at a time, in turn"

    graphs: Annotated[
        Some[tuple[tuple[Index, Index], ...]],
        "lists of the edges [i, j] that are up, in turn; on directed graphs from i to j",
    ]

    def check(self, graph: Graph, where: str) -> None:
        """Raise a ConcordError for an edge that the graph does not have."""
        numbers = set(graph.pair_numbers.tolist())
        for turn, edges in enumerate(self.graphs):
            for number, edge in enumerate(edges):
                if not numbers.issuperset(graph.numbers_of([edge]).tolist()):
                    raise ConcordError(
                        f"{where}.graphs[{turn}][{number}]: {list(edge)} is no edge of "
                        f"{graph.name}; remove it"
                    )

    def tables(self, graph: Graph) -> list[np.ndarray]:
        """Return one mask (arcs,) for each turn: the arcs that are up in it."""
        return [np.isin(graph.pair_numbers, graph.numbers_of(edges)) for edges in self.graphs]


class RandomLinks(Schedule, tag="kept"):
    """A schedule under which each link is up with a probability, drawn in every iteration."""

    probability: Annotated[Share, "probability that a link is up"]

    def draw(self, traffic: Traffic, graph: Graph, rng: np.random.Generator) -> None:
        """Draw the links that are up, and mark all others as down in ``traffic.up``."""
        up = rng.random((graph.link_count, traffic.up.shape[1])) < self.probability
        traffic.up &= up[graph.links]


class PairSchedule(Schedule):
    """A schedule under which an agent hears at most one neighbor, which hears it, too."""

    def check(self, graph: Graph, where: str) -> None:
        """Raise a ConcordError on directed graphs; ``where`` is file and key."""
        if graph.directed:
            raise ConcordError(
                f"{where}: pairs hear each other, and edges of {graph.name} have a direction; use "
                "another schedule"
            )


class Matchings(PairSchedule):
    """A schedule under which a random matching is up in every iteration.

    Each link draws a number, and is up if no link that shares an agent with it has a lower one.
    """

    says: ClassVar[str] = "a random matching up at a time"

    def draw(self, traffic: Traffic, graph: Graph, rng: np.random.Generator) -> None:
        """Draw a random matching, and mark all other links as down in ``traffic.up``."""
        numbers = rng.random((graph.link_count, traffic.up.shape[1]))[graph.links]
        lowest = numbers == graph.per_receiver(np.minimum, numbers)
        traffic.up &= lowest & lowest[graph.order_by_sender]


class RandomPair(PairSchedule, tag="pair"):
    """A schedule under which one random link is up, and only its two agents are awake.

    The first agent is uniform over all agents, the second uniform over its neighbors.
    """

    says: ClassVar[str] = "one random link up at a time"

    def draw(self, traffic: Traffic, graph: Graph, rng: np.random.Generator) -> None:
        """Draw the pair whose link alone is up, and which alone is awake."""
        chain = np.arange(traffic.up.shape[1])
        arc = graph.draw_arcs(len(chain), rng)
        traffic.up[:] = traffic.awake[:] = False
        traffic.up[arc, chain] = traffic.up[graph.order_by_sender[arc], chain] = True
        for agent in (graph.receivers[arc], graph.senders[arc]):
            traffic.awake[agent, chain] = True


class Loss(Kind, tag="bernoulli"):
    """A loss of vectors with one probability, independent over vectors."""

    rate: Annotated[Share, "probability that a vector is lost"]
    direction: Direction

    @property
    def share(self) -> float:
        """Return the share of vectors that is lost."""
        return self.rate


class BurstLoss(Kind, tag="gilbert_elliott"):
    """A loss of vectors in bursts (Gilbert and Elliott): a bad link loses some, a good one none.

    Links start in the stationary law of good and bad; where none turns bad all are good.
    """

    rate: Annotated[Share, "probability that a vector is lost while it is bad"]
    to_bad: Annotated[Share, "probability that a good one turns bad in an iteration"]
    to_good: Annotated[Share, "probability that a bad one turns good in an iteration"]
    direction: Direction

    @property
    def bad_probability(self) -> float:
        """Return the stationary probability that a link is bad."""
        return self.to_bad / (self.to_bad + self.to_good) if self.to_bad else 0.0

    @property
    def share(self) -> float:
        """Return the stationary probability that a vector is lost."""
        return self.rate * self.bad_probability


class LossDraws:
    """The losses of vectors in each iteration, drawn for a block of chains.

    Both arcs of a link lose together (``direction: link``), or each by itself.
    """

    def __init__(
        self, loss: Loss | BurstLoss, graph: Graph, chains: int, rng: np.random.Generator
    ) -> None:
        self._loss, self._rng = loss, rng
        by_link = loss.direction == "link"
        self._numbers = graph.links if by_link else np.arange(len(graph.senders))
        self._shape = self._numbers.max(initial=-1) + 1, chains
        self._bad = np.ones(self._shape, dtype=bool)  # which links may lose
        if isinstance(loss, BurstLoss):
            self._bad = rng.random(self._shape) < loss.bad_probability

    def draw(self) -> np.ndarray:
        """Draw a mask of the arcs that deliver in the next iteration, (arcs, chains)."""
        loss, rng = self._loss, self._rng
        if isinstance(loss, BurstLoss):
            turns = rng.random(self._shape) < np.where(self._bad, loss.to_good, loss.to_bad)
            self._bad = self._bad ^ turns
        delivers: np.ndarray = (rng.random(self._shape) < 1 - loss.rate) | ~self._bad
        return delivers[self._numbers]


class Delay(Kind, tag="fixed"):
    """A delay of all vectors by a fixed number of iterations."""

    iterations: Annotated[Count, "iterations from sender to receiver"]
