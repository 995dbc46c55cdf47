r"""Laws read off a sampler's step: one call of it, whose chains are unit vectors.

On quadratic problems most samplers' steps are affine in the state s, in normal numbers w, in errors
:math:`\xi` of mini-batch gradients, and in what is heard beyond what was sent. A step is called
once on as many chains as these have entries, each with one of them at one and the others at zero,
and once on a few chains of random numbers of all sizes, which tell whether it is affine: as far as
they probe. What is drawn besides is refused, unless by ``random.draw_choice``, whose outcomes are
enumerated. Where the random chains move otherwise in another iteration, its step is read anew.

Parts of the state that are the same for all chains, such as push-sum's weights, are followed from
iteration to iteration.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from concord.errors import ConcordError
from concord.laws.exact import Affine, Arrivals, Start, Update
from concord.laws.switching import Choices
from concord.minibatches import Batches, MiniBatches
from concord.networks.network import Network
from concord.problem import CountedProblem, Quadratic
from concord.sampler import ReadOut

# Sizes of the random chains' numbers: thresholds lie between some of them. The first is zero.
SIZES = np.concatenate([[0.0], np.logspace(-6, 6, 9), np.ones(9)])
KINDS = ("state", "normals", "errors", "heard", "late")  # of numbers that a step is affine in
ROUNDING = 1e-10  # of the random chains, relative to what adds up to a number
# A step that does the same in these iterations does so in all: 0 is a multiple of every period.
ELSEWHERE = (0, 1, 2, 720_720)
MOST_NUMBERS = 1 << 24  # of a call's outcomes: more are read in several calls
READINGS = 8  # that are kept of one sampler
LOST = "vectors may get lost on this network, and "


class NoLaw(ConcordError):
    """No exact law is known; the message says why."""


class Reading(NamedTuple):
    """A step as matrices, for each outcome of what it chooses.

    probability: of each outcome, (outcomes,). updates: one per outcome. arrivals: None where
    everything arrives.
    """

    probability: np.ndarray
    updates: list[Affine]
    arrivals: Arrivals | None


class StepReader:
    """Reads the steps of a sampler on a quadratic problem and a network, when they are needed.

    batches: of the gradients, whose errors are read as well; None: they are full ones.
    ``NoLaw`` where the sampler is not affine.
    """

    def __init__(
        self, sampler: Any, problem: Any, network: Network, batches: Batches | None = None
    ) -> None:
        self._sampler, self._problem = sampler, problem
        self._batches = None if batches is None or batches.batch_size is None else batches
        self._size = problem.agents * problem.dim
        self.network = _Scripted(network)
        self._empty = dict.fromkeys(getattr(sampler, "draws_ahead", ()), np.empty(0))
        if isinstance(sampler, ReadOut):
            raise self._refuse("its answer is not the positions of its state")
        if not isinstance(problem, Quadratic):
            raise NoLaw(
                f"{type(problem).__name__} is not quadratic, so no exact law is known; use "
                "quadratic or linear_regression, or sample it"
            )
        if self._batches is not None and self._batches.batch_order != "with_replacement":
            raise self._refuse("errors of mini-batches in epochs depend on each other")
        with np.errstate(all="ignore"):
            try:
                self._learn_fields()
                probes = [self._probe(k) for k in ELSEWHERE]
            except _Unreadable as why:
                raise self._refuse(str(why)) from None
        self.chooses = any(probe.chances for probe in probes)
        self._first = probes[0]
        self._steady = len(self._history) == 1 and all(p.does_as(probes[0]) for p in probes)
        self._readings: list[tuple[_Script, Reading]] = []

    @cached_property
    def start(self) -> Start:
        """How the state starts from the positions."""
        with np.errstate(all="ignore"):
            try:
                return self._read_start()
            except _Unreadable as why:
                raise self._refuse(str(why)) from None

    def at(self, k: int) -> Reading:
        """Return the step of iteration k; the same object while it does the same."""
        if self._steady and self._readings:
            return self._readings[0][1]
        with np.errstate(all="ignore"):
            try:
                probe = self._first if self._steady else self._probe(k)
                for before, reading in self._readings:
                    if probe.does_as(before):
                        return reading
                reading = self._read(k, probe)
            except _Unreadable as why:
                raise self._refuse(str(why)) from None
        self._readings[:] = [(probe, reading), *self._readings[: READINGS - 1]]
        return reading

    def update(self) -> Update:
        """Return the law of a sampler that draws nothing but noise; else ``NoLaw``."""
        if self.chooses:
            raise self._refuse("it draws more than noise")

        def arrivals(k: int) -> Arrivals:
            reading = self.at(k).arrivals
            assert reading is not None
            return reading

        lossless = self.network.is_lossless
        return Update(lambda k: self.at(k).updates[0], self.start, None if lossless else arrivals)

    def choices(self) -> Callable[[int], Choices]:
        """Return what each iteration chooses from; the same object while it is the same."""
        last: list[tuple[Reading, Choices]] = []

        def at(k: int) -> Choices:
            reading = self.at(k)
            if not last or last[0][0] is not reading:
                parts = (
                    np.array([getattr(update, part) for update in reading.updates])
                    for part in ("matrix", "offset", "noise")
                )
                last[:] = [(reading, Choices(reading.probability, *parts))]
            return last[0][1]

        return at

    def _refuse(self, why: str) -> NoLaw:
        name = self._sampler.name or type(self._sampler).__name__
        return NoLaw(f"sampler {name} has no exact law here: {why}; sample it instead")

    def _begin(self, script: _Script) -> Any:
        """Return the state at the script's positions."""
        x = script.take("state", self._size).reshape(-1, self._problem.agents, self._problem.dim)
        self._started = self.network.listen(script, x)
        state = self._sampler.init(x, self._counted(script, None), self._started, script)
        self._lanes = len(self._started.vectors())
        return state

    def _advance(self, state: Any, k: int, script: _Script) -> Any:
        """Return the state after iteration k."""
        state = state._replace(**self._empty)
        self._started = network = self.network.listen(script, state.x, self._lanes)
        network.begin(k)
        network.hear()
        return self._sampler.step(state, k, self._counted(script, state.x), network, script)

    def _counted(self, script: _Script, x: np.ndarray | None) -> CountedProblem:
        """Return the problem, whose gradients at positions x have errors if they are to be read."""
        if self._batches is None:
            return CountedProblem(self._problem, script.chains)
        return CountedProblem(_Erring(self._problem, self._batches, script, x), script.chains)

    def _learn_fields(self) -> None:
        """Tell fields that differ by chains, blocks of the state, from those that do not."""
        script, few = _Script(len(SIZES)), self._begin(_Script(2))
        state = self._begin(script)
        self._of_chains = {
            name
            for name, part in state._asdict().items()
            if part.shape[:1] == (script.chains,) and getattr(few, name).shape[:1] == (2,)
        } - {*self._empty}
        self._make = type(state)
        varying, shape = {"x"}, (script.chains, self._problem.agents, self._problem.dim)
        begun = state
        for k in range(3):
            if varying >= self._of_chains:
                break
            state = self._advance(state, k, _Script(script.chains))
            for name in self._of_chains:
                part = getattr(state, name)
                if (part != part[:1]).any():
                    varying.add(name)
        for name in varying:
            if getattr(state, name).shape != shape:
                raise _Unreadable(f"{name} of its state is no vector of each agent")
        self._blocks = [name for name in state._fields if name in varying]
        fixed = {name: getattr(begun, name) for name in state._fields if name not in varying}
        self._history = [self._take_one(fixed)]
        self._settled = not self._history[0]

    def _take_one(self, fields: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return fields that are the same for all chains, of one chain."""
        one = {}
        for name, part in fields.items():
            if name in self._of_chains:
                if (part != part[:1]).any():
                    raise _Unreadable(f"{name} of its state depends on chance later on")
                part = part[:1]
            if name not in self._empty:
                one[name] = part
        return one

    def _pack(self, state: Any, script: _Script) -> np.ndarray:
        """Return the blocks of a state and what was sent, (chains, ...)."""
        parts = [getattr(state, name).reshape(script.chains, -1) for name in self._blocks]
        return np.concatenate([*parts, *self._started.vectors()], axis=1)

    def _step(self, k: int, script: _Script) -> np.ndarray:
        """Return blocks and vectors that are sent after iteration k from the script's state."""
        blocks = script.take("state", self._size * len(self._blocks)).reshape(
            script.chains, len(self._blocks), self._problem.agents, self._problem.dim
        )
        fixed = {
            name: np.broadcast_to(part, (script.chains, *part.shape[1:]))
            if name in self._of_chains
            else part
            for name, part in self._fixed_at(k).items()
        }
        varying = dict(zip(self._blocks, blocks.swapaxes(0, 1), strict=True))
        state = self._advance(self._make(**varying, **fixed, **self._empty), k, script)
        after = {name: getattr(state, name) for name in fixed}
        script.after = self._take_one(after)
        return self._pack(state, script)

    def _fixed_at(self, k: int) -> dict[str, np.ndarray]:
        """Return the fields that are the same for all chains before iteration k."""
        while len(self._history) <= k and not self._settled:
            last = len(self._history) - 1
            after = self._probe(last).after
            if all(_close(part, after[name]) for name, part in self._history[last].items()):
                self._settled = True
            else:
                self._history.append(after)
        return self._history[min(k, len(self._history) - 1)]

    def _probe(self, k: int) -> _Script:
        """Return the script of a few random chains after iteration k."""
        script = _Script(len(SIZES))
        script.results = self._step(k, script)
        return script

    def _read_start(self) -> Start:
        def begin(script: _Script) -> np.ndarray:
            state = self._begin(script)
            return self._pack(state, script)

        script = _Script(len(SIZES))
        script.results = begin(script)
        if script.chances or "errors" in script.inputs:
            raise _Unreadable("it starts by chance")
        _, (matrix,), (offset,) = _solve(begin, script)
        whole, size = len(self._blocks) * self._size, self._size
        noise = matrix[size:, :whole].T @ matrix[size:, :whole]
        if self.network.is_lossless:
            return Start(matrix[:size].T, offset, noise)
        if matrix[size:, whole:].any():
            raise _Unreadable(LOST + "what neighbors know at first is random")
        lanes = matrix[:size, whole:].T, offset[whole:]
        return Start(matrix[:size, :whole].T, offset[:whole], noise, lanes)

    def _read(self, k: int, probe: _Script) -> Reading:
        """Return the step of iteration k, of which random chains have told what it draws."""
        probability, matrices, offsets = _solve(lambda script: self._step(k, script), probe)
        ends = np.cumsum([probe.count(kind) for kind in KINDS])
        size = int(ends[0])
        updates = []
        for matrix, offset in zip(matrices, offsets, strict=True):
            state, normals, errors, heard, late = np.split(matrix, ends[:-1])
            kicks = normals[:, :size]
            gain = np.ascontiguousarray(errors[:, :size].T) if self._batches else None
            own = np.ascontiguousarray(state[:, :size].T)
            updates.append(Affine(own, offset[:size], kicks.T @ kicks, gain))
        if self.network.is_lossless:
            return Reading(probability, updates, None)
        if len(updates) > 1:
            raise _Unreadable(LOST + "it draws more than noise")
        if heard[:, size:].any():
            raise _Unreadable(LOST + "what it sends depends on what it hears in the same step")
        arrivals = Arrivals(heard[:, :size].T, state[:, size:].T, offset[size:], normals.T, late.T)
        return Reading(probability, updates, arrivals)


class _Unreadable(Exception):
    """Why a step is not read."""


class _Script:
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
        numbers = self._given[kind][:, begin : begin + count]
        if numbers.shape[1] != count:
            raise _Unreadable("how much it draws depends on where it is")
        return numbers

    def count(self, kind: str) -> int:
        """Return how many numbers of a kind a chain has taken."""
        return sum(part.shape[1] for part in self.inputs.get(kind, []))

    def does_as(self, other: _Script) -> bool:
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
            raise _Unreadable("it draws numbers that are not of each chain")
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
            raise _Unreadable("what it chooses from depends on where it is")
        outcome: np.ndarray = self._prescribed[:, place]
        return outcome

    def __getattr__(self, name: str) -> Any:
        """Refuse whatever else is drawn."""
        if name.startswith("_"):
            raise AttributeError(name)
        raise _Unreadable(f"it draws random numbers other than normal ones ({name})")


class _Erring(MiniBatches):
    """A problem whose gradients, taken once in a step at its positions, have prescribed errors."""

    full_cost = 1

    def __init__(
        self, problem: Any, batches: Batches, script: _Script, x: np.ndarray | None
    ) -> None:
        self.problem, self._script, self._x = problem, script, x
        how = batches.batch_scale, batches.batch_pool
        self._mean = problem.gram, problem.shift
        if how != ("data", "all"):
            self._mean = problem.batch_mean(batches.batch_size, *how)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return gradients with errors."""
        if self._x is None or not np.array_equal(x, self._x):
            raise _Unreadable("it takes mini-batches elsewhere than at the positions")
        if self._script.count("errors") or "errors" in self._script.begun:
            raise _Unreadable("it takes more than one mini-batch in a step")
        gram, shift = self._mean
        gradient = np.einsum("ade,cae->cad", gram, x) - shift
        return gradient + self._script.take("errors", shift.size).reshape(x.shape)

    def gradient_of(self, agents: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Refuse mini-batches of few agents."""
        raise _Unreadable("it takes mini-batches of few agents")

    def difference(self, x: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """Refuse differences of mini-batches."""
        raise _Unreadable("it takes differences of mini-batches")


class _Scripted(Network):
    """A network on which what is heard is prescribed; nothing happens where everything arrives."""

    def __init__(self, network: Network) -> None:
        vars(self).update(vars(network))
        self.lossless = network.is_lossless
        self.effects, self.barrier, self.compute, self.link = [], True, None, None
        self.script: _Script | None = None

    @property
    def is_lossless(self) -> bool:
        """Whether every vector arrives at once, as it is."""
        return self.lossless

    def listen(self, script: _Script, x: np.ndarray, lanes: int = 1) -> Network:
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
        for lane in self._lanes:
            lane.beyond = self.script.take("heard", count)
        if self.on_loss == "reuse_last":
            first = self._lanes[0]
            first.heard = first.spread(first.first, self.script.take("late", count))

    def open_lane(self, first: np.ndarray) -> int:
        """Open a lane on which what is heard is prescribed."""
        if self.lossless:
            return 0
        self._lanes.append(_Lane(self.graph, first))  # type: ignore[arg-type]
        return len(self._lanes) - 1

    def vectors(self) -> list[np.ndarray]:
        """Return what was sent on each lane, or what neighbors know of it, (chains, ...)."""
        return [lane.vectors.reshape(self.chains, -1) for lane in self._lanes]


class _Lane:
    """One vector of every agent, and what receivers hear of it.

    first: what neighbors know at first. vectors: what was sent, or that. beyond: what is heard
    beyond what is sent, (chains, ways * dim).
    """

    size = 0.0

    def __init__(self, graph: Any, first: np.ndarray) -> None:
        self._graph, self.first, self.vectors = graph, first, first
        self._heard: np.ndarray | None = None
        self.beyond, self._sent = np.empty(0), False

    @property
    def heard(self) -> np.ndarray:
        """What was heard last, (ways, chains, dim)."""
        if self._heard is None:
            raise _Unreadable(LOST + "it mixes what was heard before; use on_loss: reuse_last")
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
        if self._sent or x.shape != self.first.shape:
            raise _Unreadable(LOST + "it sends other than a vector of each agent on a lane")
        self._sent, self.vectors = True, x
        self.heard = self.spread(x, self.beyond)
        return self.heard


def _solve(
    call: Callable[[_Script], np.ndarray], probe: _Script
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the maps of what is called, of each outcome: chances, matrices (T, O), offsets (O,).

    call: returns results for a script. probe: the script of random chains for which it was called.
    """
    counts = [probe.count(kind) for kind in KINDS]
    total, ends = sum(counts), np.cumsum([0, *counts])
    inputs = np.concatenate([part for kind in KINDS for part in probe.inputs.get(kind, [])], axis=1)
    results = probe.results
    # Units as large as the offset, from which rounding would otherwise come.
    unit = 2.0 ** np.ceil(np.log2(max(1.0, np.abs(results[0]).max(initial=0.0))))
    chains = np.concatenate([np.zeros((1, total)), unit * np.eye(total)])
    outcomes = np.array(list(product(*[range(len(p)) for p in probe.chances])), dtype=int)
    chance = np.array([np.prod(p) for p in product(*probe.chances)])
    matrices = np.empty((len(chance), total, results.shape[1]))
    offsets = np.empty((len(chance), results.shape[1]))
    several = max(1, MOST_NUMBERS // max(1, len(chains) * results.shape[1]))
    for first in range(0, len(chance), several):
        some = outcomes[first : first + several]
        rows = np.tile(chains, (len(some), 1))
        given = {kind: rows[:, a:b] for kind, a, b in zip(KINDS, ends, ends[1:], strict=False)}
        found = call(_Script(len(rows), given, np.repeat(some, len(chains), axis=0)))
        found = found.reshape(len(some), len(chains), -1)
        offsets[first : first + several] = found[:, 0]
        matrices[first : first + several] = (found[:, 1:] - found[:, :1]) / unit
    which = np.zeros(len(inputs), dtype=int)
    for number, p in zip(probe.outcomes, probe.chances, strict=True):
        which = which * len(p) + number
    for chosen in np.unique(which):
        rows, matrix, offset = which == chosen, matrices[chosen], offsets[chosen]
        own = inputs[rows]
        size = (np.abs(own) @ np.abs(matrix) + np.abs(offset)).max(axis=1, initial=0.0)
        apart = np.abs(own @ matrix + offset - results[rows])
        if not (apart <= ROUNDING * size[:, None]).all():
            raise _Unreadable("its step is not affine")
    return chance, matrices, offsets


def _close(before: np.ndarray, after: np.ndarray) -> bool:
    """Whether numbers have settled but for rounding."""
    if np.array_equal(before, after):
        return True
    return bool((np.abs(1.0 * after - before) <= 1e-15 * np.abs(before)).all())
