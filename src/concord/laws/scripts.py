"""Scripted inputs of a step that is read as matrices.

They are random numbers, errors of gradients, and received vectors.
"""

from __future__ import annotations

from copy import copy
from typing import Any, Self, cast

import numpy as np
from msgspec.structs import replace

from concord.batch_gradients import MiniBatches
from concord.minibatches import Batches
from concord.networks.channels import Channels
from concord.networks.conditions import Conditions
from concord.networks.graph import Matrix
from concord.networks.network import Network

# Sizes of the random chains' numbers: thresholds lie between some of them. The first is zero.
SIZES = np.concatenate([[0.0], np.logspace(-6, 6, 9), np.ones(9)])
LOST = "vectors may get lost on this network, and "


class UnreadableStep(Exception):
    """An error that says why a sampler's step cannot be read as matrices."""


class Script:
    """A stand-in for a random generator, from which a step takes all numbers it does not compute.

    numbers: prescribed numbers by kinds, (chains, ...); None: random numbers of sizes ``SIZES``,
    which are stored in ``inputs``. outcomes: prescribed outcomes of choices, (chains, choices).
    inputs: the random numbers of each kind so far. outcomes, chances: outcomes and probabilities of
    the choices so far.
    """

    def __init__(
        self, chains: int, numbers: dict[str, np.ndarray] | None = None, outcomes: Any = None
    ) -> None:
        self.chains, self._numbers, self._prescribed = chains, numbers, outcomes
        self.inputs: dict[str, list[np.ndarray]] = {}
        self.outcomes: list[np.ndarray] = []
        self.chances: list[np.ndarray] = []
        self.results = np.empty((chains, 0))
        self._rng = np.random.default_rng(0) if numbers is None else None
        self._sizes = np.resize(SIZES, chains)[:, None]
        self.begun: dict[str, int] = {}

    def take(self, kind: str, count: int) -> np.ndarray:
        """Return the next ``count`` numbers of a kind, (chains, count)."""
        if self._rng is not None:
            numbers = self._sizes * self._rng.standard_normal((self.chains, count))
            self.inputs.setdefault(kind, []).append(numbers)
            return numbers
        begin = self.begun.get(kind, 0)
        self.begun[kind] = begin + count
        assert self._numbers is not None
        numbers = self._numbers[kind][:, begin : begin + count]
        if numbers.shape[1] != count:
            raise UnreadableStep("how much it draws depends on where it is")
        return numbers

    def count(self, kind: str) -> int:
        """Return how many random numbers of a kind each chain has taken so far."""
        return sum(part.shape[1] for part in self.inputs.get(kind, []))

    def repeat(self, results: np.ndarray, script: Script) -> Script:
        """Return this script of random chains with other results, (chains, entries).

        script: what prescribed these chains' numbers, among others, to the step that gave them.
        Raises ``UnreadableStep`` if that step made other choices, or took fewer numbers.
        """
        counts = {kind: self.count(kind) for kind in self.inputs}
        if script.begun != counts or [*map(len, script.chances)] != [*map(len, self.chances)]:
            raise UnreadableStep("how much it draws depends on the iteration")
        again = copy(self)
        again.results, again.chances = results, script.chances
        return again

    def matches(self, other: Script) -> bool:
        """Return whether another script had the same results and probabilities of choices."""
        return (
            np.array_equal(self.results, other.results)
            and len(self.chances) == len(other.chances)
            and all(map(np.array_equal, self.chances, other.chances))
        )

    # As a generator

    def standard_normal(self, size: Any = None, dtype: Any = None, out: Any = None) -> np.ndarray:
        """Return the next normal numbers.

        size: their shape, of which one axis must be of chains.
        """
        shape = (size,) if isinstance(size, int) else tuple(size or ())
        if self.chains not in shape or out is not None:
            raise UnreadableStep("it draws numbers that are not of each chain")
        axis = shape.index(self.chains)
        rest = shape[:axis] + shape[axis + 1 :]
        numbers = self.take("normals", int(np.prod(rest))).reshape(self.chains, *rest)
        return np.moveaxis(numbers, 0, axis)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> np.ndarray:
        """Return the next normal numbers of a given mean and standard deviation."""
        return loc + scale * self.standard_normal(size)

    def spawn(self, count: int) -> list[Self]:
        """Return this script for each of ``count`` streams."""
        return [self] * count

    def choose(self, probability: np.ndarray, chains: int) -> np.ndarray:
        """Return the outcomes of the next random choice, (chains,)."""
        place = len(self.chances)
        self.chances.append(probability)
        if self._rng is not None:
            self.outcomes.append(self._rng.integers(0, len(probability), chains))
            return self.outcomes[-1]
        if place >= self._prescribed.shape[1]:
            raise UnreadableStep("what it chooses from depends on where it is")
        outcome: np.ndarray = self._prescribed[:, place]
        return outcome

    def __getattr__(self, name: str) -> Any:
        """Refuse any other method of a random generator."""
        if name.startswith("_"):
            raise AttributeError(name)
        raise UnreadableStep(f"it draws random numbers other than normal ones ({name})")


