"""What a step is read with: prescribed random numbers, errors of gradients, and vectors heard."""

from __future__ import annotations

from typing import Any, Self, cast

import numpy as np

from concord.minibatches import Batches, MiniBatches
from concord.networks.network import Network

# Sizes of the random chains' numbers: thresholds lie between some of them. The first is zero.
SIZES = np.concatenate([[0.0], np.logspace(-6, 6, 9), np.ones(9)])
LOST = "vectors may get lost on this network, and "


class Unreadable(Exception):
    """Why a step is not read."""


class Script:
    """What random chains draw and hear, in place of a generator; or what is prescribed.

    given: numbers by kinds, (chains, ...), and outcomes of choices, (chains, choices); None: random
    numbers of ``SIZES``, which are kept.
    inputs: the numbers of each kind so far. outcomes, chances: of the choices so far. after: fields
    of the state after the step that are the same for all chains.
    """

    def __init__(
        self, chains: int, given: dict[str, np.ndarray] | None = None, outcomes: Any = None
    ) -> None:
        self.chains, self._given, self._prescribed = chains, given, outcomes
        self.inputs: dict[str, list[np.ndarray]] = {}
        self.outcomes: list[np.ndarray] = []
        self.chances: list[np.ndarray] = []
        self.results = np.empty((chains, 0))
        self.after: dict[str, np.ndarray] = {}
        self._rng = np.random.default_rng(0) if given is None else None
        self._sizes = np.resize(SIZES, chains)[:, None]
        self.begun: dict[str, int] = {}

    def take(self, kind: str, count: int) -> np.ndarray:
        """Return the next numbers of a kind, (chains, count)."""
        if self._rng is not None:
            numbers = self._sizes * self._rng.standard_normal((self.chains, count))
            self.inputs.setdefault(kind, []).append(numbers)
            return numbers
        begin = self.begun.get(kind, 0)
        self.begun[kind] = begin + count
        assert self._given is not None
        numbers = self._given[kind][:, begin : begin + count]
        if numbers.shape[1] != count:
            raise Unreadable("how much it draws depends on where it is")
        return numbers

    def count(self, kind: str) -> int:
        """Return how many numbers of a kind a chain has taken."""
        return sum(part.shape[1] for part in self.inputs.get(kind, []))

    def does_as(self, other: Script) -> bool:
        """Whether both have drawn and done the same."""
        return (
            np.array_equal(self.results, other.results)
            and len(self.chances) == len(other.chances)
            and all(map(np.array_equal, self.chances, other.chances))
        )

    # As a generator

    def standard_normal(self, size: Any = None, dtype: Any = None, out: Any = None) -> np.ndarray:
        """Return the next normal numbers; one axis is of chains."""
        shape = (size,) if isinstance(size, int) else tuple(size or ())
        if self.chains not in shape or out is not None:
            raise Unreadable("it draws numbers that are not of each chain")
        axis = shape.index(self.chains)
        rest = shape[:axis] + shape[axis + 1 :]
        numbers = self.take("normals", int(np.prod(rest))).reshape(self.chains, *rest)
        return np.moveaxis(numbers, 0, axis)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> np.ndarray:
        """Return normal numbers of a mean and standard deviation."""
        return loc + scale * self.standard_normal(size)

    def choose(self, probability: np.ndarray, chains: int) -> np.ndarray:
        """Return the outcomes of the next choice, (chains,)."""
        place = len(self.chances)
        self.chances.append(probability)
        if self._rng is not None:
            self.outcomes.append(self._rng.integers(0, len(probability), chains))
            return self.outcomes[-1]
        if place >= self._prescribed.shape[1]:
            raise Unreadable("what it chooses from depends on where it is")
        outcome: np.ndarray = self._prescribed[:, place]
        return outcome

    def __getattr__(self, name: str) -> Any:
        """Refuse whatever else is drawn."""
        if name.startswith("_"):
            raise AttributeError(name)
        raise Unreadable(f"it draws random numbers other than normal ones ({name})")


