r"""The network: agents send vectors to their neighbors, and it counts what that takes.

``Network`` states a graph and what happens on it; ``start`` makes it ready for a block of chains.
Samplers use nothing else to learn of other agents. A vector that is sent to all neighbors counts
once for each of them (``unicasts``, the price where links join pairs), and once for all
(``broadcasts``, the price on the air).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Annotated, Any, Literal, Self

import numpy as np

from concord.errors import ConcordError
from concord.networks import effects as happenings
from concord.networks.clock import Clock, ComputeTime, LinkTime
from concord.networks.effects import Effect, Traffic
from concord.networks.graph import DENSE_AGENTS, Graph, Matrix
from concord.networks.lanes import Lane
from concord.networks.weights import mixing_matrix
from concord.options import Options, plain
from concord.summary import Summarized

OnLoss = Literal["keep_own_weight", "reuse_last", "skip", "sender_keeps"]
Order = Literal["simultaneous", "in_place"]


class Ordered(Options):
    """In which order agents move."""

    update_order: Annotated[
        Order, "agents move all at once, or one after another seeing neighbors that have moved"
    ] = "simultaneous"


class Network(Summarized):
    """A graph over agents, with the effects on what they exchange.

    graph: who hears whom.
    effects: what happens (``effects``), in any order; none: every vector arrives at once, as it is.
    on_loss: what an agent averages in place of a vector that does not arrive: its own; the last
    that has arrived (at first the neighbor's start); its own for all of them (``skip``); or
    nothing, and the sender has the weight for its own vector.
    order: agents move all at once, or one after another, each seeing those that have moved, as
    released codes do.
    compute, link: how long gradients and vectors take on the simulated clock; None: no time.
    barrier: agents wait for their neighbors; or go on with the last that has arrived.
    conditions: the options that state all this (``conditions.Conditions``); None: nothing happens.

    activations: how often agents have moved where they do not always, (chains, agents).
    active: which agents move in this iteration, (chains, agents); None: all.
    """

    def __init__(
        self,
        graph: Graph,
        effects: Sequence[Effect] = (),
        *,
        on_loss: OnLoss = "keep_own_weight",
        order: Order = "simultaneous",
        compute: ComputeTime | None = None,
        link: LinkTime | None = None,
        barrier: bool = True,
        conditions: Any = None,
    ) -> None:
        self.graph, self.agents, self.conditions = graph, graph.agents, conditions
        self.effects = sorted(effects, key=lambda effect: happenings.ORDER.index(type(effect)))
        self.on_loss, self.order, self.barrier = on_loss, order, barrier
        self.compute, self.link = compute, link
        if order == "in_place" and not (self.is_lossless and graph.server_messages is None):
            raise ConcordError(
                "update_order: in_place has no meaning where not every agent hears each neighbor's "
                "vector; use simultaneous, or a topology without a server and without network"
            )
        if not self.is_lossless and graph.weighs_beyond_edges:
            raise ConcordError(
                f"network: agents of {graph.name} average with some who are no neighbors, so that "
                "what gets lost has no meaning; remove network"
            )
        self.chains = self.dim = 1  # of the chains that are started
        self._chain = np.zeros((1, 1), dtype=np.intp)  # their numbers, (chains, 1)
        self._rng: np.random.Generator | None = None
        self._draws: list[Any] = []  # what draws each effect
        self._postponed: Any = None  # vectors under way, without a barrier
        self._matrices: dict[Any, Matrix] = {}
        self._splits: dict[int, tuple[Any, ...]] = {}  # by matrix, which is kept so that ids last
        self._lanes: list[Lane] = []
        self._vector_bytes = 0.0  # of an agent's vectors together
        self.traffic: Traffic | None = None
        self.active: np.ndarray | None = None
        self.clock: Clock | None = None
        self._reset()

    def _reset(self) -> None:
        degrees = self.graph.degrees
        if self.graph.server_messages is not None:
            self._copies = self._once = np.asarray(self.graph.server_messages)
        else:
            self._copies, self._once = degrees, np.minimum(degrees, 1)
        # Vectors that all agents sent to all neighbors, and the bytes of one agent's; and others.
        self._rounds: Any = 0
        self._round_bytes: Any = 0.0
        self._unicasts = self._broadcasts = np.zeros(self.agents, dtype=np.int64)
        self._bytes: Any = np.zeros(self.agents)
        self.activations: np.ndarray | None = None
        self._step_bytes: Any = 0.0

    def summary(self) -> dict[str, Any]:
        """Return the graph's sizes, and what happens on it."""
        degrees, edges = self.degrees, len(self.graph.edges)
        stated = {} if self.conditions is None else plain(self.conditions)
        usual = {} if self.conditions is None else plain(type(self.conditions)())
        return {
            "graph": self.name,
            "agents": self.agents,
            "edges": f"{edges}{' directed' if self.graph.directed else ''}",
            "neighbors": f"{degrees.min()} to {degrees.max()}",
            "weights": None if self.graph.weights is None else "its own",
            **{name: value for name, value in stated.items() if value != usual[name]},
        }

    @property
    def name(self) -> str:
        """The graph's kind, such as ``ring``."""
        return self.graph.name

    @property
    def names(self) -> tuple[Any, ...]:
        """What the agents are called, by their numbers: the nodes of a graph, or the numbers."""
        return tuple(range(self.agents)) if self.graph.nodes is None else self.graph.nodes

    @property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """The graph's edges, pairs of agents."""
        return tuple((i, j) for i, j in self.graph.edges.tolist())

    @property
    def degrees(self) -> np.ndarray:
        """How many neighbors hear each agent, (agents,)."""
        return self.graph.degrees

    @property
    def is_lossless(self) -> bool:
        """Whether every vector arrives at once, as it is."""
        return not self.effects and self.barrier

    @property
    def _sends_vary(self) -> bool:
        """Whether agents may send to fewer than all neighbors, or not in all iterations."""
        kinds = (*happenings.SCHEDULES, happenings.Sleep)
        return not self.barrier or any(isinstance(effect, kinds) for effect in self.effects)

    @property
    def keeps_time(self) -> bool:
        """Whether anything takes time on the simulated clock."""
        return self.compute is not None or self.link is not None

    def start(
        self,
        x0: np.ndarray,
        rng: np.random.Generator | None = None,
        times: np.random.Generator | None = None,
    ) -> Self:
        """Return the network ready for the chains of x0, (chains, agents, dim), counts zero.

        Neighbors know x0. rng, times: streams of what arrives, and of how long gradients take.
        """
        new = copy(self)
        new._lanes, new._vector_bytes, new.traffic, new._rng = [], 0.0, None, rng
        new.chains, _, new.dim = x0.shape
        new._chain = np.arange(new.chains)[:, None]
        new._reset()
        if self.keeps_time:
            assert times is not None
            new.clock = Clock(self.graph, new.chains, self.compute, self.link, times)
        if not new.is_lossless:
            new._draws = [
                effect.start(self.graph, new.chains, rng)
                for effect in self.effects
                if hasattr(effect, "start")
            ]
        new.open_lane(x0)
        return new

    def open_lane(self, first: np.ndarray) -> int:
        """Open a lane for another vector of every agent, of which neighbors know the first.

        What arrives on one lane arrives on all: all vectors of an agent, or none. Returns its
        number, for ``mix``.
        """
        if self.is_lossless:
            return 0
        lane = self.graph, self.effects, self.on_loss, self.barrier, first, self._rng
        self._lanes.append(Lane(*lane))
        self._vector_bytes += self._vector_size(first)
        return len(self._lanes) - 1

    def begin(self, k: int) -> None:
        """Draw what happens in iteration k."""
        self.active = None
        if self.is_lossless:
            return
        graph, shape = self.graph, (len(self.graph.senders), self.chains)
        awake = np.ones((self.agents, self.chains), dtype=bool)
        traffic = Traffic(np.ones(shape, dtype=bool), np.empty(shape, dtype=bool), awake, awake)
        starting = [effect for effect in self.effects if hasattr(effect, "start")]
        pairs = list(zip(starting, self._draws, strict=True))
        for effect, draw in pairs:
            if isinstance(effect, happenings.SCHEDULES):
                draw(k, traffic)
        traffic.arrived = traffic.up.copy()
        for effect, draw in pairs:
            if not isinstance(effect, (*happenings.SCHEDULES, happenings.Delay)):
                draw(k, traffic)
        if not self.barrier:
            assert self.clock is not None
            before = self.traffic
            traffic.sends = traffic.awake if before is None else before.awake
            traffic.awake = self.clock.pass_tick()
        else:
            traffic.sends = traffic.awake
        traffic.arrived &= traffic.sends[graph.senders]
        for effect, draw in pairs:
            if isinstance(effect, happenings.Delay):
                draw(k, traffic)
        if not self.barrier:
            self._postpone(k, traffic)
        else:
            traffic.arrived &= traffic.awake[graph.receivers]
        if self.on_loss == "skip":
            traffic.arrived = graph.per_receiver(np.logical_and, traffic.arrived)
        self.traffic, self._k = traffic, k
        self.active = self.awake

    @property
    def awake(self) -> np.ndarray | None:
        """Which agents are awake in this iteration, (chains, agents); None: all, always."""
        if self.traffic is None:
            return None
        kinds = (happenings.Sleep, happenings.RandomPair)
        sleeps = not self.barrier or any(isinstance(effect, kinds) for effect in self.effects)
        return self.traffic.awake.T if sleeps else None

    @property
    def unicasts(self) -> np.ndarray:
        """Vectors sent since the start, one to each neighbor, (agents,) or (chains, agents)."""
        return self._unicasts + self._rounds * self._copies

    @property
    def broadcasts(self) -> np.ndarray:
        """Vectors sent since the start, to all neighbors at once."""
        return self._broadcasts + self._rounds * self._once

    @property
    def copied_bytes(self) -> np.ndarray:
        """The bytes of the unicasts."""
        total: np.ndarray = self._bytes + self._round_bytes * self._copies
        return total

    def _postpone(self, k: int, traffic: Traffic) -> None:
        """Let vectors arrive after the ticks that they are under way."""
        assert self.clock is not None and self._rng is not None
        if k == 0:
            ticks = self.clock.ticks_under_way(self._vector_bytes)
            self._postponed = None
            if ticks:
                delay = happenings.Delay(ticks)
                self._postponed = delay.start(self.graph, self.chains, self._rng)
        if self._postponed is not None:
            self._postponed(k, traffic)

    def mix(
        self,
        weights: str | float | Matrix,
        x: np.ndarray,
        plus: np.ndarray | None = None,
        *,
        lane: int = 0,
        chains: np.ndarray | None = None,
        size: float | None = None,
    ) -> np.ndarray:
        r"""Send x to all neighbors, and return :math:`\sum_j W_{ij} x_j + r_i`.

        weights: W, or its name (``weights.mixing_matrix``).
        plus: r; None: nothing.
        lane: of which vector x is the next.
        chains: which chains exchange anything, (chains,); others keep x. None: all.
        size: bytes of a vector, by samplers that compress by themselves.
        """
        matrix = self.matrix(weights) if isinstance(weights, str | float) else weights
        self._count(x.shape[-1] / self.dim, chains, size or self._vector_size(x))
        if self.order == "in_place":
            return _sweep(matrix, x, plus)
        if self.traffic is None:
            mixed = weighted_sum(matrix, x)
        else:
            mixed = self._weigh(matrix, x, self._lanes[lane].send(x, self.traffic, self._k))
        if chains is not None:
            mixed = np.where(chains[:, None, None], mixed, x)
        return mixed if plus is None else mixed + plus

    def mix_known(self, weights: Matrix, x: np.ndarray, lane: int = 0) -> np.ndarray:
        """Return weighted sums of one's own x and what neighbors said last; nothing is sent."""
        if self.is_lossless:
            return weighted_sum(weights, x)
        return self._weigh(weights, x, self._lanes[lane].heard)

    def difference(self, agents: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Let two neighbors of each chain send each other x, and return what each is apart.

        agents: the pairs, (chains, 2). x: (chains, 2, dim). What does not arrive is no difference.
        """
        self.count_sent(agents)
        apart = x - x[:, ::-1]
        if self.is_lossless:
            return apart
        assert self.traffic is not None
        graph = self.graph
        ways = np.searchsorted(graph.pair_numbers, agents * self.agents + agents[:, ::-1])
        arrived = self.traffic.arrived[ways, self._chain]
        return np.where(arrived[..., None], apart, 0.0)

    def average(
        self,
        x: np.ndarray,
        shares: np.ndarray | None = None,
        *,
        senders: np.ndarray | None = None,
        size: float | None = None,
    ) -> np.ndarray:
        """Return the average of all agents that a server makes and sends back, (chains, 1, dim).

        shares: weights of the agents, (agents,); None: all equal. senders: who takes part and is
        charged, (chains, agents); None: all. size: bytes of a vector, one's own or the server's.
        """
        counted = self._once if senders is None else self._once * senders
        self.add_sent(counted, counted, size or self._vector_size(x))
        share = np.full(self.agents, 1 / self.agents) if shares is None else shares
        return (share.astype(x.dtype, copy=False) @ x)[:, None]

    def announce(self, agents: np.ndarray) -> None:
        """Count that these agents, a mask (agents,), tell all neighbors where they are."""
        self.add_sent(self._copies * agents, self._once * agents, self.dim * 8)

    def count_sent(
        self, agents: np.ndarray, vectors: Any = 1, copies: Any = None, size: float | None = None
    ) -> None:
        """Count vectors that chosen agents send, (chains, few): once each, or so many copies."""
        sent = said = self._by_agent(agents, vectors)
        if copies is not None:
            sent = self._by_agent(agents, copies)
        self.add_sent(sent, said, size or self.dim * 8)

    def mark_active(self, agents: np.ndarray) -> None:
        """State that only these agents, (chains, few), move in this iteration."""
        self.active = self._by_agent(agents, True)

    def _by_agent(self, agents: np.ndarray, values: Any) -> np.ndarray:
        """Return values of chosen agents, (chains, few), as those of all, (chains, agents)."""
        each = np.zeros((self.chains, self.agents), np.result_type(values))
        each[self._chain, agents] = values
        return each

    def end(self, k: int, gradients: Any) -> None:
        """Pass the time of iteration k, in which agents took so many gradients."""
        if self.active is not None:
            self.activations = self.active + (0 if self.activations is None else self.activations)
        if self.clock is None:
            return
        moves = np.ones((self.agents, 1), dtype=bool) if self.active is None else self.active.T
        gradients = np.atleast_2d(gradients).T if np.ndim(gradients) else gradients
        if self.barrier:
            size = np.zeros((self.agents, 1)) + np.atleast_2d(self._step_bytes).T
            up = None if self.traffic is None else self.traffic.up
            self.clock.wait_for_neighbors(size, moves, gradients, up)
        else:
            self.clock.begin_again(k, moves, gradients)
        self._step_bytes = 0.0

    def matrix(self, weights: str | float) -> Matrix:
        """Return the mixing matrix of a name, made once."""
        if weights not in self._matrices:
            self._matrices[weights] = mixing_matrix(self.graph, weights)
        return self._matrices[weights]

    def fusion(self, coefficient: Any) -> Matrix:
        """Return I - beta L, made once for as long as beta stays.

        coefficient: beta; or several, (steps,), of few agents: (steps, agents, agents).
        """
        identity, laplacian = self._once_made("identity"), self.laplacian()
        if isinstance(coefficient, np.ndarray):
            return identity - coefficient[:, None, None] * laplacian
        key, matrix = self._matrices.get("fusion", (None, None))
        if key != coefficient:
            matrix = identity - coefficient * laplacian
            self._matrices["fusion"] = coefficient, matrix
        return matrix

    def adjacency(self) -> Matrix:
        """Return the graph's adjacency A, made once."""
        return self._once_made("adjacency")

    def laplacian(self) -> Matrix:
        """Return the graph's Laplacian D - A, made once."""
        return self._once_made("laplacian")

    def signless_laplacian(self) -> Matrix:
        """Return D + A of the graph, made once."""
        return self._once_made("signless_laplacian")

    def _once_made(self, name: str) -> Matrix:
        if name not in self._matrices:
            self._matrices[name] = getattr(self.graph, name)()
        return self._matrices[name]

    def _vector_size(self, x: np.ndarray) -> float:
        for effect in self.effects:
            if isinstance(effect, happenings.Compress):
                return effect.compressor.size(x.shape[-1], x.itemsize)
        return x.shape[-1] * x.itemsize

    def _count(self, vectors: float, chains: np.ndarray | None, size: float) -> None:
        if self.traffic is None and self.clock is None and chains is None:
            return self.add_rounds(1 if vectors == 1 else vectors, size)
        copies, once = self._copies, self._once
        if self.traffic is not None and self._sends_vary:
            up = self.graph.add_up_sent(self.traffic.up).T * self.traffic.sends.T
            copies, once = up, np.minimum(up, 1)
        if chains is not None:
            copies, once = copies * chains[:, None], once * chains[:, None]
        if vectors != 1:
            copies, once = copies * vectors, once * vectors
        self.add_sent(copies, once, size / vectors)

    def add_rounds(self, vectors: float, size: float) -> None:
        """Count that all agents have sent so many vectors to all neighbors, of so many bytes."""
        self._rounds += vectors
        self._round_bytes += size

    def add_sent(self, unicasts: Any, broadcasts: Any, size: float) -> None:
        """Count vectors that agents have sent, of so many bytes each."""
        self._unicasts = self._unicasts + unicasts
        self._broadcasts = self._broadcasts + broadcasts
        self._bytes = self._bytes + unicasts * size
        if self.clock is not None:
            self._step_bytes = self._step_bytes + broadcasts * size

    def _weigh(self, matrix: Matrix, x: np.ndarray, heard: np.ndarray) -> np.ndarray:
        """Return weighted sums of x of one's own and what was heard, (ways, chains, dim)."""
        graph = self.graph
        of, *split = self._splits.get(id(matrix), (None,))
        if of is not matrix:  # ids of a network that was copied are those of other matrices
            if len(self._splits) > 8:  # of steps whose weights change
                self._splits.clear()
            split = [*_split(graph, matrix)]
            self._splits[id(matrix)] = matrix, *split
        diagonal, values, inbox = split
        ways, chains, dim = heard.shape
        total = (inbox @ heard.reshape(ways, chains * dim)).reshape(self.agents, chains, dim)
        mixed = total.transpose(1, 0, 2) + diagonal[:, None] * x
        if self.on_loss == "sender_keeps" and self.traffic is not None:
            lost = np.where(self.traffic.arrived, 0.0, values[:, None])
            mixed = mixed + graph.add_up_sent(lost).T[..., None] * x
        return mixed.astype(x.dtype, copy=False)


def weighted_sum(matrix: Matrix, x: np.ndarray) -> np.ndarray:
    r"""Return :math:`\sum_j M_{ij} x_j`, of x's type, for x of shape (chains, agents, dim)."""
    matrix = matrix.astype(x.dtype, copy=False)
    if isinstance(matrix, np.ndarray):
        total: np.ndarray = matrix @ x
        return total
    chains, agents, dim = x.shape
    flat = x.transpose(1, 0, 2).reshape(agents, chains * dim)
    return np.ascontiguousarray((matrix @ flat).reshape(agents, chains, dim).transpose(1, 0, 2))


def _sweep(matrix: Matrix, x: np.ndarray, plus: np.ndarray | None) -> np.ndarray:
    r"""Let agents move one after another, each seeing those that have moved.

    .. math:: x'_i = \sum_{j<i} M_{ij} x'_j + \sum_{j \ge i} M_{ij} x_j + r_i
    """
    dense = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
    moved = x.copy()
    for agent, row in enumerate(dense):
        moved[:, agent] = row @ moved
        if plus is not None:
            moved[:, agent] += plus[:, agent]
    return moved


def _split(graph: Graph, matrix: Matrix) -> tuple[np.ndarray, np.ndarray, Matrix]:
    """Return a matrix's diagonal, its values on the ways, and what acts on what was heard."""
    values = np.asarray(matrix[graph.receivers, graph.senders]).ravel()
    ways, shape = np.arange(len(values)), (graph.agents, len(values))
    if graph.agents <= DENSE_AGENTS:
        inbox: Any = np.zeros(shape, values.dtype)
        inbox[graph.receivers, ways] = values
    else:
        from scipy import sparse

        inbox = sparse.csr_array((values, (graph.receivers, ways)), shape=shape)
    return matrix.diagonal(), values, inbox
