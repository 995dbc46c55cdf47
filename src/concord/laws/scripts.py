"""Scripted calls of a sampler: whatever it does not compute comes from a script.

That is random numbers, errors of mini-batch gradients, and received vectors.
"""

from __future__ import annotations

import math
from copy import copy
from functools import cached_property, lru_cache
from types import SimpleNamespace
from typing import Any, Self, cast

import numpy as np
from msgspec.structs import replace

from concord.batch_gradients import MiniBatches
from concord.minibatches import Batches, batches_of
from concord.networks.channels import Channels
from concord.networks.conditions import Conditions
from concord.networks.graph import Graph, Matrix
from concord.networks.network import Network
from concord.problem import CountedProblem, Quadratic, local_of
from concord.sampler import check_state

# Sources of the numbers that a call takes: the state (or positions) it begins with, normal numbers,
# errors of mini-batch gradients, received minus sent vectors, and vectors heard before.
SOURCES = ("state", "normals", "errors", "differences", "memory")
# Sizes of the random chains' numbers: thresholds lie between some of them. The first is zero.
SIZES = np.concatenate([[0.0], np.logspace(-6, 6, 9), np.ones(9)])
UNEQUAL = "how much it draws depends on where it is"
LOST = "vectors may get lost on this network, and "
Shape = int | tuple[int, ...] | None


class UnreadableStep(Exception):
    """An error that says why a sampler's step cannot be read as matrices."""


@lru_cache(maxsize=32)  # steps take as many in each iteration
def _draw(chains: int, place: int, count: int) -> np.ndarray:
    """Return what random chains take when they take numbers for the place-th time."""
    numbers = np.random.default_rng(place).standard_normal((chains, count))
    return np.resize(SIZES, chains)[:, None] * numbers


class Script:
    """A stand-in for a random generator, from which a call takes all numbers it does not compute.

    numbers: prescribed numbers by source, (chains, ...); None: random numbers of sizes ``SIZES``.
    prescribed: prescribed outcomes of choices, (chains, choices).

    outcomes, chances: outcomes and probabilities of the choices so far.
    """

    def __init__(
        self,
        chains: int,
        numbers: dict[str, np.ndarray] | None = None,
        prescribed: np.ndarray | None = None,
    ) -> None:
        self.chains, self._numbers, self._prescribed = chains, numbers, prescribed
        self._taken: dict[str, list[np.ndarray]] = {source: [] for source in SOURCES}
        self.outcomes: list[np.ndarray] = []
        self.chances: list[np.ndarray] = []

    @cached_property
    def _rng(self) -> np.random.Generator:
        """The generator of outcomes that are not prescribed."""
        return np.random.default_rng(0)

    def take(self, source: str, count: int) -> np.ndarray:
        """Return the next ``count`` numbers of a source, (chains, count)."""
        if self._numbers is None:
            place = sum(map(len, self._taken.values()))
            numbers = _draw(self.chains, place, count).copy()
        else:
            begin = self.counts[SOURCES.index(source)]
            numbers = self._numbers[source][:, begin : begin + count]
            if numbers.shape[1] != count:
                raise UnreadableStep(UNEQUAL)
        self._taken[source].append(numbers)
        return numbers

    @property
    def counts(self) -> list[int]:
        """The number of numbers that each chain has taken so far of each source."""
        return [sum(part.shape[1] for part in parts) for parts in self._taken.values()]

    @property
    def draws(self) -> list[int]:
        """The number of normal numbers that each chain has taken in each draw so far."""
        return [part.shape[1] for part in self._taken["normals"]]

    def inputs(self) -> np.ndarray:
        """Return all numbers taken so far, source by source, (chains, numbers)."""
        return np.concatenate([part for parts in self._taken.values() for part in parts], axis=1)

    # As a generator

    def standard_normal(
        self, size: Shape = None, dtype: object = None, out: object = None
    ) -> np.ndarray:
        """Return the next normal numbers.

        size: their shape, of which one axis must be of chains.
        """
        shape = (size,) if isinstance(size, int) else tuple(size or ())
        if self.chains not in shape or out is not None:
            raise UnreadableStep("it draws numbers that are not of each chain")
        axis = shape.index(self.chains)
        rest = shape[:axis] + shape[axis + 1 :]
        numbers = self.take("normals", math.prod(rest)).reshape(self.chains, *rest)
        return np.moveaxis(numbers, 0, axis) if axis else numbers

    def normal(self, loc: float = 0.0, scale: float = 1.0, size: Shape = None) -> np.ndarray:
        """Return the next normal numbers of a given mean and standard deviation."""
        return loc + scale * self.standard_normal(size)

    def spawn(self, count: int) -> list[Self]:
        """Return this script for each of ``count`` streams."""
        return [self] * count

    def choose(self, probability: np.ndarray, chains: int) -> np.ndarray:
        """Return the outcomes of the next random choice, (chains,)."""
        place = len(self.chances)
        if self._prescribed is None:
            outcome = self._rng.integers(0, len(probability), chains)
        elif place < self._prescribed.shape[1]:
            outcome = self._prescribed[:, place]
        else:
            raise UnreadableStep(UNEQUAL)
        self.chances.append(probability)
        self.outcomes.append(outcome)
        return outcome

    def __getattr__(self, name: str) -> Any:
        """Refuse any other method of a random generator."""
        if name.startswith("_"):
            raise AttributeError(name)
        raise UnreadableStep(f"it draws random numbers other than normal ones ({name})")