class ErringProblem(MiniBatches):
    """A problem whose gradients, taken once in a step at its positions, have prescribed errors."""

    full_cost: Any = 1

    def __init__(
        self, problem: Any, batches: Batches, script: Script, x: np.ndarray | None
    ) -> None:
        self.problem, self._script, self._x = problem, script, x
        how = batches.batch_scale, batches.batch_pool
        self._mean = problem.gram, problem.shift
        if how != ("data", "all"):
            self._mean = problem.batch_mean(batches.batch_size, *how)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return gradients with errors."""
        if self._x is None or not np.array_equal(x, self._x):
            raise Unreadable("it takes mini-batches elsewhere than at the positions")
        if self._script.count("errors") or "errors" in self._script.begun:
            raise Unreadable("it takes more than one mini-batch in a step")
        gram, shift = self._mean
        gradient = np.einsum("ade,cae->cad", gram, x) - shift
        return gradient + self._script.take("errors", shift.size).reshape(x.shape)

    def gradient_of(self, agents: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Refuse mini-batches of few agents."""
        raise Unreadable("it takes mini-batches of few agents")

    def difference(self, x: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """Refuse differences of mini-batches."""
        raise Unreadable("it takes differences of mini-batches")


class ScriptedNetwork(Network):
    """A network on which what is heard is prescribed; nothing happens where everything arrives."""

    def __init__(self, network: Network) -> None:
        vars(self).update(vars(network))
        self.lossless = network.is_lossless
        self.effects, self.barrier, self.compute, self.link = [], True, None, None
        self.script: Script | None = None

    @property
    def is_lossless(self) -> bool:
        """Whether every vector arrives at once, as it is."""
        return self.lossless

    @property
    def lanes(self) -> list[_Lane]:
        """The lanes that are open."""
        return cast("list[_Lane]", self._lanes)

    def listen(self, script: Script, x: np.ndarray, lanes: int = 1) -> Self:
        """Return the network ready for positions x on which so many lanes are open."""
        self.script = script
        started = self.start(x)
        for _ in range(lanes - 1):
            started.open_lane(x)
        return started

    def hear(self) -> None:
        """Prescribe what is heard in a step."""
        if self.lossless:
            return
        assert self.script is not None
        count = len(self.graph.senders) * self.dim
        for lane in self.lanes:
            lane.beyond = self.script.take("heard", count)
        if self.on_loss == "reuse_last":
            first = self.lanes[0]
            first.heard = first.spread(first.first, self.script.take("late", count))

    def check_sent(self) -> None:
        """Refuse a step that has not sent what it sends in others."""
        if not all(lane.sent for lane in self.lanes):
            raise Unreadable(LOST + "it does not send in every iteration")

    def open_lane(self, first: np.ndarray) -> int:
        """Open a lane on which what is heard is prescribed."""
        if self.lossless:
            return 0
        self.lanes.append(_Lane(self.graph, first))
        return len(self._lanes) - 1

    def vectors(self) -> list[np.ndarray]:
        """Return what was sent on each lane, or what neighbors know of it, (chains, ...)."""
        return [lane.vectors.reshape(self.chains, -1) for lane in self.lanes]


class _Lane:
    """One vector of every agent, and what receivers hear of it.

    first: what neighbors know at first. vectors: what was sent, or that. sent: whether it was.
    beyond: what is heard beyond what is sent, (chains, ways * dim).
    """

    def __init__(self, graph: Any, first: np.ndarray) -> None:
        self._graph, self.first, self.vectors = graph, first, first
        self._heard: np.ndarray | None = None
        self.beyond, self.sent = np.empty(0), False

    @property
    def heard(self) -> np.ndarray:
        """What was heard last, (ways, chains, dim)."""
        if self._heard is None:
            raise Unreadable(LOST + "it mixes what was heard before; use on_loss: reuse_last")
        return self._heard

    @heard.setter
    def heard(self, vectors: np.ndarray) -> None:
        self._heard = vectors

    def spread(self, x: np.ndarray, beyond: np.ndarray) -> np.ndarray:
        """Return what is heard of x, (ways, chains, dim)."""
        ways = x.transpose(1, 0, 2)[self._graph.senders]
        return ways + beyond.reshape(len(x), len(ways), -1).transpose(1, 0, 2)

    def send(self, x: np.ndarray, traffic: Any, k: int) -> np.ndarray:
        """Send x, and return what receivers take."""
        if self.sent or x.shape != self.first.shape:
            raise Unreadable(LOST + "it sends other than a vector of each agent on a lane")
        self.sent, self.vectors = True, x
        self.heard = self.spread(x, self.beyond)
        return self.heard
