r"""The simulated clock: how long gradients and vectors take, and who waits for whom.

In an iteration an agent sends its vectors, waits for those of its neighbors, and computes its
gradients, in this order. With C_i what the gradients take and s_j what the vectors of agent j are
on their way, agent i ends iteration k + 1 at

.. math:: T_i^{(k+1)} = \max \Bigl( T_i^{(k)}, \max_{j \in N_i} (T_j^{(k)} + s_j^{(k)}) \Bigr)
          + C_i^{(k)}, \qquad T_i^{(0)} = 0, \qquad
          s_j = \text{latency} + \frac{\text{bytes}}{\text{bandwidth}}.

So each waits for its neighbors alone (``barrier: true``), and nobody for agents that send nothing
or sleep, nor over links that are down. Links carry their vectors side by side. A lost vector is
waited for until it should have come. C_i is a shifted exponential number for each agent and
iteration, times the gradients that the step takes.

Without a barrier time goes in ticks, an iteration each: the least that a gradient takes of an agent
that is not slow. An agent moves in the tick in which its gradients are ready, by the last vectors
that had arrived when it began with them, sends in the next what it has moved to, and begins again;
a step takes as long as the gradients of the one before (the first: one gradient). Its own time goes
on exactly, and vectors take whole ticks, rounded up.

Sources: the recursion, Marfoq, Xu, Neglia and Vidal, "Throughput-optimal topology design for
cross-silo federated learning" (2020, arXiv:2010.12229), section 2; shifted exponential times, Lee,
Lam, Pedarsani, Papailiopoulos and Ramchandran, "Speeding up distributed machine learning using
codes" (2018, arXiv:1512.02673), section 4.
"""

import math
from typing import Any

import numpy as np

from concord.errors import ConcordError
from concord.networks.conditions import Link
from concord.networks.edges import Edges
from concord.networks.topology import Topology

LONGEST = 1000  # ticks that a vector takes


class Clock:
    """When agents end their steps.

    network: with the generator of the computing times, which depend on nothing that samplers do.
    edges: the ways that vectors take.
    size: bytes of a vector.
    vectors: of an agent that are on their way together; with a barrier steps count them.
    seconds, waited: when each agent has ended its last step, and how long it has waited until then,
    (chains, agents).
    tick: its seconds. ticks: how many a vector is on its way.
    """

    def __init__(
        self, network: Topology, edges: Edges, chains: int, size: float, vectors: int = 1
    ) -> None:
        if network.times is None:
            raise ValueError("a clock needs a generator of its times before it is used")
        self._edges, self._rng, shape = edges, network.times, (network.agents, chains)
        compute, link = network.conditions.compute, network.conditions.link or Link()
        self._latency, self._sending = link.latency, link.seconds(size) - link.latency
        self.tick, self._varies, self._slow = 0.0, 0.0, np.ones((shape[0], 1))
        self.ticks = 0
        if compute is not None:
            self.tick = compute.seconds * (1 - compute.spread)
            self._varies = compute.spread / (1 - compute.spread)
            self._slow[list(compute.slow_agents)] = compute.slowest
            self.ticks = math.ceil(link.seconds(vectors * size) / self.tick - 1e-9)
        if not network.conditions.barrier and self.ticks > LONGEST:
            raise ConcordError(
                f"network.link: without a barrier a vector is on its way for {self.ticks:g} ticks "
                f"of the clock, and all that is under way is kept; at most {LONGEST} can be, so "
                "use a faster link, slower gradients or less spread"
            )
        self._time, self._waited, self._comes = np.zeros((3, *shape))
        self.seconds, self.waited = self._time.T, self._waited.T
        self._way = np.empty((len(edges.senders), shape[1]))
        # Counted in ticks, so that agents that are alike, and do not vary, stay together.
        self._takes = np.broadcast_to(self._slow, shape).copy()
        self._left = self.draw().copy()

    def draw(self) -> np.ndarray:
        """Return how many ticks a gradient takes this time, (agents, chains)."""
        if self._varies:
            self._rng.standard_exponential(out=self._takes)
            np.multiply(self._takes, self._varies, out=self._takes)
            np.add(self._takes, 1.0, out=self._takes)
            np.multiply(self._takes, self._slow, out=self._takes)
        return self._takes

    def wait(self, vectors: np.ndarray, moves: Any, gradients: Any, up: np.ndarray | None) -> None:
        """Pass an iteration with barrier, in which vectors go over ways that are up; None: all.

        vectors: how many each agent sends to all its neighbors. moves: who moved, or True.
        gradients: how many each agent took. All are (agents, chains), or alike.
        """
        time, begins = self._time, self._comes
        np.add(time, self._latency + vectors * self._sending, out=self._comes)
        if moves is not True or not vectors.all():  # nobody waits for who sends nothing
            np.copyto(self._comes, -np.inf, where=(vectors == 0) | np.logical_not(moves))
        self._comes.take(self._edges.senders, 0, self._way, "clip")
        if up is not None:
            np.copyto(self._way, -np.inf, where=~up)
        self._edges.last(self._way, begins)
        np.maximum(begins, time, out=begins)
        np.subtract(begins, time, out=time, where=moves)
        np.add(self._waited, time, out=self._waited, where=moves)
        np.multiply(self.draw(), self.tick * gradients, out=time, where=moves)
        np.add(begins, time, out=time, where=moves)

    def pass_tick(self, out: np.ndarray) -> None:
        """Pass a tick, and write whose gradients are ready at its end, (agents, chains)."""
        np.subtract(self._left, 1.0, out=self._left)
        np.less_equal(self._left, 0.0, out=out)

    def begin(self, k: int, moves: Any, gradients: Any) -> None:
        """Let agents that have moved in tick k begin again."""
        np.multiply(self._left + (k + 1), self.tick, out=self._time, where=moves)
        np.add(self._left, self.draw() * gradients, out=self._left, where=moves)
        np.maximum(self._left, 0.0, out=self._left)  # of steps without a gradient
