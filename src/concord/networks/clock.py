r"""The simulated clock: how long gradients and vectors take, and who waits for whom.

In an iteration an agent sends its vectors, waits for its neighbors' vectors, and computes its
gradients, in this order. With C_i the time of agent i's gradients and s_j the time that vectors of
agent j are under way, agent i ends iteration k + 1 at

.. math:: T_i^{(k+1)} = \max \Bigl( T_i^{(k)}, \max_{j \in N_i} (T_j^{(k)} + s_j^{(k)}) \Bigr)
          + C_i^{(k)}, \qquad T_i^{(0)} = 0, \qquad
          s_j = \text{latency} + \frac{\text{bytes}}{\text{bandwidth}}.

An agent waits for its neighbors alone. Nobody waits for agents that send nothing or sleep, nor over
links that are down. For a lost vector an agent waits until the vector should have arrived. C_i is
drawn for each agent and iteration: a shifted exponential time of one gradient, times the number of
gradients that the step takes.

Without a barrier an iteration is a tick of the clock: the least time of a gradient of an agent that
is not slow. An agent moves in the tick in which its gradients are ready, and uses the last vectors
that had arrived when it began to compute them. In the next tick it sends its new position, and
begins again. Its own time is not rounded; vectors take whole ticks, rounded up.

Sources: the recursion, Marfoq, Xu, Neglia and Vidal (2020, arXiv:2010.12229), section 2; shifted
exponential times, Lee, Lam, Pedarsani, Papailiopoulos and Ramchandran (2018, arXiv:1512.02673),
section 4.
"""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
from msgspec import Meta

from concord.errors import ConcordError
from concord.networks.graph import Graph, Numbers
from concord.options import NonNegative, Options, Positive

LONGEST_DELAY = 1000  # ticks that a vector takes: all that is under way is kept


class ComputeTime(Options):
    """The time that a gradient takes: a shifted exponential, of agent 0 perhaps a longer one."""

    seconds: Annotated[Positive, "mean time of a gradient, of all agents but a slow one"]
    spread: Annotated[
        Annotated[float, Meta(ge=0, lt=1)],
        "standard deviation of the time as a share of its mean: the part that is exponential; the "
        "rest is always needed",
    ] = 0.0
    slowest: Annotated[
        Annotated[float, Meta(ge=1)], "how many times longer agent 0 needs for a gradient"
    ] = 1.0


class LinkTime(Options):
    """The time that vectors take over a link; several are sent side by side."""

    latency: Annotated[NonNegative, "seconds from sender to receiver, whatever is sent"] = 0.0
    bandwidth: Annotated[Positive | None, "bytes per second of every link; none: unlimited"] = None

    def seconds(self, size: Numbers) -> Numbers:
        """Return latency + size / bandwidth in seconds, of messages of ``size`` bytes."""
        return self.latency + (size / self.bandwidth if self.bandwidth else 0.0 * size)


class Clock:
    """The simulated clock of a block of chains: the times at which agents end their steps.

    seconds: the time at which each agent ended its last step, (agents, chains). waited: the time
    that each agent has spent waiting for neighbors since the start, in seconds, (agents, chains).
    """

    def __init__(
        self,
        graph: Graph,
        chains: int,
        compute: ComputeTime | None,
        link: LinkTime | None,
        rng: np.random.Generator,
    ) -> None:
        """Start all agents at time 0, each with its first gradient under way."""
        self._graph, self._link, self._rng = graph, link or LinkTime(), rng
        self.tick, self._spread = 0.0, 0.0
        slow = np.ones((graph.agents, 1))
        if compute is not None:
            self.tick = compute.seconds * (1 - compute.spread)
            self._spread = compute.spread / (1 - compute.spread)
            slow[0] = compute.slowest
        self._slow = slow
        self.seconds, self.waited = np.zeros((2, graph.agents, chains))
        self._left = self.draw_times()  # ticks until a gradient is ready

    def draw_times(self) -> np.ndarray:
        """Draw the time of one gradient of each agent, in ticks, (agents, chains)."""
        times = np.ones(self.seconds.shape) * self._slow
        if self._spread:
            exponential = self._rng.standard_exponential(self.seconds.shape)
            times = (exponential * self._spread + 1.0) * self._slow
        return times

    def transit_ticks(self, size: float) -> int:
        """Return the number of ticks that a message of ``size`` bytes takes over a link.

        A ConcordError above ``LONGEST_DELAY`` ticks.
        """
        ticks = math.ceil(self._link.seconds(size) / self.tick - 1e-9)
        if ticks > LONGEST_DELAY:
            raise ConcordError(
                f"network.link: without a barrier a vector is on its way for {ticks:g} ticks of "
                f"the clock, at most {LONGEST_DELAY} can be; use a faster link or slower gradients"
            )
        return ticks

    def wait_for_neighbors(
        self, size: np.ndarray, moves: np.ndarray, gradients: Numbers, up: np.ndarray | None
    ) -> None:
        """Advance the clock by an iteration in which agents wait for their neighbors.

        size: bytes that each agent has sent to each neighbor. moves: which agents have moved.
        gradients: how many gradients each agent has taken. All three are (agents, chains), or
        broadcast to it. up: which arcs are up, (arcs, chains); None: all.
        """
        comes = self.seconds + self._link.seconds(size)
        comes = np.where((size > 0) & moves, comes, -np.inf)  # nobody waits for who sends nothing
        over = comes[self._graph.senders]
        if up is not None:
            over = np.where(up, over, -np.inf)
        begins = self.seconds.copy()
        np.maximum.at(begins, self._graph.receivers, over)
        self.waited = np.where(moves, self.waited + begins - self.seconds, self.waited)
        ends = begins + self.draw_times() * (self.tick * gradients)
        self.seconds = np.where(moves, ends, self.seconds)

    def advance_tick(self) -> np.ndarray:
        """Advance the clock by a tick; return whose gradients are ready, (agents, chains)."""
        self._left = self._left - 1.0
        ready: np.ndarray = self._left <= 0.0
        return ready

    def restart_gradients(self, k: int, moves: np.ndarray, gradients: Numbers) -> None:
        """Start the next gradients of the agents that have moved in tick k.

        moves: a mask (agents, chains). gradients: how many each agent computes before its next
        move.
        """
        self.seconds = np.where(moves, (self._left + (k + 1)) * self.tick, self.seconds)
        left = np.where(moves, self._left + self.draw_times() * gradients, self._left)
        self._left = np.maximum(left, 0.0)  # of steps without a gradient
