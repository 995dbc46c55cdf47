r"""Effects: what may happen to links, vectors and agents of a network, one small class each.

A vector from agent j arrives at its neighbor i if their link is up and j is awake when it is sent,
the vector is not lost, and i is awake when it arrives, in the same iteration or after a delay.

A way is a directed edge, from a sender to a receiver. Masks have shape (ways, chains) or
(agents, chains), and are drawn from a stream of their own, so that all samplers meet the same
faults. ``Network`` applies effects in the order of ``ORDER``, whatever the order in which they are
given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from concord.errors import ConcordError
from concord.networks.byzantine import LIES, ROBUST
from concord.networks.compressions import Compression
from concord.networks.graph import Graph
from concord.networks.privacy import Privacy
from concord.options import Count, Index, Kind, Share, Some

Direction = Annotated[
    Literal["one_way", "link"], "each direction of a link loses by itself, or both do together"
]


@dataclass
class Traffic:
    """The state of all links and agents in one iteration.

    A way is a directed edge, from a sender to a receiver.

    up, arrived: ways whose link is up, and ways over which a vector arrives, masks (ways, chains).

    awake, sends: agents that are awake, and agents that send, masks (agents, chains).

    age: how many iterations ago the arriving vectors were sent; 0 without a delay.
    """

    up: np.ndarray
    arrived: np.ndarray
    awake: np.ndarray
    sends: np.ndarray
    age: int = 0


Draw = Callable[[int, Traffic], None]


class RandomLinks(Kind, tag="kept"):
    """A schedule under which each link is up with a probability, drawn in every iteration."""

    probability: Annotated[Share, "probability that a link is up"]

    def draw(self, k: int, traffic: Traffic, graph: Graph, rng: np.random.Generator) -> None:
        """Draw the links that are up in iteration k, and take the others from ``traffic.up``."""
        up = rng.random((graph.link_count, traffic.up.shape[1])) < self.probability
        traffic.up &= up[graph.links]


class Matchings(Kind):
    """A schedule under which a random matching is up in every iteration.

    Each link draws a number, and is up if no link that shares an agent with it has a lower one.
    """

    def check(self, graph: Graph, where: str) -> None:
        """Raise a ConcordError on directed graphs; ``where`` is file and key."""
        _refuse_directed(graph, where)

    def draw(self, k: int, traffic: Traffic, graph: Graph, rng: np.random.Generator) -> None:
        """Draw the matching that is up in iteration k, and take other links from ``traffic.up``."""
        numbers = rng.random((graph.link_count, traffic.up.shape[1]))[graph.links]
        lowest = numbers == graph.per_receiver(np.minimum, numbers)
        traffic.up &= lowest & lowest[graph.way_back]


class RandomPair(Kind, tag="pair"):
    """A schedule under which one random link is up, and only its two agents are awake.

    The first agent is uniform over all agents, the second uniform over its neighbors.
    """

    def check(self, graph: Graph, where: str) -> None:
        """Raise a ConcordError on directed graphs; ``where`` is file and key."""
        _refuse_directed(graph, where)

    def draw(self, k: int, traffic: Traffic, graph: Graph, rng: np.random.Generator) -> None:
        """Draw the pair of iteration k, whose link alone is up, and which alone is awake."""
        chain = np.arange(traffic.up.shape[1])
        first = np.searchsorted(graph.receivers, np.arange(graph.agents))
        agent = rng.integers(0, graph.agents, len(chain))
        way = first[agent] + (rng.random(len(chain)) * graph.degrees[agent]).astype(np.intp)
        traffic.up[:] = traffic.awake[:] = False
        traffic.up[way, chain] = traffic.up[graph.way_back[way], chain] = True
        traffic.awake[agent, chain] = traffic.awake[graph.senders[way], chain] = True


class OnePeer(Kind):
    """A schedule under which each agent sends to one neighbor, to each of them in turn.

    In iteration k agent j sends to its neighbor number k modulo the number of its neighbors, which
    must be the same for all agents.
    """

    def check(self, graph: Graph, where: str) -> None:
        """Raise a ConcordError where agents have unequal numbers of neighbors."""
        if len(set(graph.degrees.tolist())) > 1:
            raise ConcordError(
                f"{where}: one_peer needs agents that have equally many neighbors to send to, and "
                f"those of {graph.name} have {graph.degrees.min()} to {graph.degrees.max()}; use "
                "another schedule or topology"
            )

    def tables(self, graph: Graph) -> list[np.ndarray]:
        """Return one mask (ways,) for each turn: the ways that are up in it."""
        ahead = (graph.receivers - graph.senders) % graph.agents
        peers = np.lexsort((ahead, graph.senders)).reshape(graph.agents, -1)
        return [np.isin(np.arange(len(ahead)), ways) for ways in peers.T]


class GraphsInTurn(Kind, tag="in_turn"):
    """A schedule under which the edges of one list are up in each iteration, the lists in turn.

    On directed graphs an edge (i, j) leads from agent i to agent j.
    """

    graphs: Annotated[
        Some[tuple[tuple[Index, Index], ...]],
        "lists of the edges [i, j] that are up, in turn; on directed graphs from i to j",
    ]

    def check(self, graph: Graph, where: str) -> None:
        """Raise a ConcordError for an edge that the graph does not have."""
        known = set(graph.pair_numbers.tolist())
        for turn, edges in enumerate(self.graphs):
            for number, edge in enumerate(edges):
                if not known.issuperset(graph.numbers_of([edge]).tolist()):
                    raise ConcordError(
                        f"{where}.graphs[{turn}][{number}]: {list(edge)} is no edge of the "
                        f"topology, {graph.name}; add it there, or remove it here"
                    )

    def tables(self, graph: Graph) -> list[np.ndarray]:
        """Return one mask (ways,) for each turn: the ways that are up in it."""
        return [np.isin(graph.pair_numbers, graph.numbers_of(edges)) for edges in self.graphs]


class Loss(Kind, tag="bernoulli"):
    """A loss of vectors with one probability, independent over vectors."""

    rate: Annotated[Share, "probability that a vector is lost"]
    direction: Direction

    @property
    def share(self) -> float:
        """Return the share of vectors that is lost."""
        return self.rate

    def draw(self, k: int, traffic: Traffic, graph: Graph, rng: np.random.Generator) -> None:
        """Draw the losses of iteration k, and take lost vectors from ``traffic.arrived``."""
        which = _loss_numbers(graph, self.direction)
        shape = which.max(initial=-1) + 1, traffic.arrived.shape[1]
        traffic.arrived &= (rng.random(shape) < 1 - self.rate)[which]


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

    def start(self, graph: Graph, chains: int, rng: np.random.Generator) -> Draw:
        """Return the function that draws the losses of iteration k into a ``Traffic``."""
        return _BurstChain(self, _loss_numbers(graph, self.direction), chains, rng)


class _BurstChain:
    """The Markov chain of good and bad links, which draws the losses of an iteration.

    which: the number by which each way draws (``_loss_numbers``), (ways,). bad: which of these
    numbers are bad, a mask (numbers, chains).
    """

    def __init__(
        self, loss: BurstLoss, which: np.ndarray, chains: int, rng: np.random.Generator
    ) -> None:
        self._loss, self._loss_numbers, self._rng = loss, which, rng
        self._shape = which.max(initial=-1) + 1, chains
        self.bad = rng.random(self._shape) < loss.bad_probability

    def __call__(self, k: int, traffic: Traffic) -> None:
        """Let links turn good or bad, and remove lost vectors from ``traffic.arrived``."""
        loss = self._loss
        turns = self._rng.random(self._shape) < np.where(self.bad, loss.to_good, loss.to_bad)
        self.bad = self.bad ^ turns
        delivered = self._rng.random(self._shape) < 1 - loss.rate
        traffic.arrived &= (delivered | ~self.bad)[self._loss_numbers]


@dataclass(frozen=True)
class Sleep:
    """An effect by which an agent is awake with a probability, drawn in every iteration.

    An agent that sleeps neither moves, sends nor hears.
    """

    awake: float

    def draw(self, k: int, traffic: Traffic, graph: Graph, rng: np.random.Generator) -> None:
        """Draw the agents that are awake in iteration k."""
        traffic.awake &= rng.random(traffic.awake.shape) < self.awake


class Delay(Kind, tag="fixed"):
    """A delay of all vectors by a fixed number of iterations."""

    iterations: Annotated[Count, "iterations from sender to receiver"]

    def start(self, graph: Graph, chains: int, rng: np.random.Generator) -> Draw:
        """Return the function that replaces the arrivals of iteration k by delayed ones."""
        return _DelayBuffer(self.iterations, len(graph.senders), chains)


class _DelayBuffer:
    """A buffer of the masks of vectors under way, which delays them by a number of iterations."""

    def __init__(self, iterations: int, ways: int, chains: int) -> None:
        self._sent = np.zeros((iterations + 1, ways, chains), dtype=bool)

    def __call__(self, k: int, traffic: Traffic) -> None:
        """Store the arrivals of iteration k, and replace them by those that a delay held back."""
        slots = len(self._sent)
        self._sent[k % slots] = traffic.arrived
        traffic.age = slots - 1
        traffic.arrived = self._sent[(k - traffic.age) % slots].copy()


@dataclass(frozen=True)
class Compress:
    """An effect by which agents send a compressed vector.

    compressor: computes the compressed vector. feedback: an agent adds the compression error of its
    earlier vectors before it compresses.
    """

    compressor: Compression
    feedback: bool = False


@dataclass(frozen=True)
class Noise:
    """Normal noise of standard deviation ``sd`` on each coordinate of a vector on its arrival."""

    sd: float


Effect = Any  # one of the classes above

# Which links are up; what is lost on them; who is awake; what agents send and hear.
SCHEDULES = (RandomLinks, Matchings, RandomPair, OnePeer, GraphsInTurn)
ORDER = (*SCHEDULES, Loss, BurstLoss, Sleep, Delay, Privacy, Compress, *LIES, Noise, *ROBUST)


def _loss_numbers(graph: Graph, direction: Direction) -> np.ndarray:
    """Return the number by which each way draws its losses, (ways,).

    Both ways of an edge share the number of their link, or each way has a number of its own.
    """
    return graph.links if direction == "link" else np.arange(len(graph.senders))


def start_effect(effect: Effect, graph: Graph, chains: int, rng: Any) -> Draw | None:
    """Return the function of k and a ``Traffic`` that applies an effect to the latter's masks.

    rng: the stream of effects on vectors. None of an effect that leaves masks as they are.
    """
    if hasattr(effect, "start"):
        started: Draw = effect.start(graph, chains, rng)
        return started
    if hasattr(effect, "draw"):
        return lambda k, traffic: effect.draw(k, traffic, graph, rng)
    if not hasattr(effect, "tables"):
        return None
    tables = effect.tables(graph)

    def repeat_tables(k: int, traffic: Traffic) -> None:
        """Let the table of iteration k decide which links are up."""
        traffic.up &= tables[k % len(tables)][:, None]

    return repeat_tables


def _refuse_directed(graph: Graph, where: str) -> None:
    """Raise a ConcordError if the graph is directed, for schedules that pair agents."""
    if graph.directed:
        raise ConcordError(
            f"{where}: in pairs agents hear each other, and the edges of {graph.name} have a "
            "direction; use another schedule, or an undirected topology"
        )
