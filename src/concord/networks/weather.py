r"""What arrives: drawn iteration by iteration, for a block of chains.

A vector from agent j arrives at its neighbor i if their link is up and j awake when it is sent, it
is not lost, and i is awake when it comes, in the same iteration or after a delay. The masks of
which arrive are drawn from a stream of their own, so that all samplers meet the same faults. How
long all this takes is in ``clock``.
"""

from collections.abc import Callable

import numpy as np

from concord.networks.clock import Clock
from concord.networks.conditions import (
    Bernoulli,
    Fixed,
    GilbertElliott,
    Kept,
    Matchings,
    Pair,
)
from concord.networks.edges import Edges
from concord.networks.network import turns
from concord.networks.topology import Topology

Draw = Callable[[int], np.ndarray]  # k -> which of some rows, (rows, chains), are fine; kept by it


class Weather:
    """What arrives in the chains of a block, iteration by iteration.

    edges: the ways that vectors take.
    rng: the generator of all this.
    up, arrived: which links are up and over which ways a vector arrives, (edges, chains).
    iteration: which iteration it is.
    reach: how many iterations a vector takes.
    awake: which agents are awake, (agents, chains): they move. Without a barrier, those whose
    gradients are ready.
    varies: whether some may not be.
    calm: whether all that is sent arrives at once, always.
    sends: which agents send, (agents, chains): those that are awake; without a barrier those that
    begin again, since they have moved in the iteration before.
    """

    def __init__(self, network: Topology, chains: int, clock: Clock | None = None) -> None:
        if (rng := network.masks) is None:
            raise ValueError("a network needs a generator of its masks before it is used")
        self.edges, self.rng = Edges(network), rng
        agents, edges = network.agents, self.edges
        self._conditions = options = network.conditions
        size, links = len(edges.links), edges.link_count
        self._up = _schedule(network, edges, chains, rng)
        self._paired = _pairs(network, edges, chains, rng)
        self._delivered: Draw | None = None
        if options.loss is not None:
            together = options.loss.direction == "link"
            self._delivered = _loss(options.loss, links if together else size, chains, rng)
            self._of_links = edges.links if together else np.arange(size)
        delay, self._clock = options.delay, None if options.barrier else clock
        if self._clock is not None and self._clock.ticks:
            delay = Fixed(self._clock.ticks)
        self._post = _Post(delay.iterations, (size, chains)) if delay else None
        self.iteration, self.reach = 0, delay.iterations if delay else 0
        self._awake = _with_probability(options.awake, agents, chains, rng)
        self.up = np.ones((size, chains), dtype=bool)
        self.arrived, self.awake = self.up.copy(), np.ones((agents, chains), dtype=bool)
        self.varies = options.sleeps or self._clock is not None
        self.calm = not (self._up or self._delivered or self._post or self.varies)
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
            self.arrived &= self.of(self._delivered(k), self._of_links)
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
        """Return what holds at these ends of the ways, (edges, chains); kept by it."""
        return agents.take(ends, 0, self._idle, "clip")


class _Post:
    """Vectors on their way, each for so many iterations."""

    def __init__(self, iterations: int, shape: tuple[int, int]) -> None:
        self._sent = np.zeros((iterations + 1, *shape), dtype=bool)

    def deliver(self, k: int, sent: np.ndarray) -> None:
        """Take what is sent in iteration k, and write over which ways something arrives."""
        slots = len(self._sent)
        np.copyto(self._sent[k % slots], sent)
        np.copyto(sent, self._sent[(k + 1) % slots])


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

    def draw(k: int) -> np.ndarray:
        rng.random(out=turns)
        np.logical_xor(bad, turns < np.where(bad, loss.to_good, loss.to_bad), out=bad)
        return np.logical_or(delivered(k), ~bad)

    return draw


def _schedule(
    network: Topology, edges: Edges, chains: int, rng: np.random.Generator
) -> Draw | None:
    """Return which ways are up; None: all, always."""
    schedule = network.conditions.schedule
    if isinstance(schedule, Kept):
        kept = _with_probability(schedule.probability, edges.link_count, chains, rng)
        return lambda k: kept(k)[edges.links]
    if isinstance(schedule, Matchings):
        numbers = np.empty((edges.link_count, chains))

        def matching(k: int) -> np.ndarray:
            rng.random(out=numbers)
            own = numbers[edges.links]
            lowest = own == edges.of_receiver(np.minimum, own)
            return lowest & lowest[edges.by_sender]

        return matching
    if (table := turns(network, edges)) is not None:
        return lambda k: table[k % len(table)]
    return None


def _pairs(
    network: Topology, edges: Edges, chains: int, rng: np.random.Generator
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
