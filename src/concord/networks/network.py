r"""The network: agents exchange vectors with their neighbors, and their messages are counted.

``Network`` combines a graph with what happens on it; ``start`` prepares it for a block of chains.
Samplers learn of other agents through the network alone. A vector that is sent to all neighbors
counts once for each of them (``unicasts``, the price where links join pairs), and once for all
(``broadcasts``, the price on the air).
"""

from __future__ import annotations

from collections.abc import Hashable
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, Self

import numpy as np

from concord.errors import ConcordError, nearest, suggest_names
from concord.libraries import pictures
from concord.networks.channels import Channels
from concord.networks.clock import Clock
from concord.networks.conditions import Conditions
from concord.networks.effects import Traffic
from concord.networks.graph import OWN, Graph, Matrix, Numbers
from concord.networks.meter import Meter
from concord.networks.weights import mixing_matrix
from concord.options import plain
from concord.summary import Summarized, count_named

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Order = Literal["simultaneous", "in_place"]


class Network(Summarized):
    """A graph over agents, with what happens on it to the vectors that they exchange.

    graph: the graph over which they send.

    conditions: options of what happens (``conditions.Conditions``); by default every vector arrives
    at once, unchanged. Options that contradict each other or do not suit the graph are refused.

    where: file and key of the conditions, for errors.

    order: agents move all at once, or one after another, each seeing those that have moved.

    meter: what has been sent since the start, and how often agents have moved (``meter.Meter``).

    active: which agents move in this iteration, a mask (chains, agents); None: all.

    local: coordinates that belong to the agent who holds them, a mask (width,). Of vectors of this
    width they are never sent, and stay as they are where others are mixed. None: all are shared.
    """

    def __init__(
        self,
        graph: Graph,
        conditions: Conditions | None = None,
        where: str = "network",
        order: Order = "simultaneous",
    ) -> None:
        self.graph, self.agents, self.order = graph, graph.agents, order
        self.conditions = conditions or Conditions()
        if self.conditions != Conditions() and graph.server_messages is not None:
            raise ConcordError(
                f"{where}: what happens on the way to a server is not modelled; remove it, or use "
                "topology complete"
            )
        self.conditions.check(graph, where)
        lossless = self.conditions.is_lossless
        if order == "in_place" and not (lossless and graph.server_messages is None):
            raise ConcordError(
                "update_order: in_place needs neighbors that all hear each other; use simultaneous"
            )
        if not lossless and graph.weighs_beyond_edges:
            raise ConcordError(
                f"network: agents of {graph.name} average with more than neighbors; remove network"
            )
        self.chains = self.dim = (
            1  # of the chains that are started, and coordinates that they share
        )
        self.local: np.ndarray | None = None
        self._matrices: dict[str, tuple[str | float, Matrix]] = {}
        self._channels = None if lossless else Channels(graph, self.conditions)
        self.active: np.ndarray | None = None
        self.clock: Clock | None = None
        self.meter = Meter(graph)

    def summary(self) -> dict[str, object]:
        """Return the graph's sizes, and the conditions that differ from the defaults, by name."""
        degrees, edges, usual = self.degrees, len(self.graph.edges), plain(Conditions())
        return {
            "graph": self.name,
            "agents": count_named(self.agents, self.agent_names),
            "edges": f"{edges}{' directed' if self.graph.directed else ''}",
            "neighbors": f"{degrees.min()} to {degrees.max()}",
            "connected": None if self.graph.is_connected else "no",
            "weights": None if self.graph.weights is None else "its own",
            **{name: v for name, v in plain(self.conditions).items() if v != usual[name]},
        }

    @property
    def name(self) -> str:
        """Return the graph's kind, such as ``ring``."""
        return self.graph.name

    @property
    def title(self) -> str:
        """Return the network's shape: "ring of 4", or "4 agents, 5 edges" of a caller's graph."""
        sizes = f"{self.agents} agents, {len(self.graph.edges)} edges"
        return sizes if self.name == OWN else f"{self.name} of {self.agents}"

    @property
    def names(self) -> tuple[Hashable, ...]:
        """Return the agents' names in the order of their numbers: nodes of a graph, or numbers."""
        return tuple(range(self.agents)) if self.graph.nodes is None else self.graph.nodes

    @property
    def agent_names(self) -> tuple[str, ...] | None:
        """Return the agents' names as texts; None if they are numbers."""
        return None if self.names == tuple(range(self.agents)) else tuple(map(str, self.names))

    def name_agents(self, names: tuple[str, ...] | None) -> Network:
        """Return the network whose agents are those of given names, in their order.

        A network without names gets them, and nodes in another order are put in this one. A
        ConcordError if the nodes are others, or conditions name them by number. None: as they are.
        """
        own, graph = self.agent_names or names, self.graph
        if names is None or own is None or self.agent_names == names:
            return self
        if strange := [name for name in own if name not in names]:
            raise ConcordError(
                f"network: the node {strange[0]!r} is no site of the data; "
                f"{nearest(strange[0], {*names} - {*own})}"
            )
        if names != own and self.conditions != Conditions():
            raise ConcordError(
                f"network: what happens on it is of agents by number; give its nodes in the order "
                f"of the sites, {', '.join(names)}"
            )
        order = [own.index(name) for name in names]
        weights = None if graph.weights is None else graph.weights[order][:, order]
        named = replace(graph, edges=np.argsort(order)[graph.edges], weights=weights, nodes=names)
        return Network(named, self.conditions, order=self.order)

    @property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """Return the graph's edges as pairs of agents."""
        return tuple((i, j) for i, j in self.graph.edges.tolist())

    @property
    def degrees(self) -> np.ndarray:
        """Return the number of neighbors that hear each agent, (agents,)."""
        return self.graph.degrees

    @suggest_names
    def plot(self) -> Figure:
        """Draw the agents and the edges between them; with a direction these are arrows.

        Links that do not carry every message are dashed, agents that sleep are pale, and a legend
        says how often.

        Returns
        -------
        matplotlib.figure.Figure
            A picture, which notebooks show; ``savefig`` writes it.

        Examples
        --------
        >>> import concord
        >>> concord.network("ring", 8).plot().savefig("ring.png")
        """
        names = [*map(str, self.names)]
        figure: Figure = pictures("graphs").plot_graph(self.graph, names, self.conditions)
        return figure

    @property
    def is_lossless(self) -> bool:
        """Return whether every vector arrives at once, unchanged."""
        return self._channels is None

    @property
    def delivers_all(self) -> bool:
        """Return whether every vector arrives at once, though liars may have replaced theirs."""
        return self.conditions.delivers_all

    @property
    def traffic(self) -> Traffic | None:
        """Return the state of links and agents in this iteration (``effects.Traffic``).

        None on a lossless network, and before the first iteration.
        """
        return None if self._channels is None else self._channels.traffic

    @property
    def keeps_time(self) -> bool:
        """Return whether gradients or vectors take time on the simulated clock."""
        return self.conditions.keeps_time

    def start(
        self,
        x0: np.ndarray,
        rng: np.random.Generator | None = None,
        times: np.random.Generator | None = None,
        local: np.ndarray | None = None,
    ) -> Self:
        """Return a copy of the network that is ready for a block of chains, all counts zero.

        x0: positions that neighbors know at the start, (chains, agents, dim). rng: the stream of
        effects on vectors. times: the stream of computing times. local: as of the network.
        """
        new = copy(self)
        new.local = local
        new.chains, _, new.dim = new.select_shared(x0).shape
        new.meter = Meter(self.graph)
        if self.keeps_time:
            assert times is not None
            options = self.conditions
            new.clock = Clock(self.graph, new.chains, options.compute, options.link, times)
        if self._channels is not None:
            new._channels = self._channels.start(new.chains, rng, new.clock)
        new.open_channel(x0)
        return new

    def open_channel(self, first: np.ndarray) -> int:
        """Open a channel for one more vector of every agent, and return its number for ``mix``.

        first: the vectors that neighbors know at the start, (chains, agents, dim). In an iteration
        all vectors of an agent arrive at a neighbor, or none.
        """
        return 0 if self._channels is None else self._channels.open(self.select_shared(first))

    def select_shared(self, x: np.ndarray) -> np.ndarray:
        """Return the shared coordinates of vectors (..., dim), which alone are sent."""
        if self.local is None or x.shape[-1] < self.local.size:
            return x
        if x.shape[-1] > self.local.size:
            raise ConcordError(
                f"network: a vector of {x.shape[-1]} numbers would send what an agent of "
                f"{self.local.size} coordinates keeps; send positions by themselves"
            )
        shared: np.ndarray = x[..., ~self.local]
        return shared

    def replace_shared(self, x: np.ndarray, shared: np.ndarray) -> np.ndarray:
        """Return x with other shared coordinates (..., shared), and local ones as they are."""
        if self.local is None or x.shape[-1] != self.local.size:
            return shared
        whole = x.copy()
        whole[..., ~self.local] = shared
        return whole

    def begin(self, k: int) -> None:
        """Draw the links, losses and awake agents of iteration k."""
        self.active = None
        if self._channels is not None:
            self._channels.begin(k)
            self.active = self.awake

    @property
    def awake(self) -> np.ndarray | None:
        """Return a mask of the agents that are awake, (chains, agents). None: all, always."""
        return None if self._channels is None else self._channels.awake

    def mix(
        self,
        weights: str | float | Matrix,
        x: np.ndarray,
        plus: np.ndarray | None = None,
        *,
        channel: int = 0,
        chains: np.ndarray | None = None,
        size: float | None = None,
    ) -> np.ndarray:
        r"""Send x to all neighbors, and return the mixture :math:`\sum_j W_{ij} x_j + r_i`.

        x: the vectors, (chains, agents, dim).

        weights: W, or its name (``weights.mixing_matrix``).

        plus: r, (chains, agents, dim); None: zero.

        channel: that which carries x, by its number (``open_channel``).

        chains: which chains exchange vectors, a mask (chains,); others keep x. None: all.

        size: bytes of a message, of samplers that compress by themselves; None: those of x.
        """
        matrix = self.matrix(weights) if isinstance(weights, str | float) else weights
        sent = self.select_shared(x)
        self._count_round(sent.shape[-1] / self.dim, chains, size or self._vector_size(sent))
        if self.order == "in_place":
            swept = _sweep(matrix, sent, None if plus is None else self.select_shared(plus))
            return self.replace_shared(x if plus is None else x + plus, swept)
        if self._channels is None or self.traffic is None:
            mixed = weighted_sum(matrix, sent)
        else:
            mixed = self._channels.mix(matrix, sent, channel)
        if chains is not None:
            mixed = np.where(chains[:, None, None], mixed, sent)
        mixed = self.replace_shared(x, mixed)
        return mixed if plus is None else mixed + plus

    def mix_known(self, weights: Matrix, x: np.ndarray, channel: int = 0) -> np.ndarray:
        r"""Return :math:`\sum_j W_{ij} x_j` with the neighbors' last vectors; nothing is sent.

        x: each agent's own vector, (chains, agents, dim). channel: that of the neighbors' vectors.
        weights: the matrix W.
        """
        own = self.select_shared(x)
        if self._channels is None:
            return self.replace_shared(x, weighted_sum(weights, own))
        return self.replace_shared(x, self._channels.mix_known(weights, own, channel))

    def difference(self, agents: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Exchange x between two neighbors in each chain, and return x_i - x_j and x_j - x_i.

        agents: the pairs (i, j), (chains, 2). x: their vectors, (chains, 2, dim), as is the result.
        An agent whose neighbor's vector does not arrive gets a difference of zero, as all get of
        local coordinates.
        """
        self.count_sent(agents)
        sent = self.select_shared(x)
        apart = self.replace_shared(np.zeros_like(x), sent - sent[:, ::-1])
        if self._channels is None:
            return apart
        return np.where(self._channels.arrives_between(agents)[..., None], apart, 0.0)

    def average(
        self, x: np.ndarray, *, senders: np.ndarray | None = None, size: Numbers | None = None
    ) -> np.ndarray:
        """Return the average of x over the agents by a server, (chains, 1, dim).

        With local coordinates, which each agent keeps, it is (chains, agents, dim).

        x: (chains, agents, dim). senders: which agents take part and pay for their messages, a mask
        (chains, agents); None: all. size: bytes of a message, a number or (chains, agents); None:
        those of x.
        """
        counts = self.meter.once if senders is None else self.meter.once * senders
        sent = self.select_shared(x)
        self.meter.add_sent(counts, counts, self._vector_size(sent) if size is None else size)
        average = sent.mean(axis=1, keepdims=True)
        if sent is not x:
            average = np.repeat(average, self.agents, axis=1)
        return self.replace_shared(x, average)

    def announce(self, agents: np.ndarray) -> None:
        """Count one vector that each chosen agent sends to all its neighbors.

        agents: a mask (agents,).
        """
        self.meter.add_sent(self.meter.copies * agents, self.meter.once * agents, self.dim * 8)

    def count_sent(
        self, agents: np.ndarray, vectors: Numbers = 1, copies: Numbers | None = None
    ) -> None:
        """Count plain vectors that chosen agents send.

        agents: numbers of the agents, (chains, few). vectors: how many vectors each sends. copies:
        how many unicasts they take; None: one for each vector.
        """
        broadcasts = self._scatter(agents, vectors)
        unicasts = broadcasts if copies is None else self._scatter(agents, copies)
        self.meter.add_sent(unicasts, broadcasts, self.dim * 8)

    def mark_active(self, agents: np.ndarray) -> None:
        """Set the agents that move in this iteration, by number, (chains, few); others stay."""
        self.active = self._scatter(agents, True)

    def _scatter(self, agents: np.ndarray, values: Numbers) -> np.ndarray:
        """Return values of chosen agents as an array over all agents, (chains, agents).

        agents: numbers, (chains, few). values: a number or (chains, few). Other agents have zero.
        """
        each = np.zeros((self.chains, self.agents), np.result_type(values))
        each[np.arange(self.chains)[:, None], agents] = values
        return each

    def end(self, k: int, gradients: Numbers) -> None:
        """Count the moves of iteration k, and advance the clock by its time.

        gradients: how many each agent has taken, a number, (agents,) or (chains, agents).
        """
        if self.active is not None:
            self.meter.add_moves(self.active)
        if self.clock is None:
            return
        moves = np.ones((self.agents, 1), dtype=bool) if self.active is None else self.active.T
        gradients = np.atleast_2d(gradients).T if np.ndim(gradients) else gradients
        if self.conditions.barrier:
            size = np.zeros((self.agents, 1)) + np.atleast_2d(self.meter.step_bytes).T
            up = None if self.traffic is None else self.traffic.up
            self.clock.wait_for_neighbors(size, moves, gradients, up)
        else:
            self.clock.restart_gradients(k, moves, gradients)
        self.meter.step_bytes = 0.0

    def matrix(self, weights: str | float) -> Matrix:
        """Return the mixing matrix of a name or a number (``mixing_matrix``).

        weights: the name, or the weight of every edge. Matrices of names are cached, and that of
        the last number.
        """
        key = weights if isinstance(weights, str) else "number"
        if self._matrices.get(key, (None, None))[0] != weights:
            self._matrices[key] = weights, mixing_matrix(self.graph, weights)
        return self._matrices[key][1]

    def _vector_size(self, sent: np.ndarray) -> float:
        """Return the bytes of the message for one agent's shared vector, after compression."""
        if self._channels is not None:
            return self._channels.vector_size(sent)
        return sent.shape[-1] * sent.itemsize

    def _count_round(self, vectors: float, chains: np.ndarray | None, size: float) -> None:
        """Count a round in which agents send vectors to all neighbors that they reach.

        vectors: the message's length in units of a position. chains: which chains send, a mask
        (chains,); None: all. size: bytes of the message.
        """
        number: Numbers = 1 if vectors == 1 else vectors
        if self.traffic is None and self.clock is None and chains is None:
            return self.meter.add_rounds(number, size)
        if chains is not None:
            number = number * chains[:, None]
        copies, once = self.meter.copies, self.meter.once
        if self._channels is not None and (varying := self._channels.count_copies()) is not None:
            copies, once = varying, np.minimum(varying, 1)
        self.meter.add_sent(number * copies, number * once, size / vectors)


def weighted_sum(matrix: Matrix, x: np.ndarray) -> np.ndarray:
    r"""Return :math:`\sum_j M_{ij} x_j`, (chains, agents, dim), in the floating-point type of x."""
    matrix = matrix.astype(x.dtype, copy=False)
    if isinstance(matrix, np.ndarray):
        total: np.ndarray = matrix @ x
        return total
    chains, agents, dim = x.shape
    flat = x.transpose(1, 0, 2).reshape(agents, chains * dim)
    return np.ascontiguousarray((matrix @ flat).reshape(agents, chains, dim).transpose(1, 0, 2))


def _sweep(matrix: Matrix, x: np.ndarray, plus: np.ndarray | None) -> np.ndarray:
    r"""Return the positions after agents moved one after another, each seeing the moved ones.

    .. math:: x'_i = \sum_{j<i} M_{ij} x'_j + \sum_{j \ge i} M_{ij} x_j + r_i

    matrix: M. x: the positions before, (chains, agents, dim). plus: r; None: zero.
    """
    dense = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
    moved = x.copy()
    for agent, row in enumerate(dense):
        moved[:, agent] = row @ moved
        if plus is not None:
            moved[:, agent] += plus[:, agent]
    return moved