class ScriptedSampler:
    """A sampler on a problem and a network, whose calls take their numbers from scripts.

    problem: the problem. errs: whether its gradients have errors: those of mini-batches, and of
    full gradients where ``errors`` says so. network: the network on which it is called. loses:
    whether vectors may get lost on it.
    unused: empty values of fields with random numbers of steps to come.
    """

    def __init__(
        self, sampler: Any, problem: Quadratic, network: Network, errors: bool = False
    ) -> None:
        self._sampler, self.problem = sampler, problem
        self.errs = errors or batches_of(sampler) is not None
        self.network = ScriptedNetwork(network, local_of(problem))
        self.loses = not network.delivers_all
        self.unused = dict.fromkeys(getattr(sampler, "draws_ahead", ()), np.empty(0))
        self._channel_count = 0  # that the sampler opens when it starts

    def on(self, sampler: Any, problem: Quadratic) -> Self:
        """Return the calls of the sampler with other options, or on another problem."""
        other = copy(self)
        other._sampler, other.problem = sampler, problem
        return other

    def init(self, script: Script) -> tuple[Any, ScriptedNetwork]:
        """Initialize the sampler at a script's positions; return its state and network."""
        agents, dim = self.problem.agents, self.problem.dim
        x = script.take("state", agents * dim).reshape(-1, agents, dim)
        network = self.network.start_scripted(x, script)
        state = self._sampler.init(x, self._scripted_problem(script, None), network, script)
        check_state(state, self._sampler, x.shape)
        self._channel_count = network.channel_count
        return state, network

    def step(self, state: Any, k: int, script: Script) -> tuple[Any, ScriptedNetwork]:
        """Take step k from a state; return the next one, and the network with what was sent.

        k: a number, or an ``Iteration``.
        """
        x = state.x
        network = self.network.start_step(script, x, self._channel_count)
        problem = self._scripted_problem(script, x)
        before = state._replace(**self.unused)
        after = self._sampler.step(before, k, problem, network, script)
        check_state(after, self._sampler, x.shape, before)
        network.check_sent()
        return after, network

    def _scripted_problem(self, script: Script, x: np.ndarray | None) -> CountedProblem:
        """Return the problem that a call sees, whose mini-batch gradients have scripted errors.

        x: the positions at which mini-batches must be taken.
        """
        problem = self.problem
        if self.errs:
            problem = ScriptedProblem(problem, batches_of(self._sampler), script, x)
        return CountedProblem(problem, script.chains)