class ScriptedProblem(MiniBatches):
    """A problem whose gradients have prescribed mini-batch errors.

    They may be taken once in a step, at its positions x, (chains, agents, dim).
    """

    full_cost: Any = 1

    def __init__(
        self, problem: Any, batches: Batches, script: Script, x: np.ndarray | None
    ) -> None:
        self.problem, self._script, self._x = problem, script, x
        self._mean = problem.gram, problem.shift
        if (batches.batch_scale, batches.batch_pool) != ("data", "all"):
            self._mean = problem.batch_mean(batches)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the mean mini-batch gradients at x plus scripted errors."""
        if self._x is None or not np.array_equal(x, self._x):
            raise UnreadableStep("it takes mini-batches elsewhere than at the positions")
        if self._script.count("errors") or "errors" in self._script.begun:
            raise UnreadableStep("it takes more than one mini-batch in a step")
        gram, shift = self._mean
        gradient = np.einsum("ade,cae->cad", gram, x) - shift
        return gradient + self._script.take("errors", shift.size).reshape(x.shape)

    def gradient_of(self, agents: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Refuse mini-batches of some agents, which have no scripted errors."""
        raise UnreadableStep("it takes mini-batches of few agents")

    def difference(self, x: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """Refuse differences of mini-batches, which have no scripted errors."""
        raise UnreadableStep("it takes differences of mini-batches")


class ScriptedNetwork(Network):
    """A network on which the received vectors are prescribed by a script.

    It does nothing else than the given network if every vector arrives on that.
    """

    def __init__(self, network: Network) -> None:
        vars(self).update(vars(network))
        self.script: Script | None = None
        if network.delivers_all:
            self._conditions = replace(network.conditions, compute=None, link=None)
        else:
            self._conditions = Conditions(on_loss=network.conditions.on_loss)
            self._channels = _Channels(self.graph, self._conditions)

    @property
    def is_lossless(self) -> bool:
        """Return whether no received vectors are prescribed: all arrive, lies included."""
        return not isinstance(self._channels, _Channels)

    @property
    def lanes(self) -> list[_Lane]:
        """The open lanes, one for each vector that agents send in a step."""
        return [] if self._channels is None else cast("list[_Lane]", self._channels.lanes)

    def start_step(self, script: Script, x: np.ndarray, lanes: int = 1) -> Self:
        """Return a copy of the network, started at positions x, that receives scripted vectors.

        script: prescribes received vectors. lanes: number of lanes to open.
        """
        self.script = script
        started = self.start(x, cast("np.random.Generator", script))
        for _ in range(lanes - 1):
            started.open_lane(x)
        return started

    def mix_known(self, weights: Matrix, x: np.ndarray, lane: int = 0) -> np.ndarray:
        """Mix neighbors' last vectors; refuse if these are unknown, or may be lies."""
        if self._channels is not None and self.is_lossless:
            raise UnreadableStep("it mixes what was heard before, which may be a lie")
        if not self.is_lossless and self.lanes[lane].latest is None:
            raise UnreadableStep(LOST + "it mixes what was heard before; use on_loss: reuse_last")
        return super().mix_known(weights, x, lane)

    def take_received(self) -> None:
        """Take the received vectors of a step from the script."""
        if self.is_lossless:
            return
        assert self.script is not None
        count = len(self.graph.senders) * self.dim
        for lane in self.lanes:
            lane.beyond = self.script.take("differences", count)
        if self.conditions.on_loss == "reuse_last":
            first = self.lanes[0]
            first.latest = first.spread(first.first, self.script.take("memory", count))

    def check_sent(self) -> None:
        """Refuse a step that does not send a vector on every open lane."""
        if not (self.is_lossless or all(lane.sent for lane in self.lanes)):
            raise UnreadableStep(LOST + "it does not send in every iteration")

    def vectors(self) -> list[np.ndarray]:
        """Return the vectors sent on each lane, (chains, agents * dim).

        Before the first is sent they are those that neighbors know.
        """
        lanes = [] if self.is_lossless else self.lanes
        return [lane.vectors.reshape(self.chains, -1) for lane in lanes]


class _Channels(Channels):
    """Channels on which the received vectors are prescribed by a script."""

    def open(self, first: np.ndarray) -> int:
        """Open another lane with prescribed received vectors; return its number.

        first: the vectors that neighbors know at first, (chains, agents, dim).
        """
        self.lanes.append(_Lane(self._graph, first))
        return len(self.lanes) - 1


class _Lane:
    """A vector of every agent, and the copies of it that receivers have.

    first: the vectors that neighbors know at first. vectors: those sent, or the first. sent:
    whether they were sent in this step. beyond: received minus sent vectors, (chains, edges * dim).
    latest: those received last over each directed edge, (edges, chains, dim); None: unknown.
    """

    def __init__(self, graph: Any, first: np.ndarray) -> None:
        self._graph, self.first, self.vectors = graph, first, first
        self.latest: np.ndarray | None = None
        self.beyond, self.sent = np.empty(0), False

    def spread(self, x: np.ndarray, beyond: np.ndarray) -> np.ndarray:
        """Return vectors received over each directed edge, (edges, chains, dim).

        x: the sent vectors, (chains, agents, dim). beyond: received minus sent ones.
        """
        ways = x.transpose(1, 0, 2)[self._graph.senders]
        return ways + beyond.reshape(len(x), len(ways), -1).transpose(1, 0, 2)

    def send(self, x: np.ndarray, traffic: Any, k: int) -> np.ndarray:
        """Send the vectors x, (chains, agents, dim); return those that receivers use.

        traffic, k: what a network passes, unused.
        """
        if self.sent or x.shape != self.first.shape:
            raise UnreadableStep(LOST + "it sends other than a vector of each agent on a lane")
        self.sent, self.vectors = True, x
        self.latest = received = self.spread(x, self.beyond)
        return received
