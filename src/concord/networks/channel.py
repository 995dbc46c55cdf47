"""What a sampler sends its vectors through: it says what it sends, and gets what has arrived.

``connect`` opens the channel of a topology for arrays of one shape. Samplers use nothing else of
the network in a step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from concord.networks import mixing
from concord.networks.faults import Network, Static, Weather
from concord.networks.matrix import AgentMatrix, Apply
from concord.networks.topology import Topology

Pair = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
Step = TypeVar("Step", bound=Callable[..., Any])


def connect(topology: Topology, x0: np.ndarray) -> Channel:
    """Return the channel for arrays like x0, (chains, agents, dim), which neighbors know."""
    return Faulty(topology, x0) if isinstance(topology, Network) else Channel(topology, x0)


class Channel:
    """A channel on which everything arrives at once.

    Attributes
    ----------
    unicasts, broadcasts
        Vectors that each agent sends in an iteration, (agents,), of a sampler in which every agent
        sends one to all its neighbors: counted for each of them, or once.
    active
        Which agents are awake, (chains, agents); None: all.
    """

    active: np.ndarray | None = None

    def __init__(self, topology: Topology, x0: np.ndarray) -> None:
        self.topology, (self.chains, _, self.dim) = topology, x0.shape
        self.unicasts, self.broadcasts = topology.degrees, np.minimum(topology.degrees, 1)

    def mixer(self, weights: AgentMatrix, order: str) -> mixing.Mixer:
        """Return ``mixing.mixer``: every agent sends its x and averages what arrives."""
        return mixing.mixer(weights, self.chains, self.dim, order)

    def diffuser(self, order: str, neighbors: str) -> mixing.Diffuser:
        """Return ``mixing.diffuser``, or ``diffuser_in_turn``: every agent sends its x."""
        if neighbors == "in_turn":
            return mixing.diffuser_in_turn(self.topology, self.chains, self.dim)
        return mixing.diffuser(self.topology.laplacian(), self.chains, self.dim, order)

    def sweep(self, coupling: AgentMatrix, order: str) -> mixing.Sweep:
        """Return ``mixing.sweep``, over what arrived last: nothing is sent for it."""
        return mixing.sweep(coupling, self.chains, self.dim, order)

    def disagreement(self) -> Apply:
        """Return ``disagree(x, out)``: every agent sends its x and adds up its differences."""
        return self.topology.laplacian().operator(self.chains, self.dim)

    def pair(self) -> Pair:
        """Return ``differ(agents, x, out)`` for two agents of each chain that send each other x.

        ``agents`` (chains, 2) are neighbors, x (chains, 2, dim) what they send; out is what each
        sends minus what it hears.
        """
        return lambda agents, x, out: np.subtract(x, x[:, ::-1], out=out)

    def through(self, step: Step) -> Step:
        """Return the step as it goes on this channel, iteration by iteration."""
        return step


class Faulty(Channel):
    """A channel on which vectors get lost, late or compressed, between agents that may sleep.

    ``held`` has the agents' own vectors, then what each receiver takes for what each way should
    have brought, (agents + edges, chains, dim).
    """

    def __init__(self, network: Network, x0: np.ndarray) -> None:
        super().__init__(network, x0)
        network.channels.append(self)
        self._conditions = network.conditions
        self._weather = Weather(network, self.chains)
        self._edges = self._weather.edges
        agents, size = network.agents, len(self._edges.links)
        self._held = np.empty((agents + size, self.chains, self.dim), x0.dtype)
        self._own, self._inbox = self._held[:agents], self._held[agents:]
        self._sent = np.empty_like(self._inbox)
        self._encode = self._encoder(x0.dtype)
        slots = self._weather.reach + 1 if self._weather.reach else 0
        self._past = np.empty((slots, *self._own.shape), x0.dtype)  # what was sent, by iteration
        np.copyto(self._own, x0.transpose(1, 0, 2))
        np.take(self._own, self._edges.senders, axis=0, out=self._inbox, mode="clip")
        varies = self._conditions.awake < 1 or self._conditions.schedule != Static()
        if varies:
            self.unicasts = np.zeros((self.chains, agents), dtype=np.int64)
            self.broadcasts = np.zeros_like(self.unicasts)
        self._count = self._count_sent if varies else lambda: None
        if self._conditions.awake < 1:
            self.active = self._weather.awake.T

    def mixer(self, weights: AgentMatrix, order: str) -> mixing.Mixer:
        """Return the mixer of what arrives; everybody at once."""
        gather = self._gather(weights)

        def mix(x: np.ndarray, residual: np.ndarray, out: np.ndarray) -> np.ndarray:
            self._send(x)
            return np.add(gather(out), residual, out=out)

        return mix

    def diffuser(self, order: str, neighbors: str) -> mixing.Diffuser:
        """Return the diffuser of what arrives; everybody at once."""
        gather = self._gather(self.topology.laplacian())

        def diffuse(
            x: np.ndarray, residual: np.ndarray, out: np.ndarray, coefficient: float
        ) -> np.ndarray:
            self._send(x)
            np.multiply(gather(out), -coefficient, out=out)
            np.add(out, x, out=out)
            return np.add(out, residual, out=out)

        return diffuse

    def sweep(self, coupling: AgentMatrix, order: str) -> mixing.Sweep:
        """Return the sweep over what each agent has, and has heard last."""
        gather, totals = self._gather(coupling), np.empty_like(self._own.transpose(1, 0, 2))

        def move(x: np.ndarray, respond: mixing.Respond, out: np.ndarray) -> np.ndarray:
            np.copyto(self._own, x.transpose(1, 0, 2))
            respond(slice(None), gather(totals), out)
            return out

        return move

    def disagreement(self) -> Apply:
        """Return ``disagree(x, out)`` with what arrives."""
        gather = self._gather(self.topology.laplacian())

        def disagree(x: np.ndarray, out: np.ndarray) -> np.ndarray:
            self._send(x)
            return gather(out)

        return disagree

    def pair(self) -> Pair:
        """Return ``differ``: nothing heard is no difference."""
        agents = self.topology.agents
        ways = self._edges.receivers * agents + self._edges.senders
        chain = np.arange(self.chains)[:, None]

        def differ(pair: np.ndarray, x: np.ndarray, out: np.ndarray) -> np.ndarray:
            np.subtract(x, x[:, ::-1], out=out)
            way = np.searchsorted(ways, pair * agents + pair[:, ::-1])
            return np.multiply(out, self._weather.arrived[way, chain][..., None], out=out)

        return differ

    def through(self, step: Step) -> Step:
        """Return the step that first draws what arrives; who sleeps is where it was."""
        awake = self._weather.awake.T[:, :, None]
        kept: list[np.ndarray] = []

        def taken(state: Any, k: int, rng: np.random.Generator) -> Any:
            self._weather.draw(k)
            self._count()
            if self.active is None:
                return step(state, k, rng)
            if not kept:
                kept.extend(np.empty_like(part) for part in state)
            for copy, part in zip(kept, state, strict=True):
                np.copyto(copy, part)
            state, info = step(state, k, rng)
            for copy, part in zip(kept, state, strict=True):
                np.copyto(part, copy, where=~awake)
            return state, info

        return cast(Step, taken)

    def _send(self, x: np.ndarray) -> None:
        """Let every agent send its x; what does not arrive is replaced as the policy says."""
        np.copyto(self._own, x.transpose(1, 0, 2))
        if self._conditions.on_loss != "reuse_last":
            np.take(self._own, self._edges.receivers, axis=0, out=self._inbox, mode="clip")
        code, weather = self._encode(), self._weather
        if weather.age is None:
            self._take(code, weather.arrived)
            return
        np.copyto(self._past[weather.iteration % len(self._past)], code)
        for age in range(min(weather.iteration + 1, len(self._past))):
            sent = self._past[(weather.iteration - age) % len(self._past)]
            self._take(sent, weather.arrived & (weather.age == age))

    def _take(self, sent: np.ndarray, arrived: np.ndarray) -> None:
        """Put what agents sent, (agents, chains, dim), where it arrives, (edges, chains)."""
        np.take(sent, self._edges.senders, axis=0, out=self._sent, mode="clip")
        np.copyto(self._inbox, self._sent, where=arrived[:, :, None])

    def _encoder(self, dtype: Any) -> Callable[[], np.ndarray]:
        """Return ``encode()``: what agents send for their own vectors, (agents, chains, dim)."""
        compression, own = self._conditions.compression, self._own
        if compression is None:
            return lambda: own
        network = self.topology
        assert isinstance(network, Network)
        assert network.masks is not None
        (rng,) = network.masks.spawn(1)  # so that masks do not depend on what is sent
        compress = compression.module.compressor(compression.params, own.shape, dtype)
        code = np.empty_like(own)
        if not self._conditions.error_feedback:

            def encode() -> np.ndarray:
                compress(own, rng, code)
                return code

            return encode
        left, whole, awake = np.zeros_like(own), np.empty_like(own), self._weather.awake

        def encode_with_feedback() -> np.ndarray:
            np.add(own, left, out=whole)
            compress(whole, rng, code)
            np.subtract(whole, code, out=whole)
            np.copyto(left, whole, where=awake[..., None])
            return code

        return encode_with_feedback

    def _gather(self, matrix: AgentMatrix) -> Callable[[np.ndarray], np.ndarray]:
        """Return ``gather(out)``, the matrix times what agents have and what they took."""
        agents, flat = self.topology.agents, self._held.reshape(len(self._held), -1)
        off = matrix.rows != matrix.columns
        ways = self._edges.receivers * agents + self._edges.senders
        columns = agents + np.searchsorted(ways, matrix.rows[off] * agents + matrix.columns[off])
        own = np.arange(agents)
        rows, columns = np.concatenate([own, matrix.rows[off]]), np.concatenate([own, columns])
        values = np.concatenate([matrix.diagonal, matrix.values[off]])
        if agents <= 32:
            weights = np.zeros((agents, len(self._held)))
            weights[rows, columns] = values
        else:
            from scipy.sparse import csr_array

            weights = csr_array((values, (rows, columns)), shape=(agents, len(self._held)))

        def gather(out: np.ndarray) -> np.ndarray:
            totals = (weights @ flat).reshape(self._own.shape)
            np.copyto(out, totals.transpose(1, 0, 2))
            return out

        return gather

    def _count_sent(self) -> None:
        """Count what agents that are awake send over ways that are up; these are as many back."""
        self._edges.add(self._weather.up, self.unicasts.T)
        self.unicasts *= self._weather.awake.T
        np.minimum(self.unicasts, 1, out=self.broadcasts)