class ScriptedProblem(MiniBatches):
    """A problem whose gradients have prescribed errors, as those of mini-batches.

    They may be taken once in a step, at its positions x, (chains, agents, dim).
    """

    full_cost: Any = 1

    def __init__(
        self, problem: Any, batches: Batches | None, script: Script, x: np.ndarray | None
    ) -> None:
        self.problem, self._script, self._x = problem, script, x
        self._mean = problem.gram, problem.shift
        if batches is None:  # what else it offers would have no errors
            self.problem = SimpleNamespace(agents=problem.agents, dim=problem.dim)
        elif (batches.batch_scale, batches.batch_pool) != ("data", "all"):
            self._mean = problem.batch_mean(batches)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the mean mini-batch gradients at x plus scripted errors."""
        if self._x is None or not np.array_equal(x, self._x):
            raise UnreadableStep("it takes mini-batches elsewhere than at the positions")
        if self._script.counts[SOURCES.index("errors")]:
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
    """A network on which the received vectors are prescribed by a script, if they may differ.

    Where every vector arrives it does what the given network does. Its vectors have all
    coordinates, though local ones are not mixed, so that all are of one size.
    """

    def __init__(self, network: Network, local: np.ndarray | None) -> None:
        vars(self).update(vars(network))
        self.local = local
        if network.delivers_all:
            self.conditions = replace(network.conditions, compute=None, link=None)
        else:
            self.conditions = Conditions(on_loss=network.conditions.on_loss)
            self._channels = _ScriptedChannels(self.graph, self.conditions)

    @property
    def channels(self) -> list[_ScriptedChannel]:
        """The open channels on which received vectors are prescribed; none where all arrive."""
        return self._channels.channels if isinstance(self._channels, _ScriptedChannels) else []

    @property
    def channel_count(self) -> int:
        """The number of all channels that are open."""
        return 0 if self._channels is None else len(self._channels.channels)

    def start_scripted(self, x: np.ndarray, script: Script) -> Self:
        """Return a copy that is ready for a script's chains at positions x."""
        return self.start(x, cast("np.random.Generator", script), local=self.local)

    def select_shared(self, x: np.ndarray) -> np.ndarray:
        """Return all coordinates of vectors."""
        return x

    def replace_shared(self, x: np.ndarray, shared: np.ndarray) -> np.ndarray:
        """Return x with the shared coordinates replaced by those of vectors of all coordinates."""
        if self.local is None or x.shape[-1] != self.local.size:
            return shared
        return np.where(self.local, x, shared)

    def start_step(self, script: Script, x: np.ndarray, channels: int) -> Self:
        """Return a copy of the network in an iteration at positions x, (chains, agents, dim).

        script: prescribes what is received in it. channels: how many are open.
        """
        started = self.start_scripted(x, script)
        for _ in range(channels - 1):
            started.open_channel(x)
        started.begin(0)  # what happens is the same in all iterations
        count = len(self.graph.senders) * x.shape[-1]
        for channel in started.channels:
            channel.beyond = script.take("differences", count)
        if started.channels and self.conditions.on_loss == "reuse_last":
            started.channels[0].hear(x, script.take("memory", count))
        return started

    def mix_known(self, weights: Matrix, x: np.ndarray, channel: int = 0) -> np.ndarray:
        """Mix neighbors' last vectors; refuse if these are unknown, or may be lies."""
        if self._channels is not None and not self.channels:
            raise UnreadableStep("it mixes what was heard before, which may be a lie")
        if self.channels and self.channels[channel].latest is None:
            raise UnreadableStep(LOST + "it mixes what was heard before; use on_loss: reuse_last")
        return super().mix_known(weights, x, channel)

    def check_sent(self) -> None:
        """Refuse a step that does not send a vector on every open channel."""
        if not all(channel.sent for channel in self.channels):
            raise UnreadableStep(LOST + "it does not send in every iteration")

    def vectors(self) -> list[np.ndarray]:
        """Return the vectors sent on each channel, (chains, agents * dim).

        Before the first is sent they are those that neighbors know.
        """
        return [channel.vectors.reshape(self.chains, -1) for channel in self.channels]


class _ScriptedChannels(Channels):
    """Channels on which the received vectors are prescribed by a script."""

    def open(self, first: np.ndarray) -> int:
        """Open another channel with prescribed received vectors; return its number.

        first: the vectors that neighbors know at first, (chains, agents, dim).
        """
        self.channels.append(_ScriptedChannel(self._graph, first))
        return len(self.channels) - 1


class _ScriptedChannel:
    """A channel on which received vectors are prescribed.

    vectors: those sent, or that neighbors know at first, (chains, agents, dim). sent: whether they
    were sent in this step. beyond: received minus sent vectors, (chains, arcs * dim). latest: those
    received last over each arc, (arcs, chains, dim); None: unknown.
    """

    def __init__(self, graph: Graph, first: np.ndarray) -> None:
        self._graph, self.vectors = graph, first
        self.latest: np.ndarray | None = None
        self.beyond, self.sent = np.empty(0), False

    def hear(self, x: np.ndarray, beyond: np.ndarray) -> np.ndarray:
        """Receive vectors, and return them, (arcs, chains, dim).

        x: the sent vectors, (chains, agents, dim). beyond: received minus sent ones.
        """
        arriving = x.transpose(1, 0, 2)[self._graph.senders]
        apart = beyond.reshape(len(x), len(arriving), -1).transpose(1, 0, 2)
        self.latest = received = arriving + apart
        return received

    def send(self, x: np.ndarray, traffic: object, k: int) -> np.ndarray:
        """Send the vectors x, (chains, agents, dim); return those that receivers use.

        traffic, k: what a network passes, unused.
        """
        if self.sent or x.shape != self.vectors.shape:
            raise UnreadableStep(LOST + "it sends other than a vector of each agent on a channel")
        self.sent, self.vectors = True, x
        return self.hear(x, self.beyond)
